"""Layouts: pickle and JSON, with and without what some versions leave out."""

from __future__ import annotations

from types import ModuleType

import pytest

from fsdpclassify.recorder.dumps import Dump, Status, read_dump
from fsdpclassify.recorder.failures import DumpError
from fsdpclassify.recorder.loading import load
from fsdpclassify.recorder.operations import numel, read_operation
from fsdpclassify.recorder.stacks import innermost


def read(data: bytes) -> Dump:
    return read_dump(load(data))


def test_a_pickle_tells_groups_counters_calls_and_the_users_frame(make: ModuleType) -> None:
    found = read(make.as_pickle(make.lagging_rank()[3]))
    group = found.groups["0"]
    assert (group.label, group.ranks) == ("0(default_pg)", (0, 1, 2, 3))
    assert group.status == Status(enqueued=11, started=-1, completed=11)
    last = found.works[-1]
    assert (last.operation.name, last.seq, last.is_done, last.numel_in) == ("ALLREDUCE", 11, True, 1)
    assert (last.timeout_s, last.frame) == (600.0, "/job/checkpoint.py:44 in save_checkpoint")
    assert found.newest == pytest.approx(make.START_NS / 1e9 + 11 * 0.25)


def test_json_tells_the_same_but_for_the_frames(make: ModuleType) -> None:
    whole = make.desync()[1]
    for works in (whole["entries"], []):
        plain = {**whole, "entries": works}
        from_pickle, from_json = read(make.as_pickle(plain)), read(make.as_json(plain))
        assert from_json.groups == from_pickle.groups
        assert [(w.seq, w.is_done, w.operation, w.created) for w in from_json.works] == [
            (w.seq, w.is_done, w.operation, w.created) for w in from_pickle.works
        ]
        assert all(w.frame is None for w in from_json.works)


@pytest.mark.parametrize("version", [f"2.{minor}" for minor in range(15)])
def test_versions_are_pairs_of_integers(make: ModuleType, version: str) -> None:
    found = read(make.as_pickle(make.dump(make.steps(2), groups=make.WORLD, version=version)))
    assert found.version == (2, int(version[2:]))
    assert len(found.works) == 2


def test_version_ten_is_newer_than_four(make: ModuleType) -> None:
    old, new = (read(make.as_pickle(make.dump([], groups=make.WORLD, version=v))) for v in ("2.4", "2.10"))
    assert new.version > old.version


def test_without_descriptions_and_in_the_oldest_layout(make: ModuleType) -> None:
    rows = make.steps(3)
    for row in rows:
        for name in ("process_group", "frames", "p2p_seq_id", "is_p2p", "timeout_ms", "input_dtypes"):
            del row[name]
        row["seq_id"] = row.pop("collective_seq_id")
    found = read(make.as_pickle({"version": "1.5", "entries": rows}))
    assert [(w.group, w.seq, w.is_p2p, w.timeout_s) for w in found.works] == [("0", n, False, None) for n in (1, 2, 3)]
    assert found.groups["0"].ranks == ()


def test_counters_find_their_group_by_order_of_creation(make: ModuleType) -> None:
    groups = {"0": ("default_pg", range(4)), "112": ("dp", (0, 2)), "35": ("tp", (0, 1))}
    works = [make.work(7, group=("35", "tp"), pg_id=4, is_done=False)]
    status = {"0": (3, 3), "4": (7, 6), "17": (9, 9)}
    found = read(make.as_pickle(make.dump(works, groups=groups, status=status)))
    assert {name: g.status.enqueued for name, g in found.groups.items() if g.status} == {"0": 3, "35": 7, "112": 9}


def test_counters_stay_nameless_where_the_order_is_contradicted(make: ModuleType) -> None:
    groups = {"0": ("default_pg", range(4)), "112": ("dp", (0, 2)), "35": ("tp", (0, 1))}
    works = [make.work(7, group=("35", "tp"), pg_id=17, is_done=False)]
    found = read(make.as_pickle(make.dump(works, groups=groups, status={"0": (3, 3), "4": (2, 2), "17": (7, 6)})))
    assert found.groups["35"].status == Status(enqueued=7, started=-1, completed=6)
    assert found.groups["112"].status is None


