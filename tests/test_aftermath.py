"""Errors printed only after the wait was given up: the reason of it, or what came of it."""

from __future__ import annotations

import pytest

from fsdpclassify.reading import find
from fsdpclassify.records import EventKind, Incident
from fsdpclassify.sources import from_text

STEPS = "".join(f"2026-08-17 05:10:{40 + n} global_step {n} loss 0.44\n" for n in range(4))
TIMEOUTS = "".join(
    f"[rank{r}]:[E817 05:41:22.117604381 ProcessGroupNCCL.cpp:685] [Rank {r}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800021 "
    "milliseconds before timing out.\n"
    for r in (0, 2, 3)
)
OWN = "FloatingPointError: non-finite values in sampled outcomes"
GONE = (
    "RuntimeError: Connection reset by peer",
    "ConnectionRefusedError: [Errno 111] Connection refused",
    "OSError: [Errno 32] Broken pipe",
    "torch.distributed.DistNetworkError: The client socket has failed to connect to node0:29500",
    "KeyboardInterrupt",
)


def incident(text: str) -> Incident:
    (only,) = find(from_text([text])).incidents
    return only


def errors(x: Incident) -> list[str]:
    return [e.name or "" for e in x.events if e.kind is EventKind.ERROR]


def raised(error: str, rank: int = 1) -> str:
    return f"[rank{rank}]: Traceback (most recent call last):\n[rank{rank}]: {error}\n"


@pytest.mark.parametrize("error", GONE)
def test_an_absent_rank_that_finds_its_peers_gone_had_another_reason(error: str) -> None:
    x = incident(STEPS + TIMEOUTS + raised(error))
    assert errors(x) == []
    assert x.missing == (1,) or 1 not in x.waiting


def test_a_traceback_with_a_cause_of_its_own_may_only_be_printed_late() -> None:
    assert errors(incident(STEPS + TIMEOUTS + raised(OWN))) == ["FloatingPointError"]


@pytest.mark.parametrize(("clock", "kept"), [("05:12:00", True), ("05:35:30", False)])
def test_a_rank_that_was_at_work_far_into_the_wait_had_not_failed(clock: str, kept: bool) -> None:
    life = f"[rank1]: 2026-08-17 {clock},000 INFO validation: 80 % of the samples done\n"
    assert errors(incident(STEPS + life + TIMEOUTS + raised(OWN))) == ["FloatingPointError"] * kept


def test_what_came_before_the_wait_was_given_up_stays() -> None:
    early = raised("RuntimeError: Connection reset by peer")
    assert errors(incident(STEPS + early + TIMEOUTS)) == ["RuntimeError"]


def test_a_server_of_files_is_no_peer() -> None:
    error = "ConnectionError: HTTPSConnectionPool(host='hub', port=443): Connection refused"
    assert errors(incident(STEPS + TIMEOUTS + raised(error))) == ["ConnectionError"]
