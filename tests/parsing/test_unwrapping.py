from collections.abc import Callable

import pytest

from fsdpclassify.parsing.peeling import opens_line
from fsdpclassify.parsing.unwrapping import unwrap
from fsdpclassify.records import Event, EventKind, RawLine

Events = Callable[..., list[Event]]

WORK = (
    "[rank{r}]:[E305 04:11:09.778120334 ProcessGroupNCCL.cpp:632] [Rank {r}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=88412, OpType=_ALLGATHER_BASE, NumelIn=185614592, NumelOut=2969833472, "
    "Timeout(ms)=600000) ran for 600041 milliseconds before timing out."
)
GLOO = (
    "[rank{r}]: RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:119] Timed out"
    " waiting 1800000ms for recv operation to complete"
)


def wrapped(text: str, width: int) -> str:
    return "\n".join(line[at : at + width] for line in text.split("\n") for at in range(0, max(len(line), 1), width))


def raws(text: str) -> list[RawLine]:
    return [RawLine(source=0, number=i, text=line) for i, line in enumerate(text.split("\n"), 1)]


def unwrapped(text: str) -> list[str]:
    return [raw.text for raw in unwrap(raws(text), opens_line)]


@pytest.mark.parametrize("width", [*range(60, 140)])
def test_a_log_wrapped_anywhere_gives_the_events_of_the_whole_one(events: Events, width: int) -> None:
    text = "\n".join(WORK.format(r=r) for r in range(4))
    found = [(e.kind, e.rank, e.seq, e.numel_in, e.elapsed_s) for e in events(wrapped(text, width))]
    assert found == [(EventKind.TIMEOUT, r, 88412, 185614592, 600.041) for r in range(4)]


@pytest.mark.parametrize("width", [*range(76, 130)])
def test_words_of_gloo_are_joined_too(events: Events, width: int) -> None:
    text = "\n".join(GLOO.format(r=r) for r in range(4))
    found = [(e.kind, e.rank, e.elapsed_s) for e in events(wrapped(text, width))]
    assert found == [(EventKind.GLOO, r, 1800.0) for r in range(4)]


def test_joined_lines_keep_the_number_of_their_first_piece() -> None:
    text = wrapped("\n".join(WORK.format(r=r) for r in range(3)), 80)
    numbers = [raw.number for raw in unwrap(raws(text), opens_line)]
    assert numbers == [1, 6, 11] or len(numbers) == 3
    assert unwrapped(text) == [WORK.format(r=r) for r in range(3)]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"iter {i}: loss 2.31{i}, time 1162.21ms, mfu 39.95%, lr 1e-4, tokens 1000000" for i in range(6)),
        "\n".join(WORK.format(r=r) for r in range(6)),
        "\n".join(["=" * 60, "pretrain.py FAILED", "-" * 60, "Failures:", "=" * 60, "x"]),
        "\n".join(WORK.format(r=r) + "\nterminate called after throwing an instance of 'x'" for r in range(4)),
        "a short line\nand another one\n",
        "",
    ],
)
def test_a_log_that_was_not_wrapped_stays_as_it_is(text: str) -> None:
    assert unwrapped(text) == text.split("\n")


def test_gaps_are_not_joined_over() -> None:
    lines = raws(wrapped("\n".join(WORK.format(r=r) for r in range(4)), 100))
    kept = [raw for raw in lines if raw.number % 3 != 2]
    assert [raw.number for raw in unwrap(kept, opens_line)] == [raw.number for raw in kept]
