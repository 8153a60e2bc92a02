"""The fault lab: the table of its README."""

from __future__ import annotations

from pathlib import Path

from tests.train.lab_making import first_of, planned
from train.lab.plan import Recording
from train.lab.table import Told, rendered, totals, write_into


def _told(recording: Recording, found: bool | None, *blamed: int, **incident: object) -> Told:
    content = {"label": recording.fault.label, **incident}
    return Told(recording=recording, incident=content, line="a | b", dumps=2, found=found, blamed=blamed)


def test_the_table_has_a_row_for_each_fault_and_wrapper() -> None:
    reads = [r for r in planned() if r.fault.name == "slow_read" and r.world == 4 and not r.transcribed]
    told = [_told(r, True, 2, waiting_ranks=[0, 1, 3], timeout_s=8.0) for r in reads]
    told.append(_told(first_of("slow_save"), None))
    text = rendered(told)
    rows = [line for line in text.split("\n") if line.startswith("| slow_")]
    assert len(rows) == 4
    assert r"`a \| b` | 0, 1, 3 | yes | 2 of 4 | right |" in rows[1]
    assert rows[0].startswith("| slow_save (test) |")
    assert rows[0].endswith("| - |")
    assert "3 of 3 read as what they are" in text


def test_totals_count_the_guilty_ranks_of_those_that_were_read() -> None:
    reads = [r for r in planned() if r.fault.name == "slow_read" and r.world == 4][:3]
    told = [_told(reads[0], True, 2), _told(reads[1], True), _told(reads[2], True, 1)]
    counted = totals(told)[1]
    assert "there are dumps: right in 1 of 3 (none named in 1, another in 1)" in counted
    assert "without their dumps: right in 0 of 3 (none named in 3, another in 0)" in counted
    assert "recordings without dumps: right in 0 of 0" in counted
    link = first_of("narrow_link")
    assert "one is shown absent in 1 of 2" in totals([_told(link, True), _told(link, True, 1)])[1]


def test_the_table_replaces_its_older_self(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("# Head\n")
    write_into(path, "first\n")
    write_into(path, "second\n")
    assert "first" not in path.read_text()
    assert path.read_text().startswith("# Head\n")
    assert path.read_text().count("second") == 1
