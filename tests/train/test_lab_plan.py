"""The fault lab: its tables and its plan."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.train.lab_making import ROOT, planned
from train.lab.faults import SPLITS, load_faults
from train.lab.plan import Recording


def test_there_are_enough_faults_for_every_label() -> None:
    labels = {label["id"] for label in _taxonomy()["label"]}
    assert len(load_faults()) >= 25
    assert {f.label for f in load_faults()} == labels | {"no_timeout"}


def test_causes_are_in_the_catalogue_under_the_same_label() -> None:
    catalogue = {cause["id"]: cause["label"] for cause in _taxonomy()["cause"]}
    assert all(catalogue[f.cause_id] == f.label for f in load_faults() if f.cause_id)


def test_actions_of_the_table_are_known_to_the_scripts() -> None:
    code = "".join(p.read_text() for p in (ROOT / "train/lab/app").glob("*.py"))
    for fault in load_faults():
        if (name := fault.profile.get("do")) is not None:
            assert f"def {name}(" in code or f'"{name}"' in code, name


def test_splits_share_neither_faults_nor_scripts() -> None:
    whats: tuple[Callable[[Recording], str], ...] = (lambda r: r.fault.name, lambda r: r.script)
    for what in whats:
        by_split = [{what(r) for r in planned() if r.fault.split == split} for split in SPLITS]
        assert not by_split[0] & by_split[1]
        assert not by_split[0] & by_split[2]
        assert not by_split[1] & by_split[2]


def test_ids_are_neutral_and_unique() -> None:
    ids = [r.id for r in planned()]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"lab-[0-9a-f]{8}", i) for i in ids)


def test_the_plan_begins_with_every_fault_once() -> None:
    assert [r.fault.name for r in planned()[: len(load_faults())]] == [f.name for f in load_faults()]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('split = "lab_rest"', "unknown split"),
        ('split = "lab_test"\nwrappers = ["zero3"]', "unknown wrapper"),
        ('split = "lab_test"\nscripts = ["pretrain"]', "not scripts of"),
        ('split = "lab_test"\nspeed = 3', "speed"),
    ],
)
def test_a_faulty_table_is_refused_by_name(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "faults.toml"
    path.write_text(f'[[fault]]\nname = "a"\nlabel = "other"\ncause = "b"\n{line}\n')
    with pytest.raises(ValueError, match=message):
        load_faults(path)


def test_second_seeds_keep_the_wrapper_and_change_the_world() -> None:
    seconds = {r.fault.name: r for r in planned() if r.seed == 11}
    firsts = {r.fault.name: r for r in planned() if r.seed == 0}
    assert len(seconds) == sum(not f.runs for f in load_faults())
    assert all(seconds[name].wrapper == first.wrapper for name, first in firsts.items() if not first.fault.runs)
    assert all(max(r.ranks, default=0) < r.world for r in planned())
    assert {2, 3, 5, 6, 8} <= {r.world for r in seconds.values()}
    assert all(r.world == 4 for r in seconds.values() if (r.fault.outside or "").startswith(("net:", "node:")))


def _taxonomy() -> dict[str, Any]:
    return tomllib.loads((ROOT / "data" / "taxonomy.toml").read_text())
