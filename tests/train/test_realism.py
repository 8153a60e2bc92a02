"""The probes: blind to label and length, honest folds, and able to tell what differs."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest

from train import realism
from train.realism import Report, Scores


def incident(root: Path, name: str, label: str, text: str, source: str) -> None:
    folder = root / name
    (folder / "logs").mkdir(parents=True)
    truth = {"schema_version": 1, "id": name, "label": label, "source": source}
    (folder / "incident.json").write_text(json.dumps(truth))
    (folder / "logs" / "train.log").write_text(text)


def report(name: str, label: str, lines: int) -> Report:
    return Report(folder=Path(name), label=label, group=name, text="line\n" * lines)


def test_matching_keeps_label_and_length_and_repeats_nobody() -> None:
    public = [report("p1", "desync", 10), report("p2", "desync", 100), report("p3", "other", 5)]
    pool = [report(f"s{i}", "desync", 10 if i < 5 else 100) for i in range(10)]
    pool += [report(f"o{i}", "other", 6) for i in range(4)]
    found = realism.matched(public, pool, Random(1))
    assert sorted(one.label for one in found) == ["desync", "desync", "other"]
    assert len({one.folder for one in found}) == 3
    assert sorted(one.text.count("\n") for one in found) == [6, 10, 100]


def test_public_incidents_of_one_repository_share_a_group(tmp_path: Path) -> None:
    incident(tmp_path, "a", "desync", "x\n", "https://host.example/owner/repo/issues/1")
    incident(tmp_path, "b", "desync", "y\n", "https://host.example/owner/repo/issues/2")
    incident(tmp_path, "c", "desync", "z\n", "simulated")
    groups = [one.group for one in realism.read_reports(tmp_path)]
    assert groups[0] == groups[1] != groups[2]


def test_recordings_of_one_fault_share_a_group(tmp_path: Path) -> None:
    for name in ("a", "b"):
        incident(tmp_path / "lab" / "lab_val", name, "desync", "x\n", "lab")
    assert {one.group for one in realism.read_reports(tmp_path / "lab")} == {"lab/None"}


def test_simulated_incidents_are_picked_by_kind(tmp_path: Path) -> None:
    corpus = tmp_path / "train"
    rows = []
    for name, kind in (("i1", "report"), ("i2", "run")):
        incident(corpus, name, "desync", "x\n", "simulated")
        rows.append(json.dumps({"id": name, "kind": kind}))
    (tmp_path / "records.jsonl").write_text("\n".join(rows) + "\n")
    reports = realism.read_reports(corpus)
    assert [one.folder.name for one in realism.of_kind(reports, corpus, "run")] == ["i2"]
    assert realism.of_kind(reports, corpus, "all") == reports


def test_surface_gives_shares_and_sizes() -> None:
    values = dict(zip(realism.SURFACE, realism.surface("[rank0]: a 1\n[rank1]: a 2\n\nb"), strict=True))
    assert values["rank_prefix"] == 0.5
    assert values["blank"] == 0.25
    assert values["twins"] == 0.25
    assert values["ranks"] == pytest.approx(np.log1p(2))


def test_an_interval_holds_its_mean_and_a_perfect_probe_scores_one() -> None:
    real = np.array([1, 0] * 10)
    groups = tuple(f"g{i // 2}" for i in range(20))
    perfect = Scores(real=real, score=real.astype(float), groups=groups)
    assert realism.interval([perfect], 1, rounds=50) == (1.0, 1.0, 1.0)
    blind = Scores(real=real, score=np.random.default_rng(0).random(20), groups=groups)
    mean, low, high = realism.interval([blind], 1, rounds=100)
    assert low <= mean <= high


def test_no_group_is_scored_by_a_model_that_saw_it() -> None:
    seen: list[set[float]] = []

    class Spy:
        def fit(self, rows: np.ndarray, real: np.ndarray) -> Spy:
            seen.append({float(row[0]) for row in rows})
            return self

        def predict_proba(self, rows: np.ndarray) -> np.ndarray:
            assert not {float(row[0]) for row in rows} & seen[-1]
            return np.full((len(rows), 2), 0.5)

    groups = [str(i // 3) for i in range(60)]
    rows = np.array([[i // 3] for i in range(60)], dtype=float)
    realism.out_of_fold(rows, np.array([i // 3 % 2 for i in range(60)]), groups, Spy, 0)
    assert len(seen) == realism.FOLDS


def test_the_command_prints_both_figures_and_what_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for i in range(12):
        label = "desync" if i % 2 else "straggler"
        body = f"step {i} loss 1.0\n[rank{i}]:[E ProcessGroupNCCL.cpp:474] [Rank {i}] words of the place\n"
        incident(tmp_path / "public", f"p{i}", label, "genuine start\n" + body, f"https://x.example/o/r{i}/1")
        incident(tmp_path / "made", f"m{i}", label, "invented start\n" + body, "simulated")
    options = ["--corpus", str(tmp_path / "made"), "--incidents", str(tmp_path / "public"), "--draws", "1"]
    assert realism.main([*options, "--top", "3"]) == 0
    out = capsys.readouterr().out
    assert "text (character 3-5-grams): AUC" in out
    assert "numbers (surface and ledger): AUC" in out
    assert "invented (0.00 public, 1.00)" in out
