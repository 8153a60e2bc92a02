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
