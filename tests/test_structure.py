from __future__ import annotations

import pytest

from fsdpclassify import structure
from fsdpclassify.features import extract
from fsdpclassify.reading import find
from fsdpclassify.records import Incident
from fsdpclassify.sources import from_text
from fsdpclassify.structure import Ground, grounds
from fsdpclassify.vector import LEDGER_FACTS

TIMEOUT = (
    "[rank{rank}]:[E512 21:10:0{second}.118820344 ProcessGroupNCCL.cpp:689] [Rank {rank}] Watchdog caught collective"
    " operation timeout: WorkNCCL(SeqNum=7, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)=600000) ran for"
    " 600013 milliseconds before timing out."
)


def _timeout(rank: int, op: str = "ALLREDUCE", numel: int = 1, second: int = 7) -> str:
    return TIMEOUT.format(rank=rank, op=op, numel=numel, second=second)


def _incident(*lines: str) -> Incident:
    (found,) = find(from_text(["\n".join(lines) + "\n"])).incidents
    return found


def _ground(name: str, *lines: str) -> Ground | None:
    return next((g for g in grounds(_incident(*lines)) if g.name == name), None)


def test_every_group_names_facts_of_the_ledger_once() -> None:
    names = [fact for _, facts, _, _ in structure._GROUPS for fact in facts]
    assert set(names) <= set(LEDGER_FACTS)
    assert len(names) == len(set(names))
    assert len({name for name, *_ in structure._GROUPS}) == len(structure._GROUPS)
    assert all(why for *_, why in structure._GROUPS)


def test_ranks_in_one_and_the_same_call_are_no_ground() -> None:
    assert _ground("shapes", _timeout(0), _timeout(1)) is None


def test_one_line_for_each_call_that_ranks_stand_in() -> None:
    found = _ground("shapes", _timeout(0), _timeout(1), _timeout(2, "BROADCAST"))
    assert found is not None
    assert [e.line.number for e in found.events] == [1, 3]
    assert LEDGER_FACTS.index("ops_differ") in found.columns


def test_many_lines_are_cut_to_four() -> None:
    found = _ground("shapes", *(_timeout(r, numel=64 + r) for r in range(7)))
    assert found is not None
    assert len(found.events) == 4


@pytest.mark.parametrize(("first", "name"), [(True, "early_error"), (False, "late_error")])
def test_an_error_speaks_only_if_it_came_first(first: bool, name: str) -> None:
    error = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    lines = (error, _timeout(0), _timeout(1)) if first else (_timeout(0), _timeout(1), error)
    found = _ground(name, *lines)
    assert found is not None
    assert found.events[0].line.text == error
    assert _ground("late_error" if first else "early_error", *lines) is None


def test_the_columns_of_a_ground_hold_something() -> None:
    error = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    x = _incident(error, _timeout(0), _timeout(1, "BROADCAST"), _timeout(2))
    ledger = extract(x, (None,)).ledger
    for ground in grounds(x):
        assert any(ledger[c] for c in ground.columns), ground.name


def test_a_monitored_barrier_names_who_did_not_come() -> None:
    line = "[rank0]: RuntimeError: [Rank 0]: Ranks 2 failed to pass monitoredBarrier in 30000 ms"
    found = _ground("barrier", line)
    assert found is not None
    assert found.events[0].ranks == (2,)


def test_words_alone_are_no_ground() -> None:
    assert grounds(_incident("NCCL timeout error during FSDP parameter shard collection")) == []
