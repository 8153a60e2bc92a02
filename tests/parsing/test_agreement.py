# ruff: noqa: E501
from collections.abc import Callable

import pytest

from fsdpclassify.records import Event, EventKind, Line

Events = Callable[..., list[Event]]
Lines = Callable[..., list[Line]]


def test_desync_report(events: Events) -> None:
    found = events(
        "\t - [3] Timeout at collective: ALLREDUCE, #912\n"
        "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
        "\t   - [6] joined but didn't finish collective #912 (count from 1)\n"
        "\t     [1, 2] finished collective #911, but didn't join collective #912 (count from 1)\n"
        "\t     [0, 3] started ALLREDUCE\n"
    )
    assert [(e.name, e.ranks) for e in found] == [("joined", (6,)), ("lagging", (1, 2)), ("state", (0, 3))]


def test_ranks_that_never_joined(events: Events) -> None:
    (found,) = events(
        " - To our best knowledge, ranks [4, 5] are the lagging ranks that caused this timeout. They never joined any collectives"
    )
    assert (found.name, found.ranks) == ("lagging", (4, 5))


@pytest.mark.parametrize(
    ("own", "other", "differs"),
    [
        ("SequenceNumber=77, OpType=ALLREDUCE, TensorShape=[1], TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda))", "SequenceNumber=77, OpType=_ALLGATHER_BASE, TensorShape=[52, 4])", "op,shape"),
        ("SequenceNumber=77OpType=BARRIER)", "SequenceNumber=78OpType=BARRIER)", "seq"),
        ("OpType=ALLREDUCE, TensorShape=[1])", "OpType=ALLREDUCE, TensorShape=[2])", "shape"),
    ],
)  # fmt: skip
def test_fingerprints(events: Events, own: str, other: str, differs: str) -> None:
    line = (
        f"RuntimeError: Detected mismatch between collectives on ranks. Rank 2 is running collective: CollectiveFingerPrint({own}, "
        f"but Rank 0 is running collective: CollectiveFingerPrint({other}.Collectives differ in the following aspects: \t Sequence number: 77vs 78"
    )
    found = [e for e in events(line) if e.kind is EventKind.MISMATCH]
    assert [(e.rank, e.peer, e.detail) for e in found] == [(2, 0, differs)]


@pytest.mark.parametrize(
    ("line", "rank", "missing"),
    [
        (
            "[rank0]:[E908 17:20:44.381220001 ProcessGroupGloo.cpp:67] [Rank 0]: Rank 21 failed to pass monitoredBarrier in 60000 ms",
            0,
            (21,),
        ),
        ("[Rank 0]: Ranks 3, 5 failed to pass monitoredBarrier in 60000 ms", 0, (3, 5)),
        ("RuntimeError: Rank 0 timed out in monitoredBarrier after 60000 ms.", 0, ()),
        (
            "RuntimeError: Rank 4 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0.",
            4,
            (),
        ),
    ],
)
def test_monitored_barrier(events: Events, line: str, rank: int | None, missing: tuple[int, ...]) -> None:
    (found,) = [e for e in events(line) if e.kind is EventKind.BARRIER]
    assert (found.rank, found.ranks) == (rank, missing)


@pytest.mark.parametrize(
    "text",
    [
        "Forward order differs across ranks: rank 2 is all-gathering 1 parameters while rank 0 is all-gathering 2 parameters",
        "RuntimeError: DDP expects same model across all ranks, but Rank 1 has 160 params, while rank 0 has inconsistent 0 params.",
        "RuntimeError: [3]: params[0] in this process with sizes [8, 4] appears not to match sizes of the same param in process 0.",
    ],
)
def test_checks_across_ranks(events: Events, text: str) -> None:
    assert [e.kind for e in events(text)] == [EventKind.MISMATCH]
