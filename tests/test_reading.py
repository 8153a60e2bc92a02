from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from fsdpclassify.masking import mask_text
from fsdpclassify.parsing import RULES
from fsdpclassify.reading import ANCHORS, find, first_fatal_error
from fsdpclassify.records import FatalError, InputStatus
from fsdpclassify.report.structured import fatal_as_dict
from fsdpclassify.sources import collect, from_text

OOM = "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
TIMEOUT = (
    "[rank0]:[E512 21:10:07.118820344 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600013"
    " milliseconds before timing out."
)


def _fatal(*lines: str) -> FatalError | None:
    return first_fatal_error(find(from_text(["\n".join(lines) + "\n"])))


def test_a_log_without_an_incident_names_what_ended_it() -> None:
    assert _fatal("starting", OOM, "[rank2]: bye") == FatalError(path="<text>", line=2, rank=2, text=OOM)


def test_a_healthy_log_names_nothing() -> None:
    assert _fatal("starting", "[rank0]: step 1 loss 2.1", "[rank0]: NCCL_TIMEOUT=1800") is None


def test_beside_an_incident_there_is_no_fatal_error() -> None:
    assert _fatal(OOM, TIMEOUT) is None


def test_without_clocks_the_first_line_is_the_first_error() -> None:
    found = _fatal("[rank1]: ValueError: bad split", OOM)
    assert found is not None
    assert found.line == 1


def test_by_clock_the_earlier_error_is_first_wherever_it_stands() -> None:
    late = "2026-05-12T21:10:09.5Z [rank0]: ValueError: bad split"
    early = "2026-05-12T21:10:01.5Z [rank1]: torch.OutOfMemoryError: CUDA out of memory."
    found = _fatal(late, early)
    assert found is not None
    assert found.line == 2


def test_a_long_fatal_line_is_cut() -> None:
    found = _fatal("[rank1]: ValueError: " + "y" * 9000)
    assert found is not None
    assert len(found.text) == 4000
    assert len(fatal_as_dict(found)["text"]) == 500


def test_a_secret_at_the_end_of_what_is_shown_is_masked_before_the_cut() -> None:
    found = _fatal("[rank1]: ValueError: " + "y" * 460 + " hf_" + "aB3dE5gH7j" * 4)
    assert found is not None
    assert "hf_aB3d" in found.text[:500]
    assert "hf_aB3d" not in fatal_as_dict(replace(found, text=mask_text(found.text)))["text"]


def test_inputs_that_cannot_be_read_are_rows(tmp_path: Path) -> None:
    (tmp_path / "empty.log").write_bytes(b"")
    (tmp_path / "a.log").write_text(TIMEOUT + "\n")
    found = find(collect([tmp_path / "a.log", tmp_path / "empty.log", tmp_path / "none.log"]))
    assert [row.status for row in found.inputs] == [InputStatus.OK, InputStatus.EMPTY, InputStatus.UNREADABLE]
    assert len(found.incidents) == 1
    assert len(found.kinds) == 3


def test_nothing_at_all_is_no_incident() -> None:
    found = find([])
    assert (found.inputs, found.incidents, found.lines) == ((), (), ())
    assert first_fatal_error(found) is None


def test_hung_makes_the_end_of_the_log_a_detection() -> None:
    sources = from_text(["[rank0]: step 1 loss 2.1\n[rank0]: step 2 loss 2.0\n"])
    assert find(sources).incidents == ()
    (incident,) = find(sources, hung=True).incidents
    assert incident.detection.line.number == 2


@pytest.mark.parametrize("anchor", ANCHORS, ids=lambda a: a.name)
def test_an_anchor_is_plain_enough_for_any_engine(anchor: object) -> None:
    pattern = anchor.pattern.decode()  # type: ignore[attr-defined]
    re.compile(pattern)
    assert not re.search(r"\(\?P|\(\?[=!<]|\\\d", pattern)


def test_every_rule_that_detects_is_scanned_for() -> None:
    names = {anchor.name for anchor in ANCHORS}
    assert names <= {rule.name for rule in RULES}
    missed = {rule.name for rule in RULES if rule.detection} - names
    # A stack in a collective is printed on nearly every line of a stack dump, which is small.
    assert missed <= {"stack_in_collective"}
