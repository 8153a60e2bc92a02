"""Who is waited for: one group, several groups, circles, and dumps that are not there."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsdpclassify.recorder.collecting import Recorded
from fsdpclassify.recorder.dumps import read_dump
from fsdpclassify.recorder.events import events_of
from fsdpclassify.recorder.failures import DumpError
from fsdpclassify.recorder.wavefront import Front, find_front

Plain = dict[str, Any]
TP0, TP1, DP0, DP1 = ("1", "tp"), ("2", "tp"), ("3", "dp"), ("4", "dp")
MESH = {
    "0": ("default_pg", range(4)),
    "1": ("tp", (0, 1)),
    "2": ("tp", (2, 3)),
    "3": ("dp", (0, 2)),
    "4": ("dp", (1, 3)),
}
OWN = {0: ("0", "1", "3"), 1: ("0", "1", "4"), 2: ("0", "2", "3"), 3: ("0", "2", "4")}


def front(dumps: Mapping[int, Any]) -> Front:
    return find_front({rank: read_dump(found) for rank, found in dumps.items()})


def mesh_dump(make: ModuleType, rank: int, works: list[Plain]) -> Plain:
    """A dump of a rank of a 2 x 2 mesh; works name their groups by number."""
    found: Plain = make.dump(works, groups={name: MESH[name] for name in OWN[rank]})
    return found


@pytest.mark.parametrize(
    ("shape", "idle", "absent", "odd"),
    [
        ("desync", (), (), (1,)),
        ("missing_rank", (), (2,), ()),
        ("lagging_rank", (3,), (), ()),
        ("mismatch", (), (), (0,)),
    ],
)
def test_the_four_shapes(
    make: ModuleType, shape: str, idle: tuple[int, ...], absent: tuple[int, ...], odd: tuple[int, ...]
) -> None:
    found = front(getattr(make, shape)())
    assert found.is_incident
    assert (found.idle, found.absent, found.stalled) == (idle, absent, ())
    assert [m.odd for m in found.mismatches] == ([odd] if odd else [])
    assert found.initiating == (idle or absent or odd)


def test_dumps_of_a_finished_run_are_no_incident(make: ModuleType) -> None:
    found = front(make.healthy())
    assert not found.is_incident
    assert found.waits == {}


def test_counters_alone_show_who_is_behind(make: ModuleType) -> None:
    empty = {r: make.dump([], groups=make.WORLD, status={"0": (14 if r else 11, 11)}) for r in range(4)}
    found = front(empty)
    assert (found.idle, sorted(found.waits)) == ((0,), [1, 2, 3])
    assert found.waits[1].work.seq == 12


def test_counters_alone_that_cannot_be_compared_show_nothing(make: ModuleType) -> None:
    mixed = {r: make.dump([], groups=make.WORLD, status={"0": (90 + 2 * r, 90 + r)}) for r in range(4)}
    assert not front(mixed).is_incident
    healthy = {r: make.dump([], groups=make.WORLD, status={"0": (12, 12)}) for r in range(4)}
    assert not front(healthy).is_incident


def test_a_call_that_ran_out_of_time_is_an_incident_that_names_nobody(make: ModuleType) -> None:
    stuck = [make.work(12, is_done=False, retired=True)]
    found = front(make.set_of_four(dict.fromkeys(range(4), stuck)))
    assert found.is_incident
    assert found.initiating == ()


def test_a_call_in_flight_everywhere_that_nobody_gave_up_is_none(make: ModuleType) -> None:
    stuck = [make.work(12, is_done=False)]
    assert not front(make.set_of_four(dict.fromkeys(range(4), stuck))).is_incident


def test_a_rank_that_is_behind_because_it_waits_elsewhere_is_not_named(make: ModuleType) -> None:
    def tp(n: int, group: tuple[str, str], done: bool) -> Plain:
        return dict(make.work(n, group=group, pg_id=1, is_done=done, at=2 * n))

    def dp(n: int, group: tuple[str, str], done: bool) -> Plain:
        return dict(make.work(n, group=group, pg_id=2, op=make.REDUCE, is_done=done, at=2 * n + 1))

    found = front(
        {
            0: mesh_dump(make, 0, [tp(1, TP0, True), dp(1, DP0, True), tp(2, TP0, True), dp(2, DP0, False)]),
            1: mesh_dump(make, 1, [tp(1, TP0, True), dp(1, DP1, True), tp(2, TP0, True), dp(2, DP1, False)]),
            # Rank 2 has not come to the reduction: it stands in the gather that rank 3 never joined.
            2: mesh_dump(make, 2, [tp(1, TP1, True), dp(1, DP0, True), tp(2, TP1, False)]),
            3: mesh_dump(make, 3, [tp(1, TP1, True), dp(1, DP1, True)]),
        }
    )
    assert found.initiating == (3,)
    assert found.waits[0].behind == (2,)
    assert found.waits[2].behind == (3,)


def test_a_rank_whose_device_stopped_is_named_although_it_enqueued_more(make: ModuleType) -> None:
    done = make.steps(12)
    late = [make.work(n, is_done=False) for n in (12, 13, 14, 15)]
    found = front(
        {
            0: make.dump([*done, make.work(13, is_done=False)], groups=make.WORLD),
            1: make.dump([*make.steps(11), *late], groups=make.WORLD),
            2: make.dump([*done, make.work(13, is_done=False)], groups=make.WORLD),
            3: make.dump([*done, make.work(13, is_done=False)], groups=make.WORLD),
        }
    )
    assert (found.stalled, found.initiating) == ((1,), (1,))
    assert found.waits[1].ahead == (0, 2, 3)


def test_a_broadcast_may_end_early_on_its_source(make: ModuleType) -> None:
    stuck = [make.work(12, op=make.BROADCAST, is_done=False)]
    done = [make.work(12, op=make.BROADCAST)]
    found = front(make.set_of_four({0: done, 1: stuck, 2: stuck, 3: stuck}))
    assert found.stalled == ()


def test_two_ranks_that_wait_for_each_other_are_not_named(make: ModuleType) -> None:
    found = front(
        {
            0: mesh_dump(make, 0, [make.work(1, group=TP0, pg_id=1, is_done=False)]),
            1: mesh_dump(make, 1, [make.work(1, group=DP1, pg_id=2, is_done=False)]),
            3: mesh_dump(make, 3, [make.work(1, group=TP1, pg_id=1, is_done=False)]),
            2: mesh_dump(make, 2, [make.work(1, group=DP0, pg_id=2, is_done=False)]),
        }
    )
    assert found.is_incident
    assert found.initiating == ()


def test_sends_are_followed_to_the_peer_in_its_own_group(make: ModuleType) -> None:
    pipe = ("9", "pp")
    groups = {"0": ("default_pg", range(6)), "9": ("pp", (1, 3, 5))}
    send = make.work(4, op="nccl:send 0->1", group=pipe, is_p2p=True, is_done=False)
    recv = make.work(7, op="nccl:recv 1<-2", group=pipe, is_p2p=True, is_done=False)
    found = front(
        {
            1: make.dump([send], groups=groups),
            3: make.dump([recv], groups=groups),
            5: make.dump([make.work(3, op="nccl:send 2->1", group=pipe, is_p2p=True)], groups=groups),
        }
    )
    assert (found.waits[1].behind, found.waits[3].behind) == ((3,), (5,))
    assert found.initiating == (5,)


def test_both_ends_in_one_transfer_name_nobody(make: ModuleType) -> None:
    groups = {"0": ("default_pg", range(2))}
    send = make.work(4, op="nccl:send 0->1", is_p2p=True, is_done=False, retired=True)
    recv = make.work(9, op="nccl:recv 1<-0", is_p2p=True, is_done=False, retired=True)
    found = front({0: make.dump([send], groups=groups), 1: make.dump([recv], groups=groups)})
    assert found.is_incident
    assert found.initiating == ()


def test_the_calls_of_a_batch_are_done_when_the_batch_is(make: ModuleType) -> None:
    def batch(seq: int, *, own: int, peer: int, is_done: bool) -> list[Plain]:
        calls = (f"nccl:send {own}->{peer}", f"nccl:recv {own}<-{peer}")
        parts = [make.work(seq, op=op, is_p2p=True, is_done=False) for op in calls]  # never marked as done
        return [*parts, make.work(seq, op="nccl:coalesced", is_p2p=True, is_done=is_done)]

    done = {
        r: make.dump(batch(1, own=r, peer=1 - r, is_done=True), groups={"0": ("default_pg", (0, 1))}) for r in (0, 1)
    }
    assert front(done).waits == {}
    done[0]["entries"] += batch(2, own=0, peer=1, is_done=False)
    found = front(done)
    assert found.initiating == (1,)
    assert found.waits[0].work.operation.name == "SEND"


def test_a_batch_of_collectives_is_one_call(make: ModuleType) -> None:
    def batch(done: bool) -> list[Plain]:
        parts = [make.work(12, op=op, is_done=False, size=size) for op, size in ((make.GATHER, 4), (make.REDUCE, 9))]
        return [*parts, make.work(12, op="nccl:coalesced", is_done=done)]

    assert front(make.set_of_four(dict.fromkeys(range(4), batch(True)))).waits == {}
    found = front(make.set_of_four({0: batch(False), 1: batch(False), 2: batch(False), 3: []}))
    assert found.mismatches == ()
    assert found.waits[0].work.operation.name == "COALESCED"
    assert found.initiating == (3,)


def test_counters_that_count_sends_say_nothing_about_collectives(make: ModuleType) -> None:
    send = make.work(90, op="nccl:send 0->1", is_p2p=True, at=1)
    stuck = make.work(12, is_done=False, at=2)
    dumps = {r: make.dump([send, stuck], groups=make.WORLD, status={"0": (90, 90)}) for r in (0, 1, 2)}
    dumps[3] = make.dump([], groups=make.WORLD, status={"0": (90, 90)})
    found = front(dumps)
    assert (found.stalled, found.idle) == ((), (3,))


def test_without_descriptions_ranks_are_those_that_recorded(make: ModuleType) -> None:
    dumps = make.lagging_rank()
    for found in dumps.values():
        del found["pg_config"]
    assert front(dumps).initiating == (3,)


def test_uneven_all_to_alls_are_no_mismatch(make: ModuleType) -> None:
    rows = {r: [make.work(12, op="nccl:all_to_all", size=100 + r, is_done=False, retired=True)] for r in range(4)}
    assert front(make.set_of_four(rows)).mismatches == ()


def test_two_equal_sides_have_no_odd_one(make: ModuleType) -> None:
    one, two = [make.work(12, is_done=False)], [make.work(12, op=make.ALLREDUCE, is_done=False)]
    found = front(make.set_of_four({0: one, 1: one, 2: two, 3: two}))
    assert [m.sides for m in found.mismatches] == [((0, 1), (2, 3))]
    assert found.initiating == ()


def test_many_absent_ranks_are_not_named(make: ModuleType) -> None:
    stuck = [make.work(12, is_done=False)]
    found = front(make.set_of_four({0: stuck}))
    assert found.is_incident
    assert found.initiating == ()


def test_an_absent_rank_whose_nearest_peer_waits_elsewhere_kept_pace(make: ModuleType) -> None:
    pairs = {rank: (str(1 + rank // 2), "tp") for rank in range(8)}
    sides = {rank: (str(5 + rank % 2), "dp") for rank in range(8)}

    def dump(rank: int, group: tuple[str, str]) -> Plain:
        described = {
            "0": ("default_pg", range(8)),
            pairs[rank][0]: ("tp", (rank - rank % 2, rank - rank % 2 + 1)),
            sides[rank][0]: ("dp", tuple(range(rank % 2, 8, 2))),
        }
        return dict(make.dump([make.work(3, group=group, pg_id=1, is_done=False)], groups=described))

    # Ranks 1 and 7 left no dump. Rank 6 stands in the pair with 7; rank 0 went on past the pair with 1.
    dumps = {rank: dump(rank, pairs[rank] if rank == 6 else sides[rank]) for rank in (0, 2, 3, 4, 5, 6)}
    assert front(dumps).absent == (7,)


def test_a_present_idle_rank_outweighs_absent_ones(make: ModuleType) -> None:
    dumps = make.lagging_rank()
    del dumps[1]
    assert front(dumps).initiating == (3,)


_TRUTH = {"gpu_error_1st": (12, 14), "lock_gil_1st": (9, 14)}


@pytest.mark.parametrize("name", _TRUTH)
def test_real_dumps_of_two_faults(benchmark: ModuleType, name: str) -> None:
    folder = benchmark.DEFAULT_FOLDER / name
    if not folder.is_dir():
        pytest.skip("the real dumps are not beside this checkout")
    dumps = benchmark.read_set(folder)
    found = benchmark.measure(dumps, _TRUTH[name], draws=100, seed=1)
    assert sorted(dumps) == list(range(16))
    assert found["whole"]["exact"] == 1
    assert found["one removed"]["exact"] == 14
    assert found["one removed"]["wrong rank"] == 0
    assert found["three removed"]["exact"] >= 55
    assert found["three removed"]["wrong rank"] <= 8


_WORK = st.fixed_dictionaries(
    {
        "collective_seq_id": st.integers(-1, 6) | st.just("7") | st.integers(2**62, 2**70),
        "p2p_seq_id": st.integers(-1, 4),
        "is_p2p": st.booleans(),
        "process_group": st.tuples(st.sampled_from(["0", "1", "x"]), st.just("d")) | st.just("0"),
        "pg_id": st.integers(0, 3),
        "profiling_name": st.sampled_from(
            ["nccl:all_reduce", "nccl:send 0->1", "nccl:recv 1<-9", "gloo:barrier", "", None]
        ),
        "state": st.sampled_from(["scheduled", "started", "completed", 3]),
        "retired": st.booleans(),
        "time_created_ns": st.integers(-5, 2**66) | st.none(),
        "timeout_ms": st.integers(-1, 2**70),
        "input_sizes": st.just([[2]]) | st.just([]) | st.none(),
    }
)
_DUMP = st.fixed_dictionaries(
    {
        "entries": st.lists(_WORK, max_size=6),
        "pg_config": st.dictionaries(
            st.sampled_from(["0", "1", "x"]),
            st.fixed_dictionaries(
                {"ranks": st.sampled_from(["[0, 1, 2]", "[1]", "[9, 9, 2]", "[]"]), "name": st.just("0")}
            ),
            max_size=3,
        ),
        "pg_status": st.dictionaries(
            st.sampled_from(["0", "1", "2"]),
            st.fixed_dictionaries({f"last_{n}_collective": st.integers(-1, 9) for n in ("enqueued", "completed")}),
            max_size=3,
        ),
    }
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.integers(0, 5), _DUMP, min_size=1, max_size=4), st.none() | st.floats(-1e5, 1e5))
def test_any_set_of_dumps_gives_events_and_no_error(dumps: dict[int, Any], shift: float | None) -> None:
    try:
        found = front(dumps)
    except DumpError:
        return
    events = events_of(Recorded(front=found, sources={rank: rank for rank in dumps}), shift)
    assert {e.rank for e in events if e.name == "dump"} == set(dumps)
    assert set(found.initiating) & set(found.idle) == set(found.idle)
    assert all(e.line.text for e in events)
