"""The simulator: same bytes for the same seed, every label and split, honest truth, no trace of itself."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from tests.train.making import body_of
from train import gallery
from train.corpus import summary
from train.simulate import corpus, emit
from train.simulate.build import build, inventory, lines_for
from train.simulate.combos import HELD_FOR_VALIDATION, HELD_OUT
from train.simulate.plan import MIX, SPLITS, Job, held_causes, jobs, validation_causes

ROOT = Path(__file__).resolve().parents[2]
SCALE = 0.04


@pytest.fixture(scope="module")
def work() -> list[Job]:
    return jobs(inventory(), 7, SCALE)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    corpus(folder, seed=7, scale=SCALE, workers=1)
    return folder


def truths(folder: Path) -> list[tuple[Path, dict[str, object]]]:
    return [(path.parent, json.loads(path.read_text("utf-8"))) for path in sorted(folder.glob("*/*/incident.json"))]


def text_of(incident: Path) -> str:
    paths = sorted(path for path in (incident / "logs").rglob("*") if path.is_file())
    return "".join(path.read_bytes().decode("utf-8") for path in paths)


def test_every_split_has_every_label_it_should(work: list[Job]) -> None:
    for split in SPLITS:
        labels = {job.label for job in work if job.split == split}
        assert labels == set(MIX) - ({"undetermined", "no_timeout"} if split == "test_unseen_cause" else set())


def test_a_job_gives_the_same_bytes_again(work: list[Job]) -> None:
    for job in work[:40]:
        first, second = build(job), build(job)
        assert (first.truth, first.files) == (second.truth, second.files)


def test_bytes_depend_neither_on_workers_nor_on_the_hash_seed(tmp_path: Path, out: Path) -> None:
    options = ["--out", str(tmp_path / "other"), "--seed", "7", "--scale", str(SCALE), "--workers", "2"]
    env = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-m", "train", "corpus", *options], env=env, check=True, cwd=ROOT)
    assert (tmp_path / "other" / "manifest.json").read_bytes() == (out / "manifest.json").read_bytes()


def test_seeds_differ(work: list[Job]) -> None:
    other = jobs(inventory(), 8, SCALE)
    assert build(work[0]).files != build(other[0]).files


def test_a_quarter_are_whole_runs_and_the_reports_do_not_change_for_them(work: list[Job]) -> None:
    whole = [job for job in jobs(inventory(), 7, 1.0) if job.split == "train"]
    assert sum(job.kind == "run" for job in whole) == pytest.approx(len(whole) / 4, abs=1)
    assert {job.split for job in work if job.kind == "run"} == {"train", "val", "test_seen"}
    assert all("/run/" not in job.seed for job in work if job.kind == "report")


def test_ids_are_neutral_and_unique(out: Path) -> None:
    names = [folder.name for folder, _ in truths(out)]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"i[0-9a-f]{12}", name) for name in names)


def test_decisive_lines_exist_and_are_not_empty(out: Path) -> None:
    seen = 0
    for folder, truth in truths(out):
        for place in truth["decisive_lines"]:
            name, number = place.rsplit(":", 1)
            lines = (folder / "logs" / name).read_bytes().split(b"\n")
            assert 1 <= int(number) <= len(lines)
            seen += 1
    assert seen > 100


def test_truth_agrees_with_determinability(out: Path) -> None:
    for _, truth in truths(out):
        label, clear = truth["label"], truth["determinable_from_log"]
        assert clear in {"yes", "partly", "no"}
        if label == "undetermined":
            assert clear == "no"
            assert truth["decisive_lines"] == []
            assert truth["initiating_ranks"] is None
        if label == "no_timeout":
            assert clear == "yes"
        if clear == "no":
            assert truth["cause_id"] is None


def test_quiet_logs_show_no_waiting_rank_outside_servers(out: Path) -> None:
    loud = re.compile(r"Watchdog caught|NCCL WARN|Connection closed by|failed to pass monitoredBarrier|store->get")
    serving = re.compile(r"HTTP/1\.1|TP0\]|Engine 000|metrics\.py")
    for folder, truth in truths(out):
        text = text_of(folder)
        if truth["label"] == "no_timeout" and loud.search(text):
            assert serving.search(text), folder


def test_held_out_causes_and_dialects_are_unseen(work: list[Job], out: Path) -> None:
    held = {cause for causes in held_causes(inventory()).values() for cause in causes}
    rare = {cause for causes in validation_causes(inventory()).values() for cause in causes}
    assert held
    for job in work:
        if job.split == "test_unseen_cause":
            assert job.cause in held
        elif job.cause is not None:
            assert job.cause not in (held if job.split == "val" else held | rare)
    for folder, truth in truths(out):
        pair = (truth["framework"], truth["launcher"])
        assert (pair in HELD_OUT) == (folder.parent.name == "test_unseen_dialect")
        assert pair not in HELD_FOR_VALIDATION or folder.parent.name == "val"


def test_every_cause_is_simulated_in_training() -> None:
    planned = {job.cause for job in jobs(inventory(), 1, 1.0) if job.split == "train" and job.cause}
    held = {cause for causes in held_causes(inventory()).values() for cause in causes}
    rare = {cause for causes in validation_causes(inventory()).values() for cause in causes}
    lines = lines_for("train")
    missing = {cause.id for cause in inventory().causes if lines.has(cause.id)} - planned - held - rare
    assert not missing


def test_lengths_are_those_of_public_reports(work: list[Job]) -> None:
    lengths = [body_of(build(job)).count("\n") for job in work if job.kind == "report"]
    assert 7 <= statistics.median(lengths) <= 25
    assert max(lengths) > 200


def test_group_ranks_never_pose_as_global_ranks(out: Path) -> None:
    line = re.compile(r"\[rank(\d+)\]:\[E[^\]]*\] \[PG ID 0 PG GUID 0\(default_pg\) Rank (\d+)\]")
    found = [match for folder, _ in truths(out) for match in line.finditer(text_of(folder))]
    assert found
    assert all(match[1] == match[2] for match in found)


def test_a_timeout_ran_at_least_as_long_as_its_limit(out: Path) -> None:
    line = re.compile(r"Timeout\(ms\)=(\d+)\) ran for (\d+) milliseconds")
    pairs = [match.groups() for folder, _ in truths(out) for match in line.finditer(text_of(folder))]
    assert pairs
    assert all(int(ran) >= int(limit) for limit, ran in pairs)


def test_at_least_half_of_all_incidents_carry_a_decoy_for_another_label(work: list[Job]) -> None:
    made = [(job, build(job).notes) for job in work]
    assert all(job.label not in notes.decoys for job, notes in made)
    assert sum(bool(notes.decoys) for _, notes in made) >= 0.5 * len(made)


def test_the_page_of_examples_shows_one_marked_report_a_label(tmp_path: Path) -> None:
    # Few incidents are short enough for the page: the split of the small corpus alone may lack a label.
    for job in jobs(inventory(), 7, 4 * SCALE):
        if job.split == "test_seen":
            emit.write(job, tmp_path)
    gallery.write(tmp_path, tmp_path / "examples.md")
    text = (tmp_path / "examples.md").read_text("utf-8")
    labels = re.findall(r"^## (\w+)$", text, re.M)
    assert len(labels) > 3
    assert labels == sorted(set(labels))
    assert set(labels) <= set(MIX)
    assert re.search(r"^> \S", text, re.M)
    assert text.count("```") == 2 * len(labels)


def test_the_summary_counts_decoys() -> None:
    row = {"incidents": 4, "with_decoy": 3, "sha256": "0" * 64}
    lines = summary({"splits": {"train": row, "val": row}, "drawn_anew": {"a": 1}})
    assert lines[0].startswith("train: 4 incidents, 3 (75 %) with a decoy")
    assert lines[2].startswith("all: 8 incidents, 6 (75 %)")
