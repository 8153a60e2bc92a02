from collections.abc import Callable

from fsdpclassify.records import Event, EventKind

Events = Callable[..., list[Event]]
REPORT = (
    "#0-0 (4f1c8a7b2d9e0a31) MISMATCH\n"
    "  Communicator ranks have different AllGather operation counts\n"
    "  7 ranks have launched up to operation 4412\n"
    "  Rank 5 has launched up to operation 4410 -- GPU 1 managed by process 3127 on node 10.1.0.9\n"
)


def lagging(found: list[Event]) -> list[tuple[int, ...]]:
    return [e.ranks for e in found if e.kind is EventKind.JOINED and e.name == "lagging"]


def test_the_rank_behind_all_others_of_the_world_lags(events: Events) -> None:
    assert lagging(events(f"world_size=8\n{REPORT}")) == [(5,)]


def test_ranks_of_an_unknown_or_smaller_communicator_are_no_global_ranks(events: Events) -> None:
    assert lagging(events(REPORT)) == []
    assert lagging(events(f"world_size=16\n{REPORT}")) == []


def test_a_rank_ahead_does_not_lag(events: Events) -> None:
    assert lagging(events(f"world_size=8\n{REPORT.replace('4410', '4413')}")) == []
