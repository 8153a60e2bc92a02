"""The frozen splits: the same bytes as when they were frozen, and nothing held out in two of them.

A sample of one in a hundred is made here; `python -m train corpus --check` does the same for all.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from train import splits
from train.inventory import Inventory, load
from train.simulate.build import build, inventory
from train.simulate.combos import HELD_FOR_VALIDATION, HELD_OUT
from train.simulate.emit import Row, again, corpus, digest_of, row_of
from train.simulate.lines import held_for, owners
from train.simulate.plan import SPLITS, Job, held_causes, jobs, line_rules, split_lines, validation_causes


@pytest.fixture(scope="module")
def known() -> dict[str, Any]:
    return splits.frozen()


@pytest.fixture(scope="module")
def sample(known: dict[str, Any]) -> dict[str, list[Row]]:
    return splits.sample(known["seed"], known["drawn_anew"])


@pytest.fixture(scope="module")
def records(known: dict[str, Any]) -> list[dict[str, Any]]:
    """One job in nineteen with its truth, as the full check reads them; unusual ones are every fifth, so 19."""
    found = []
    for job in jobs(inventory(), known["seed"], 1.0):
        if job.index % 19 == 0:
            final = again(job, known["drawn_anew"].get(job.seed, 0))
            made = build(final)
            found.append(splits.as_record(row_of(final, made), json.loads(made.truth)))
    return found


def test_the_sample_is_the_frozen_one(known: dict[str, Any], sample: dict[str, list[Row]]) -> None:
    hint = "the simulator or its lines changed: run `python -m train corpus --freeze`"
    for name, row in known["splits"].items():
        assert len(sample[name]) == row["sample"], hint
        assert digest_of(sample[name]) == row["sample_sha256"], f"{name}: {hint}"


def test_counts_causes_and_dialects_are_the_frozen_ones(known: dict[str, Any]) -> None:
    planned = jobs(inventory(), known["seed"], 1.0)
    for name, row in known["splits"].items():
        assert row["incidents"] == sum(job.split == name for job in planned)
    assert known["held_out_causes"] == {k: list(v) for k, v in held_causes(inventory()).items() if v}
    assert known["validation_causes"] == {k: list(v) for k, v in validation_causes(inventory()).items() if v}
    assert known["held_out_dialects"] == sorted(" / ".join(pair) for pair in HELD_OUT)
    assert known["validation_dialects"] == sorted(" / ".join(pair) for pair in HELD_FOR_VALIDATION)


def test_the_folders_of_the_repository_are_the_frozen_ones(known: dict[str, Any]) -> None:
    assert splits.folders() == known["folders"]


def test_nothing_held_out_lies_in_two_splits(records: list[dict[str, Any]]) -> None:
    assert {record["split"] for record in records} == set(SPLITS)
    assert splits.faults_of(records) == []


def test_each_fault_is_found(records: list[dict[str, Any]]) -> None:
    train = next(record for record in records if record["split"] == "train")
    test = next(record for record in records if record["split"] == "test_unseen_lines" and record["lines"])
    held = next(name for name, split in owners(inventory()).items() if split == "test")
    cause = next(iter(held_causes(inventory()).values()))[0]
    pair = dict(zip(("framework", "launcher"), min(HELD_OUT), strict=True))
    planted = {
        "is also": {**train, "split": "val"},
        "which is held for test": {**train, "id": "a", "log": "a", "origins": [held]},
        "prints what training": {**train, "id": "b", "log": "b", "lines": test["lines"]},
        "kept for test_unseen_cause": {**train, "id": "c", "log": "c", "cause": cause},
        "kept for test_unseen_dialect": {**train, "id": "d", "log": "d", "truth": {**train["truth"], **pair}},
    }
    for words, record in planted.items():
        assert any(words in fault for fault in splits.faults_of([*records, record])), words


def test_validation_holds_lines_dialects_and_causes_that_training_lacks(records: list[dict[str, Any]]) -> None:
    def shown(split: str, key: str) -> set[Any]:
        mine = [record for record in records if record["split"] == split]
        if key == "dialect":
            return {(record["truth"]["framework"], record["truth"]["launcher"]) for record in mine}
        return {record["cause"] for record in mine} if key == "cause" else {o for r in mine for o in r["origins"]}

    assert {owners(inventory()).get(origin) for origin in shown("val", "origins")} >= {"train", "val"}
    assert shown("val", "dialect") & HELD_FOR_VALIDATION
    assert not shown("train", "dialect") & HELD_FOR_VALIDATION
    rare = {cause for names in validation_causes(inventory()).values() for cause in names}
    assert shown("val", "cause") & rare
    assert not shown("train", "cause") & rare


def test_held_out_families_of_every_role_stay_out_of_training() -> None:
    held = owners(inventory())
    assert {family.role for family in inventory().families if held[family.id] == "test"} >= {
        "evidence", "decoy", "noise", "phase", "symptom", "collateral",
    }  # fmt: skip
    for split, kept in splits.OWNERS.items():
        lines = split_lines(inventory(), split)
        assert {held[family.id] for family in lines.families()} == kept


def test_training_prints_no_family_of_a_cause_that_is_kept_for_another_split() -> None:
    kept = {
        cause for held in (held_causes, validation_causes) for names in held(inventory()).values() for cause in names
    }
    assert kept
    assert not kept & {family.cause for family in split_lines(inventory(), "train").families()}


def test_the_end_of_a_phase_and_a_twin_by_numbers_go_with_the_first() -> None:
    some = replace(inventory().select("noise")[0], variants=(), follow=(), closes=None)
    texts = {
        "one": "moved {int:3-9} of 12 in {short}",
        "two": "moved 3 of {int:1-99} in 0.25",
        "three": "moved {int:3-9} of 12 at {short}",
        "begin": "move begins",
        "end": "move ends",
    }
    families = tuple(
        replace(some, id=name, template=text, closes="begin" if name == "end" else None) for name, text in texts.items()
    )
    found = owners(Inventory(labels=(), causes=(), families=families))
    assert found["one"] == found["two"] == held_for("one")
    assert found["three"] == held_for("three")
    assert found["begin"] == found["end"] == held_for("begin")


def test_splits_of_unseen_lines_print_only_unseen_ones() -> None:
    assert line_rules("test_unseen_lines") == ("test", True)
    assert line_rules("train") == line_rules("test_seen") == line_rules("test_unseen_dialect") == ("train", False)


def test_a_report_like_one_of_an_earlier_split_is_drawn_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def bare(split: str, index: int) -> Job:
        # The same seed gives the same bytes, whatever the split, where both print the families of training.
        return Job(split=split, index=index, seed="one", label="desync", cause="early_stop_on_one_rank", size="short",
                   blind=False)  # fmt: skip

    monkeypatch.setattr("train.simulate.emit.jobs", lambda *_: [bare("train", 0), bare("test_seen", 1)])
    manifest: Any = corpus(tmp_path, workers=1)
    assert manifest["drawn_anew"] == {"one": 1}
    texts = {
        "".join(p.read_text() for p in sorted((tmp_path / split).glob("*/logs/*"))) for split in ("train", "test_seen")
    }
    assert len(texts) == 2
    assert splits.faults(tmp_path) == []


def test_only_the_whole_corpus_can_be_frozen(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="only the whole corpus"):
        splits.freeze({"scale": 0.1}, tmp_path / "splits.json")


def test_what_differs_from_the_frozen_file_is_named(tmp_path: Path, known: dict[str, Any]) -> None:
    path = tmp_path / "splits.json"
    path.write_text(json.dumps(known))
    keys = ("incidents", "labels", "with_decoy", "sha256")
    manifest = {key: value for key, value in known.items() if key != "folders"}
    manifest["splits"] = {name: {key: row[key] for key in keys} for name, row in known["splits"].items()}
    assert splits.differences(manifest, path) == []
    manifest["splits"]["val"]["sha256"] = "0"
    assert splits.differences(manifest, path) == ["val: sha256 is not the frozen one"]


def test_the_inventory_of_the_checkout_is_what_is_simulated() -> None:
    assert inventory() == load()
