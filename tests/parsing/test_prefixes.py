from collections.abc import Callable

import pytest

from fsdpclassify.records import Line

Lines = Callable[..., list[Line]]

C10 = "[E305 04:11:09.778120334 ProcessGroupNCCL.cpp:632] [Rank 2] Watchdog caught x"
OLD = "[E ProcessGroupNCCL.cpp:474] [Rank 2] Watchdog caught x"
BODY = "[Rank 2] Watchdog caught x"


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "[default3]:",
        "[rank3]:",
        "3: ",
        "03: ",
        " 3: ",
        "[80746] 3: ",
        "[1,11]<stderr>:",
        "[1,11]<stderr>: ",
        "(WorkerDict pid=7731, ip=10.1.0.12) ",
        "(WorkerDict pid=7731) ",
        "2026-03-05T04:11:20.123456789Z ",
        "[pod/train-0/main] 2026-03-05T04:11:20.123456789Z ",
        "2026-03-05T04:11:20.123456789Z stderr F ",
        "trainer-1  | ",
        "node07: ",
        "node07: [default3]:",
        "2026-03-05T04:11:20.123456789Z 3: [default3]:",
        "pretrain-job/0 [default3]:",
        "3: (WorkerDict pid=7731, ip=10.1.0.12) ",
    ],
)
def test_innermost_c10_prefix_wins_behind_any_stack(lines: Lines, prefix: str) -> None:
    (line,) = lines(f"{prefix}[rank11]:{C10}")
    assert (line.rank, line.body) == (11, BODY)


def test_python_side_and_glog_heads(lines: Lines) -> None:
    found = lines(
        "[rank3]:W0305 04:11:12.301000 8801 torch/distributed/run.py:12] hello\n"
        "E0305 04:11:12.301000 8801 torch/distributed/elastic/api.py:1002] hello\n"
        "[rank3]: hello"
    )
    assert [(line.rank, line.body) for line in found] == [(3, "hello"), (None, "hello"), (3, "hello")]


def test_node_names(lines: Lines) -> None:
    found = lines(
        "node03: [2026-03-05 04:11:22,017] [ERROR] x\n"
        "(WorkerDict pid=7731, ip=10.1.0.12) x\n"
        "[pod/train-0/main] x\n"
        "Mar 05 04:01:08 node07 kernel: x\n"
        "node07:4188:4301 [3] NCCL INFO x"
    )
    assert [line.node for line in found] == ["node03", "10.1.0.12", "train-0", "node07", "node07"]


def test_a_device_index_is_no_rank(lines: Lines) -> None:
    (line,) = lines("node07:4188:4301 [3] NCCL INFO x")
    assert line.rank is None


def test_json_of_a_container_runtime(lines: Lines) -> None:
    (line,) = lines('{"log":"[rank5]:' + C10 + '\\n","stream":"stderr","time":"2026-03-05T04:11:20.1Z"}')
    assert (line.rank, line.body) == (5, BODY)
    assert line.stamped


def test_parts_of_a_container_record(lines: Lines) -> None:
    found = lines(
        "2026-03-05T04:11:20.123456789Z stderr P [rank5]: first half \n"
        "2026-03-05T04:11:20.123456790Z stdout F other\n"
        "2026-03-05T04:11:20.123456791Z stderr F second half\n"
        "2026-03-05T04:11:20.123456792Z stderr F next"
    )
    assert [(line.number, line.body) for line in found] == [(1, "first half second half"), (2, "other"), (4, "next")]


def test_half_json_is_text(lines: Lines) -> None:
    (line,) = lines('{"log":"[rank5]')
    assert line.body == '{"log":"[rank5]'
