"""A node that speaks and does not wait, beside nodes of which every rank waits."""

from __future__ import annotations

import pytest

from fsdpclassify.reading import find
from fsdpclassify.sources import from_text

STEP = "[pod/job-worker-{node}/pytorch] step 400 loss 4.9 batch_time: 0.402\n"
TIMEOUT = (
    "[pod/job-worker-{node}/pytorch] [rank{rank}]:[E ProcessGroupNCCL.cpp:563] [Rank {rank}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=24730, OpType=ALLREDUCE, NumelIn=65, NumelOut=65, "
    "Timeout(ms)=600000) ran for 600017 milliseconds before timing out.\n"
)


def _node(node: int, ranks: range) -> str:
    return STEP.format(node=node) + "".join(TIMEOUT.format(node=node, rank=rank) for rank in ranks)


def _missing(*texts: str) -> tuple[int, ...]:
    return find(from_text(texts)).incidents[-1].missing


def test_the_node_that_does_not_wait_is_missing() -> None:
    assert _missing(_node(0, range(8)), STEP.format(node=1)) == tuple(range(8, 16))
    assert _missing(STEP.format(node=0), _node(1, range(2, 4)), _node(2, range(4, 6))) == (0, 1)


@pytest.mark.parametrize(
    "texts",
    [
        (_node(0, range(8)),),
        (_node(0, range(8)), "a note without a step\n"),
        (_node(0, range(7)), STEP.format(node=1)),
        (_node(0, range(1)), STEP.format(node=1)),
        (_node(0, range(8)), STEP.format(node=1), STEP.format(node=2)),
        ("world_size=64\n" + _node(0, range(8)), STEP.format(node=1)),
    ],
    ids=["alone", "a note", "not a whole node", "one rank", "two quiet nodes", "a larger world"],
)
def test_else_the_silence_of_a_node_says_nothing(texts: tuple[str, ...]) -> None:
    assert len(_missing(*texts)) <= 1
