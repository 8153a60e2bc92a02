# ruff: noqa: E501
from collections.abc import Callable

import pytest

from fsdpclassify.records import Event, EventKind, Line

Events = Callable[..., list[Event]]
Lines = Callable[..., list[Line]]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("Initializing distributed: GLOBAL_RANK: 2, MEMBER: 3/16", 16),
        ("All distributed processes registered. Starting with 16 processes", 16),
        ("world_size=16, local_rank=3", 16),
        ("Distributed environment is initialized, world size: 16", 16),
        ("WORLD_SIZE=16", 16),
        ("'num_processes': 16,", 16),
        (
            "[rank3]:[I305 04:11:09.7 ProcessGroupNCCL.cpp:881] [PG ID 0 PG GUID 0 Rank 3] ProcessGroupNCCL initialization options: size: 16, global rank: 3, TIMEOUT(ms): 600000",
            16,
        ),
    ],
)
def test_world_size_declarations(events: Events, text: str, size: int | None) -> None:
    assert [e.total for e in events(text) if e.kind is EventKind.WORLD] == [size]


@pytest.mark.parametrize(
    ("text", "rank", "op"),
    [
        ("AllGather timed out waiting for work on rank 5", 5, "_ALLGATHER_BASE"),
        ("FSDP forward pass hangs at param all-gather: wait() never completes on rank 12", 12, "_ALLGATHER_BASE"),
        ("NCCL timeout error during FSDP parameter shard collection", None, "_ALLGATHER_BASE"),
        ("FSDP reduce_scatter backward hook timed out waiting for gradient sync", None, "_REDUCE_SCATTER_BASE"),
    ],
)
def test_the_four_phrases(events: Events, text: str, rank: int | None, op: str) -> None:
    (found,) = events(text)
    assert (found.kind, found.rank, found.op) == (EventKind.PHRASE, rank, op)


def test_empty_device_is_a_fact_and_no_detection(events: Events) -> None:
    (found,) = events("Rank 5 shows CUDA memory 0 bytes allocated while other ranks have full utilization")
    assert (found.kind, found.rank, found.name) == (EventKind.MEMORY, 5, "gpu_empty")


@pytest.mark.parametrize(
    "text",
    [
        "    barrier (torch/distributed/distributed_c10d.py:3811)",
        "    all_gather_into_tensor (/opt/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py:3811)",
    ],
)
def test_stack_in_a_collective(events: Events, text: str) -> None:
    (found,) = events(text)
    assert found.kind is EventKind.STACK_WAIT
