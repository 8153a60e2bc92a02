"""The simulator: same bytes for the same seed, every label and split, honest truth, no trace of itself."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fsdpclassify.reading import find
from fsdpclassify.sources import collect
from train.simulate import corpus
from train.simulate.build import Incident, build, build_world, inventory, lines_for
from train.simulate.combos import HELD_OUT
from train.simulate.fitting import at_home
from train.simulate.gloo.phrases import OFFLOAD, STRAGGLER, usable
from train.simulate.lines import held_for
from train.simulate.plan import MIX, SPLITS, Job, held_causes, jobs

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


def test_no_log_betrays_the_simulator(out: Path) -> None:
    slot = re.compile(r"\{(?:rank|long|medium|short|limit|host|iso|clock|step|path|int|float)(?::[^}]*)?\}")
    for folder, truth in truths(out):
        text = text_of(folder)
        assert str(truth["id"]) not in text
        assert not slot.search(text), folder
        assert "simulated" not in text


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


def test_held_out_families_stay_out_of_training() -> None:
    train, strict = lines_for("train"), lines_for("test_unseen_lines")
    for family in inventory().families:
        if family.role in {"evidence", "decoy"}:
            held = held_for(family.id)
            assert train.usable(family.id) == (held == "train")
            assert strict.usable(family.id) == (held == "test")


def test_held_out_causes_and_dialects_are_unseen(work: list[Job], out: Path) -> None:
    held = {cause for causes in held_causes(inventory()).values() for cause in causes}
    assert held
    for job in work:
        if job.split == "test_unseen_cause":
            assert job.cause in held
        elif job.cause is not None:
            assert job.cause not in held
    for folder, truth in truths(out):
        pair = (truth["framework"], truth["launcher"])
        assert (pair in HELD_OUT) == (folder.parent.name == "test_unseen_dialect")


def test_every_cause_is_simulated_in_training() -> None:
    planned = {job.cause for job in jobs(inventory(), 1, 1.0) if job.split == "train" and job.cause}
    held = {cause for causes in held_causes(inventory()).values() for cause in causes}
    lines = lines_for("train")
    missing = {cause.id for cause in inventory().causes if lines.has(cause.id)} - planned - held
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


def scenes(label: str, cause: str | None, count: int, size: str = "short", kind: str = "report") -> list[Incident]:
    return [
        build(
            Job(
                split="train",
                index=i,
                seed=f"{label}/{cause}/{i}",
                label=label,
                cause=cause,
                size=size,
                blind=False,
                kind=kind,
            )
        )
        for i in range(count)
    ]


def truth_of(made: Incident) -> dict[str, Any]:
    return dict(json.loads(made.truth))


def body_of(made: Incident) -> str:
    return "".join(made.files.values())


def test_the_ranks_that_hold_more_print_more() -> None:
    line = re.compile(r"\[rank (\d+)\].*? (\d+) tokens|sum of lengths (\d+) on rank (\d+)")
    seen = 0
    for made in scenes("uneven_sharding", "sequence_imbalance", 60):
        guilty = truth_of(made)["initiating_ranks"]
        rows = [match for match in line.finditer(body_of(made)) if match[4]]
        loads = {int(match[4]): int(match[3]) for match in rows}
        if guilty and len(loads) > 1 and set(guilty) & set(loads):
            assert max(loads, key=lambda rank: loads[rank]) in guilty
            seen += 1
    assert seen


def test_a_phase_of_a_healthy_run_ends_after_it_begins() -> None:
    inventory_ = inventory()
    begins = {family.id: family for family in inventory_.families if family.role == "phase" and not family.closes}
    ends = [family for family in inventory_.families if family.closes in begins and "{" not in family.template]
    pairs = [(begins[str(end.closes)], end) for end in ends if "{" not in begins[str(end.closes)].template]
    found = 0
    for made in scenes("undetermined", None, 120, "long"):
        for text in made.files.values():
            for begin, end in pairs:
                if begin.template in text and end.template in text:
                    assert text.index(begin.template) < text.index(end.template)
                    found += 1
    assert found


def test_without_a_cause_only_waiting_ranks_raise_after_the_timeout() -> None:
    crash = re.compile(
        r"\[rank(\d+)\]: (?:RuntimeError: (?:DataLoader|CUDA error)|EOFError|BrokenPipe|torch\.\S*OutOf)"
    )
    seen = 0
    for made in scenes("undetermined", None, 250):
        waiting = truth_of(made)["waiting_ranks"] or []
        text = body_of(made)
        for match in crash.finditer(text, max(0, text.find("Watchdog caught"))):
            assert int(match[1]) in waiting, made.files
            seen += 1
    assert seen


def test_a_late_traceback_convicts_only_a_rank_that_does_not_wait() -> None:
    late = re.compile(r"Watchdog caught.*?\[rank(\d+)\]: (?:FloatingPointError|ValueError|KeyError|IndexError)", re.S)
    seen = 0
    for made in scenes("rank_failure", "training_diverged", 150):
        truth = truth_of(made)
        match = late.search(body_of(made))
        if match and truth["initiating_ranks"]:
            assert int(match[1]) in truth["initiating_ranks"]
            seen += 1
    assert seen


def test_an_interrupted_node_says_so_and_the_others_wait() -> None:
    told = [made for made in scenes("rank_failure", "signal", 80) if "death signal" in body_of(made)]
    assert told
    assert all(truth_of(made)["determinable_from_log"] == "yes" for made in told)


def test_a_dead_server_has_a_file_of_its_own() -> None:
    made = [one for one in scenes("rank_failure", "remote_peer_died", 80) if "EngineCore" in body_of(one)]
    assert made
    assert all(len(one.files) > 1 for one in made)


def test_frames_of_a_phase_are_evidence_and_undetermined_logs_show_none() -> None:
    told = re.compile(r"\b(?:main_process_first|tokenize_dataset|_prepare_dataset)\b")
    shown = [made for made in scenes("straggler", "tokenising", 120) if told.search(body_of(made))]
    assert shown
    assert all(truth_of(made)["determinable_from_log"] != "no" for made in shown)
    assert not [made for made in scenes("undetermined", None, 120) if told.search(body_of(made))]


def test_a_fault_of_cards_can_show_their_topology() -> None:
    assert any("CPU Affinity" in body_of(made) for made in scenes("fabric_congestion", "p2p_acs_iommu", 60))


def test_training_code_of_two_houses_never_meets(work: list[Job]) -> None:
    houses = {family.emitter for family in inventory().families} & {
        "mmengine",
        "detectron2",
        "composer",
        "torchtune",
    }
    for job in work[:60]:
        world = build_world(Random(job.seed), job)
        homes = {
            family.emitter for family in inventory().families if family.emitter in houses and at_home(family, world)
        }
        assert len(homes) <= 1


def test_ray_counts_what_its_workers_share() -> None:
    pattern = re.compile(r"\[repeated \d+x across cluster\]")
    texts = [body_of(made) for made in scenes("undetermined", None, 400) if truth_of(made)["launcher"] == "ray"]
    assert any(pattern.search(text) for text in texts)


def test_few_labelled_incidents_say_nothing(work: list[Job]) -> None:
    labelled = [
        job
        for job in jobs(inventory(), 3, 0.3)
        if job.split == "train" and job.label not in {"undetermined", "no_timeout"}
    ]
    silent = sum(job.blind for job in labelled)
    assert 0 < silent < 0.06 * len(labelled)


def runs(label: str, cause: str | None, count: int) -> list[Incident]:
    return scenes(label, cause, count, kind="run")


_RAISED = re.compile(r"\[rank(\d+)\]: RuntimeError: \[\S+unbound_buffer")


def streams(made: Incident, rank: int) -> str:
    """What a rank of a one-node tree printed."""
    return "".join(text for name, text in made.files.items() if f"attempt_0/{rank}/" in name)


def trees(made: list[Incident]) -> list[Incident]:
    return [one for one in made if any(re.match(r"(?:\w+/)?attempt_0/0/", name) for name in one.files)]


def test_the_late_rank_of_a_run_never_raises() -> None:
    seen = 0
    for made in runs("straggler", "data_loading", 60) + runs("offload_latency", "nvme_swap", 60):
        late = truth_of(made)["initiating_ranks"]
        raised = {int(match[1]) for match in _RAISED.finditer(body_of(made))}
        assert not raised & set(late or [])
        seen += bool(late and raised)
    assert seen > 30


def test_a_late_rank_that_tells_says_so_last() -> None:
    seen = 0
    for made in trees(runs("straggler", "checkpoint_on_rank_0", 60)):
        truth = truth_of(made)
        if truth["determinable_from_log"] == "yes" and all("/0/" in line for line in truth["decisive_lines"]):
            name, number = truth["decisive_lines"][-1].rsplit(":", 1)
            assert int(number) == made.files[name].count("\n")
            seen += 1
    assert seen > 5


def test_peers_of_a_dead_rank_lose_it_and_do_not_time_out() -> None:
    for made in runs("rank_failure", "exception", 40) + runs("rank_failure", "segfault", 40):
        assert "Timed out waiting" not in body_of(made)


def test_a_signal_shows_in_the_report_of_the_agent() -> None:
    for made in runs("rank_failure", "segfault", 40):
        assert "exitcode  : -11" in body_of(made)
        assert truth_of(made)["determinable_from_log"] == "yes"


def test_the_heavy_rank_prints_the_greatest_numbers() -> None:
    column = re.compile(r"\b(?:rows|tokens|seq_len|mem_mb) (\d+)$", re.M)
    seen = 0
    for made in trees(runs("uneven_sharding", "sequence_imbalance", 80)):
        guilty = truth_of(made)["initiating_ranks"]
        means = {
            rank: statistics.mean(map(int, found))
            for rank in range(8)
            if (found := column.findall(streams(made, rank)))
        }
        if guilty and len(means) > 1:
            assert max(means, key=lambda rank: means[rank]) in guilty
            seen += 1
    assert seen


def test_the_sides_of_a_desync_stand_in_different_frames() -> None:
    told = [one for one in runs("desync", "order_mismatch", 60) if truth_of(one)["determinable_from_log"] == "partly"]
    assert told
    for made in told:
        for place in truth_of(made)["decisive_lines"]:
            name, number = place.rsplit(":", 1)
            assert "File " in made.files[name].split("\n")[int(number) - 1] or "rank" in made.files[name]


def test_a_failing_link_leaves_nobody_late() -> None:
    for made in runs("fabric_congestion", "low_bandwidth", 60):
        truth = truth_of(made)
        assert truth["initiating_ranks"] is None
        every = any("/1/" in name for name in made.files) or "[default1]" in body_of(made)
        if truth["waiting_ranks"] and truth["world_size"] and every:
            assert len(truth["waiting_ranks"]) >= truth["world_size"] // 2


def test_quiet_runs_show_no_wait() -> None:
    for made in runs("no_timeout", None, 60):
        assert "Timed out waiting" not in body_of(made)
        assert "closed by peer" not in body_of(made)


def test_validation_has_wordings_that_training_never_prints() -> None:
    texts = tuple(text for phrases in (*STRAGGLER.values(), *OFFLOAD.values()) for text in phrases.begins)
    assert 0 < len(set(texts) - set(usable(texts, True))) < len(texts) / 2
    assert usable(texts, False) == list(texts)


def test_the_package_finds_who_waits_in_a_run(tmp_path: Path) -> None:
    right = total = 0
    for made in runs("straggler", "data_loading", 12) + runs("desync", "data_dependent_branch", 12):
        for name, text in made.files.items():
            path = tmp_path / truth_of(made)["id"] / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        found = find(collect([tmp_path / truth_of(made)["id"]])).incidents
        total += 1
        right += len(found) == 1 and list(found[0].waiting) == (truth_of(made)["waiting_ranks"] or [])
    assert right >= 0.85 * total