def test_gloo_calls_are_done_once_retired_or_counted(make: ModuleType) -> None:
    rows = [make.work(n, op="gloo:all_reduce", is_done=False, retired=n == 1) for n in (1, 2, 3)]
    found = read(make.as_pickle(make.dump(rows, status={"0": (3, 2)})))
    assert [w.is_done for w in found.works] == [True, True, False]


@pytest.mark.parametrize(
    ("name", "sizes", "expected"),
    [
        ("nccl:_all_gather_base", [[4]], "_ALLGATHER_BASE"),
        ("nccl:_reduce_scatter_base", [[4]], "_REDUCE_SCATTER_BASE"),
        ("nccl:all_reduce", [[4]], "ALLREDUCE"),
        ("nccl:all_reduce_barrier", [[1]], "ALLREDUCE"),
        ("nccl:all_to_all", [[4]], "ALLTOALL_BASE"),
        ("nccl:all_to_all", [[4], [4]], "ALLTOALL"),
        ("nccl:broadcast", [[4]], "BROADCAST"),
        ("nccl:coalesced", [], "COALESCED"),
        ("gloo:barrier", [], "BARRIER"),
        ("xccl:scatter", [], "SCATTER"),
        (None, [], "UNKNOWN"),
    ],
)
def test_names_are_those_of_log_lines(name: object, sizes: object, expected: str) -> None:
    assert read_operation(name, sizes).name == expected


def test_a_send_names_two_group_ranks() -> None:
    send, recv = read_operation("nccl:send 0->3", [[4]]), read_operation("nccl:recv 0<-3", [[4]])
    assert (send.name, send.own, send.peer) == ("SEND", 0, 3)
    assert (recv.name, recv.own, recv.peer) == ("RECV", 0, 3)


def test_sizes_add_up_and_nonsense_gives_none() -> None:
    assert numel([[4, 5], [2]]) == 22
    assert numel([[]]) == 1
    assert numel([]) is None
    assert numel([["a"]]) == 0
    assert numel([[2**40] * 60]) is None
    assert numel("4") is None


def test_the_innermost_frame_is_the_users_own() -> None:
    frames = [
        {"name": "f", "filename": "??", "line": 0},
        {"name": "g", "filename": "/opt/venv/lib/python3.12/site-packages/torch/a.py", "line": 1},
        {"name": "h", "filename": "/job/loop.py", "line": 2},
    ]
    assert innermost(frames) == "/job/loop.py:2 in h"
    assert innermost(frames[:2]) == "/opt/venv/lib/python3.12/site-packages/torch/a.py:1 in g"
    assert innermost(frames[:1]) is None
    assert innermost([{"filename": 3}, "x"]) is None


@pytest.mark.parametrize(
    "value",
    [{}, {"entries": 3}, {"version": "2.10"}, {"entries": "no", "pg_config": {}}],
)
def test_dictionaries_that_are_no_dump(value: dict[str, object]) -> None:
    with pytest.raises(DumpError):
        read_dump(value)


@pytest.mark.parametrize(
    "value",
    [
        {"entries": [1, None, {"pg_id": []}, {"collective_seq_id": "x"}], "pg_config": [1], "pg_status": 4},
        {"entries": [{"collective_seq_id": 1, "input_sizes": {"a": 1}, "frames": [[]], "profiling_name": 9}]},
        {
            "pg_config": {"0": {"ranks": {"a": 1}}, "1": 7},
            "pg_status": {"0": [], "x": {"last_enqueued_collective": []}},
        },
    ],
)
def test_wrong_types_are_left_out(value: dict[str, object]) -> None:
    assert all(work.seq == 1 for work in read_dump(value).works)
