# ruff: noqa: E501
"""Logs are hostile input: nothing raises, nothing depends on line ends, and no line takes more than linear time."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsdpclassify.parsing import RULES, parse, read_lines
from fsdpclassify.reading import find
from fsdpclassify.records import RawLine
from fsdpclassify.sources import from_text

PIECES = [
    "[rank3]:", "[E305 04:11:09.778120334 ProcessGroupNCCL.cpp:632] ", "[Rank 3] ", "[PG ID 0 PG GUID 0(default_pg) Rank 3] ",
    "Watchdog caught collective operation timeout: ", "WorkNCCL(SeqNum=1, OpType=ALLREDUCE, ", "NumelIn=1, NumelOut=1, ",
    "Timeout(ms)=600000) ran for 600041 milliseconds", "[default3]:", "3: ", "(WorkerDict pid=7, ip=10.0.0.1) ", "{", '{"log":"', "}",
    " 12%|█▏ | 12/100 [01:08<1:22:01, 2.83s/it]", "step 12 loss: 2.3", "Traceback (most recent call last):", "CollectiveFingerPrint(",
    "Detected mismatch between collectives on ranks. Rank 2 is running collective: ", "ranks [1, 2] are the lagging ranks",
    "NCCL error in: a.cpp:1, internal error, ", "NET/IB : Got completion from peer 1<2> with status=12 ", "  time : 2026-03-05_04:11:09",
    "  rank : 3 (local_rank: 3)", "  exitcode : -9 (pid: 3)", "2026-02-30 25:00:00 ", "Feb 31 04:11:09 ", "node1:2:3 [4] ", "\n", "\r", "\x00", " ",
]  # fmt: skip


def parsed(text: str) -> list[tuple[object, ...]]:
    """What a caller sees of the events, apart from the lines' own texts."""
    found = find(from_text([text]))
    return [(e.kind, e.rank, e.line.number, e.op, e.seq, e.step, e.code, e.name, e.time) for e in found.events]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_any_mixture_of_fragments_is_read(pieces: list[str]) -> None:
    parsed("".join(pieces))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=400) | st.binary(max_size=400).map(lambda data: data.decode("utf-8", "replace")))
def test_any_text_is_read(text: str) -> None:
    parsed(text)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([p for p in PIECES if p not in ("\n", "\r", "\x00")]), max_size=30))
def test_line_ends_change_nothing(pieces: list[str]) -> None:
    text = "\n".join(pieces) + "\n"
    assert parsed(text) == parsed(text.replace("\n", "\r\n"))


@settings(max_examples=40, deadline=None)
@given(st.permutations([0, 1, 2, 3]))
def test_file_order_changes_nothing(order: list[int]) -> None:
    files = [
        f"2026-03-05 04:1{i}:00 step 1{i}\n[rank{i}]:[E305 04:2{i}:09.7 x.cpp:1] [Rank {i}] x\n[04:3{i}:00] y"
        for i in range(4)
    ]
    raws = [
        RawLine(source=at, number=n, text=t)
        for at, i in enumerate(order)
        for n, t in enumerate(files[i].split("\n"), 1)
    ]
    lines, _ = read_lines(raws)
    seen = {order[line.source]: [] for line in lines}
    for event in parse(lines):
        seen[order[event.line.source]].append((event.kind, event.rank, event.time, event.line.number))
    straight, _ = read_lines(
        [RawLine(source=i, number=n, text=t) for i, f in enumerate(files) for n, t in enumerate(f.split("\n"), 1)]
    )
    plain: dict[int, list[object]] = {i: [] for i in range(4)}
    for event in parse(straight):
        plain[event.line.source].append((event.kind, event.rank, event.time, event.line.number))
    assert seen == plain


UNITS = [
    *"a[({]})|%:=<> \t0.,-_#\"'\\/█", "%|", "[]", "()", "[(", "[rank1]:", "[rank1]: ", "[default1]:", "1: ", "a: ", "E", "Error", "Error: ", "a.", "A", "A.", "AError", "A.Error",
    "WorkNCCL(", "WorkNCCL(a=", "Watchdog caught collective operation timeout: ", "[Rank 1] ", "[PG 1 Rank 1] ", "step ", "step 1/", "iteration 1 ",
    "1%|", "1%|1| 1/1 [", "00:00:00 ", "2026-03-05 ", "Mar  5 ", "(a pid=1) ", "node1:1:1 [1] ", "frame #1: ", "NCCL error in: ", "NCCL error in: a:1, ",
    "NCCL WARN ", "NCCL WARN NET/IB : ", "NET/OFI ", "Call to recv from ", "Connect to ", "connect to 1 returned ", "waitForInput: socket ", "ranks [1, ",
    "[1, 2] ", "collective #", "CollectiveFingerPrint(", "Detected mismatch between collectives on ranks. Rank 1 is running collective: ",
    "Received a dump signal due to a collective timeout from rank 1 ", "is setting up NCCL communicator ", "--local_rank=1 ", "x exits with return code = ",
    "srun: error: a: tasks 1", "rank : 1 ", "time : 1", "rank=1", "{\"log\":", "TRT-LLM ", "loss", "train_", "barrier (", "torch/distributed/", "[01;31m", "Read error",
    "algo-1-", "2026-03-05T04:11:20Z a/", "ERROR a: ", "ERROR a: AError: ", "time (ms) | a: 1 ", "time (ms) | ", "a ..: (1.0, ", "a .", "step:1 - ", "step:1 - timing_s/step:1 ",
    'print("', 'response: "', 'response: "WorkNCCL(', "[1] ", "node1: ", "nid001 1: ", "1 ranks have launched up to operation 1 ", "rank 1 exited with code ", "a: rank 1 died from signal 1 ",
    "TorchCommNCCL.cpp:1] ", "[rank=1][name=a] Operation ", "pid=1) world_rank=1 ip=1, ", "communicator was aborted on rank 1 ", "srun: error: a: tasks 1-9,", "pdsh@a: ", '"logStreamName"',
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_a_long_line_of_one_fragment_takes_linear_time(unit: str) -> None:
    took = [_time_of((unit * (size // len(unit) + 1))[:size]) for size in (16_384, 65_536)]
    assert took[1] < 1.0, f"{took[1]:.2f} s"


def _time_of(text: str) -> float:
    lines = [RawLine(source=0, number=1, text=text), RawLine(source=0, number=2, text=text[:100])]
    begin = time.process_time()
    parse(read_lines(lines)[0])
    return time.process_time() - begin


def test_anchors_hold_no_fixed_digit_but_zero() -> None:
    import re

    for rule in RULES:
        fixed = re.sub(r"\{\d+(?:,\d*)?\}|\\d", "", rule.anchor)
        assert not re.search(r"[1-9]", fixed), rule.name
