# ruff: noqa: E501
"""Clocks of hosts: told apart from the same completed steps, and never from the step that did not complete."""

from __future__ import annotations

import pytest

from fsdpclassify.reading import find
from fsdpclassify.records import Incident
from fsdpclassify.sources import from_text

AHEAD = 90


def clock(second: float) -> str:
    whole = int(second)
    return f"2026-03-05T{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}.{round(second % 1 * 1000):03d}Z"


def steps(node: str, rank: int, count: int, ahead: float, jitter: float = 0.0, first: int = 0) -> str:
    return "".join(
        f"{clock(14400 + 10 * n + ahead + jitter * (n % 3))} [pod/{node}/train] [rank{rank}]: step {n} loss: 2.1\n"
        for n in range(first, first + count)
    )


def timeout(node: str, rank: int, second: float) -> str:
    return (
        f"{clock(second)} [pod/{node}/train] [rank{rank}]:[E305 00:00:00.1 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=8, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600000 milliseconds before timing out.\n"
    )


def died(node: str, rank: int, second: float) -> str:
    return f"{clock(second)} [pod/{node}/train] [rank{rank}]: ValueError: bad sample\n"


def incident(*texts: str) -> Incident:
    (found,) = find(from_text(texts)).incidents
    return found


def offsets(found: Incident) -> dict[int, float | None]:
    return {row.rank: row.clock_offset_s for row in found.ledger}


def test_offsets_come_from_common_steps() -> None:
    found = incident(
        steps("a-0", 0, 6, 0) + timeout("a-0", 0, 15100),
        steps("a-1", 1, 6, 0),
        steps("b-2", 2, 6, AHEAD, jitter=0.2),
    )
    assert offsets(found) == {0: 0.0, 1: 0.0, 2: pytest.approx(AHEAD, abs=0.5)}


def test_four_common_steps_are_too_few() -> None:
    found = incident(steps("a-0", 0, 4, 0) + timeout("a-0", 0, 15100), steps("b-1", 1, 4, AHEAD))
    assert offsets(found) == {0: None, 1: None}


def test_times_that_scatter_are_no_clock() -> None:
    found = incident(steps("a-0", 0, 9, 0) + timeout("a-0", 0, 15100), steps("b-1", 1, 9, AHEAD, jitter=4.0))
    assert offsets(found) == {0: None, 1: None}


def test_steps_of_two_attempts_are_no_common_steps() -> None:
    two = steps("b-1", 1, 9, 0) + steps("b-1", 1, 9, 2000)
    found = incident(steps("a-0", 0, 9, 0) + timeout("a-0", 0, 15100), two)
    assert offsets(found) == {0: None, 1: None}


@pytest.mark.parametrize(("real", "failed"), [(14500.0, (1,)), (15130.0, ())])
def test_a_failure_is_placed_by_the_common_clock(real: float, failed: tuple[int, ...]) -> None:
    """The clock of the failed rank's host is 10 min behind: by its own stamps it failed long before the wait."""
    behind = -600.0
    text = steps("a-0", 0, 6, 0) + timeout("a-0", 0, 15100)
    found = incident(text, steps("b-1", 1, 6, behind) + died("b-1", 1, real + behind))
    assert found.failed == failed


def test_one_host_has_no_offset() -> None:
    found = incident(steps("a-0", 0, 6, 0) + timeout("a-0", 0, 15100) + steps("a-0", 1, 6, 0))
    assert offsets(found) == {0: None, 1: None}
