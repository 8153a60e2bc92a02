"""The operation that a gloo wait stands in, from the innermost torch.distributed frame above it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsdpclassify.reading import find
from fsdpclassify.records import EventKind
from fsdpclassify.sources import collect

_C10D = "/opt/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py"


def trace(rank: int, name: str) -> str:
    lines = (
        "Traceback (most recent call last):",
        f'  File "{_C10D}", line 4394, in {name}',
        "    work.wait()",
        "RuntimeError: [/pytorch/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 8000ms for recv operation "
        "to complete",
    )
    return "".join(f"[rank{rank}]: {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("all_gather_single", "_ALLGATHER_BASE"),
        ("reduce_scatter_single", "_REDUCE_SCATTER_BASE"),
        ("all_gather_into_tensor", "_ALLGATHER_BASE"),
        ("barrier", "BARRIER"),
    ],
)
def test_each_name_of_a_call_gives_its_operation(tmp_path: Path, name: str, op: str) -> None:
    (tmp_path / "console.log").write_text(trace(0, name) + trace(1, "all_reduce"))
    incident = find(collect([tmp_path])).incidents[-1]
    found = {e.rank: e.op for e in incident.events if e.kind is EventKind.GLOO}
    assert found == {0: op, 1: "ALLREDUCE"}


def user_trace(rank: int, call: str, name: str) -> str:
    lines = (
        "Traceback (most recent call last):",
        '  File "/opt/app/train.py", line 62, in iterate',
        f"    {call}",
        f'  File "{_C10D}", line 3252, in {name}',
        "    work.wait()",
        "RuntimeError: [/pytorch/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 8000ms for recv operation "
        "to complete",
    )
    return "".join(f"[rank{rank}]: {line}\n" for line in lines)


def ops(path: Path) -> dict[int | None, str | None]:
    incident = find(collect([path])).incidents[-1]
    return {e.rank: e.op for e in incident.events if e.kind is EventKind.GLOO}


def test_a_call_in_a_group_of_its_own_is_not_compared_with_those_in_the_common_one(tmp_path: Path) -> None:
    own = user_trace(3, "dist.all_reduce(x, group=self.pair)", "all_reduce")
    (tmp_path / "console.log").write_text(trace(0, "all_gather_single") + own)
    assert ops(tmp_path) == {0: "_ALLGATHER_BASE", 3: None}


@pytest.mark.parametrize("call", ["dist.all_reduce(x)", "dist.all_reduce(x, group=None)"])
def test_calls_in_the_common_group_are_compared(tmp_path: Path, call: str) -> None:
    (tmp_path / "console.log").write_text(trace(0, "all_gather_single") + user_trace(3, call, "all_reduce"))
    assert ops(tmp_path) == {0: "_ALLGATHER_BASE", 3: "ALLREDUCE"}


def test_where_all_stand_in_groups_of_their_own_the_call_is_named(tmp_path: Path) -> None:
    text = "".join(user_trace(r, "dist.all_reduce(x, group=self.pair)", "all_reduce") for r in (0, 3))
    (tmp_path / "console.log").write_text(text)
    assert ops(tmp_path) == {0: "ALLREDUCE", 3: "ALLREDUCE"}
