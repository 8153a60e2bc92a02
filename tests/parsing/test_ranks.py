# ruff: noqa: E501
from collections.abc import Callable

import pytest

from fsdpclassify.records import Line

Lines = Callable[..., list[Line]]

TEXT = "Watchdog caught collective operation timeout: x"


def ranks(found: list[Line]) -> list[int | None]:
    return [line.rank for line in found]


def test_outer_numbers_are_ranks_where_nothing_contradicts(lines: Lines) -> None:
    assert ranks(lines("[default3]:step 1\n3: step 1\n[1,3]<stdout>:step 1\n[rank3]: step 1")) == [3, 3, 3, 3]


def test_local_ranks_of_one_file_with_two_nodes_are_no_global_ranks(lines: Lines) -> None:
    found = lines("[default1]:[rank1]:[E x.cpp:1] a\n[default1]:[rank9]:[E x.cpp:1] a\n[default1]:step 1")
    assert ranks(found) == [1, 9, None]


def test_a_file_of_one_node_shows_how_far_its_local_ranks_are_off(lines: Lines) -> None:
    found = lines("[default1]:[rank9]:[E x.cpp:1] a\n[default3]:step 1", "[default3]:step 1")
    assert ranks(found) == [9, 11, None]


def test_role_called_rank_prints_local_ranks(lines: Lines) -> None:
    found = lines(
        "[rank1]:[rank9]:[E305 04:11:09.7 x.cpp:1] a\n[rank1]:step 1\n[rank1]:[rank9]: Traceback (most recent call last):"
    )
    assert ranks(found) == [9, 9, 9]


def test_excepthook_prints_the_global_rank(lines: Lines) -> None:
    assert ranks(lines("[rank11]: Traceback (most recent call last):\n[rank11]: ValueError")) == [11, 11]


def test_task_that_is_a_node_is_no_rank(lines: Lines) -> None:
    found = lines("0: [rank0]:[E x.cpp:1] a\n0: [rank5]:[E x.cpp:1] a\n0: step 1\n1: step 1")
    assert ranks(found) == [0, 5, None, None]


def test_old_group_rank_proves_that_the_tee_number_is_local(lines: Lines) -> None:
    found = lines(f"[default3]:[E ProcessGroupNCCL.cpp:474] [Rank 7] {TEXT}\n[default2]:step 1")
    assert ranks(found)[1] == 6


def test_global_rank_stated_by_the_program(lines: Lines) -> None:
    found = lines(
        "[default5]:[rank 13] initialized process group, world_size=16, local_rank=5\n"
        "Initializing distributed: GLOBAL_RANK: 6, MEMBER: 7/16\n"
        '{"ts": "2026-02-07T16:43:03", "rank": 4, "local_rank": 1, "msg": "x"}\n'
        "[2026-03-05 04:11:22,017] [INFO] [logging.py:96:log_dist] [Rank 0] step=43, skipped=0\n"
        "INFO trainer: rank=12 saved\n"
        "(rank 2) loading\n"
        "rank 7: loading"
    )
    assert ranks(found) == [13, 6, 4, 0, 12, 2, 7]


@pytest.mark.parametrize(
    "text",
    [
        "local_rank=3 device=cuda:3",
        "Rank 21 failed to pass monitoredBarrier in 60000 ms",
        "waiting for rank 3",
        "[E x.cpp:1] [Rank 3] Some NCCL operations have failed",
        "node_rank: 1",
        "'local_rank': 3",
        "matrix rank: 3.5",
        "rank 0.99",
    ],
)
def test_what_states_no_global_rank(lines: Lines, text: str) -> None:
    assert ranks(lines(text)) == [None]
