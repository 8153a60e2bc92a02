# ruff: noqa: E501
"""Where every line carries its global rank, it does not matter how the lines are spread over files.

An interleaved file, its per-rank files in any order, and those files one behind the other hold the same lines in
the same order for each rank, so they must give the same ledger, the same roles and the same world size.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from fsdpclassify.reading import find
from fsdpclassify.records import Incident
from fsdpclassify.sources import from_text

START = 4 * 3600
WORK = "WorkNCCL(SeqNum=812, OpType=_ALLGATHER_BASE, NumelIn=4096, NumelOut=16384, Timeout(ms)=600000)"


@dataclass(frozen=True)
class Said:
    """One line of one rank at a second of the day."""

    rank: int
    second: int
    text: str


def clock(second: int) -> str:
    return f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


def plain(rank: int, second: int, text: str) -> Said:
    return Said(rank, second, f"[rank{rank}]: 2026-03-05 {clock(second)},000 INFO trainer: {text}")


def c10(rank: int, second: int, text: str) -> Said:
    return Said(
        rank, second, f"[rank{rank}]:[E305 {clock(second)}.118120334 ProcessGroupNCCL.cpp:632] [Rank {rank}] {text}"
    )


def steps(rank: int, count: int, begin: int, pace: int) -> list[Said]:
    return [plain(rank, begin + i * pace, f"step {i}/100 loss: 2.1 step_time={pace}.{rank}s") for i in range(count)]


def waits(rank: int, second: int) -> list[Said]:
    prefix = f"[rank{rank}]:[E305 {clock(second)}.218120334 ProcessGroupNCCL.cpp:2271] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] "
    return [
        c10(rank, second, f"Watchdog caught collective operation timeout: {WORK} ran for 600041 milliseconds before timing out."),
        Said(rank, second, prefix + " failure detected by watchdog at work sequence id: 812 PG status: last enqueued work: 813, last completed work: 811"),
    ]  # fmt: skip


def dies(rank: int, second: int) -> list[Said]:
    return [
        plain(rank, second, "reading the next sample"),
        *(Said(rank, second, f"[rank{rank}]: {t}") for t in ("Traceback (most recent call last):", '  File "train.py", line 3, in main', "ValueError: bad sample")),
    ]  # fmt: skip


def notices(rank: int, second: int) -> list[Said]:
    text = "Observed flight recorder dump signal from another rank via TCPStore."
    return [Said(rank, second, f"[rank{rank}]:[E305 {clock(second)}.2 ProcessGroupNCCL.cpp:1790] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] {text}")]  # fmt: skip


@st.composite
def runs(draw: st.DrawFn) -> list[Said]:
    """A run of two to six ranks: steps of different pace, then each rank waits, dies, is told or says nothing."""
    world = draw(st.integers(2, 6))
    said: list[Said] = []
    for rank in range(world):
        begin, pace, count = START + draw(st.integers(0, 3)), draw(st.integers(1, 9)), draw(st.integers(0, 12))
        said += [plain(rank, begin, f"joined, world_size={world}")] if draw(st.booleans()) else []
        said += steps(rank, count, begin, pace)
        late = START + 900 + draw(st.integers(0, 20))
        end = draw(st.sampled_from([waits, waits, waits, notices, dies, None]))
        if end is dies:
            # Not within 5 s of the waits: there no order is claimed.
            late = START + draw(st.integers(120, 890) | st.integers(930, 1200))
        said += end(rank, late) if end else []
        said += waits(rank, late + 700) if end is waits and draw(st.booleans()) else []
    return said


def interleaved(said: list[Said], seed: int) -> str:
    """All lines by clock; lines of one second as ranks happen to write them, each rank's own in their order."""
    rng = random.Random(seed)
    queues = [[s for s in said if s.rank == rank] for rank in sorted({s.rank for s in said})]
    lines: list[str] = []
    while any(queues):
        now = min(q[0].second for q in queues if q)
        queue = rng.choice([q for q in queues if q and q[0].second == now])
        lines.append(queue.pop(0).text)
    return "\n".join(lines) + "\n"


def split(said: list[Said]) -> list[str]:
    return ["\n".join(s.text for s in said if s.rank == rank) + "\n" for rank in sorted({s.rank for s in said})]


def read(*texts: str) -> list[tuple[object, ...]]:
    return [seen(incident) for incident in find(from_text(list(texts))).incidents]


def seen(i: Incident) -> tuple[object, ...]:
    call = (
        None
        if i.collective is None
        else (i.collective.op, i.collective.seq, i.collective.group, i.collective.timeout_s)
    )
    return (i.world_size, i.waiting, i.failed, i.missing, i.onset, i.detection.kind, i.detection.time, call, i.ledger)


@settings(max_examples=150, deadline=None)
@given(runs(), st.integers(0, 5), st.randoms(use_true_random=False))
def test_files_may_be_split_joined_and_shuffled(said: list[Said], seed: int, rng: random.Random) -> None:
    expected = read(interleaved(said, seed))
    files = split(said)
    assert read(interleaved(said, seed + 1)) == expected
    rng.shuffle(files)
    assert read(*files) == expected
    assert read("".join(files)) == expected


@settings(max_examples=60, deadline=None)
@given(runs(), st.randoms(use_true_random=False))
def test_without_clocks_too_while_nothing_fails(said: list[Said], rng: random.Random) -> None:
    """Without clocks, the order of two ranks' lines is all that tells a failure before the wait from one after it."""
    bare = [Said(s.rank, s.second, unstamped(s.text)) for s in said if "Error" not in s.text]
    expected = read(interleaved(bare, 0))
    files = split(bare)
    rng.shuffle(files)
    assert read(*files) == expected
    assert read("".join(files)) == expected


def unstamped(text: str) -> str:
    import re

    return re.sub(r"(?<=\[E)305 [\d:.]+|2026-03-05 [\d:,]+ ", "", text)
