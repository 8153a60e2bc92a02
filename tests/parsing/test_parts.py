"""Logs that were put one behind the other: between them, the order of lines says nothing."""

from collections.abc import Callable

from fsdpclassify.records import Line

Lines = Callable[..., list[Line]]


def said(rank: int, minute: int) -> str:
    return f"[rank{rank}]: 2026-03-05 04:{minute:02d}:00,000 INFO at work"


def parts(found: list[Line]) -> list[int]:
    return [line.part for line in found]


def test_each_log_of_a_concatenated_file_is_a_part(lines: Lines) -> None:
    text = [said(0, 1), said(0, 9), "[rank1]: loading", said(1, 1), said(1, 9), said(2, 2)]
    assert parts(lines("\n".join(text))) == [0, 0, 1, 1, 1, 2]


def test_an_interleaved_file_has_one_part(lines: Lines) -> None:
    assert parts(lines("\n".join(said(n % 3, n) for n in range(9)))) == [0] * 9


def test_clocks_apart_make_no_parts(lines: Lines) -> None:
    """Rank 1's host is five minutes behind, and its lines keep coming between those of rank 0."""
    text = [said(n % 2, 10 + n - 5 * (n % 2)) for n in range(8)]
    assert parts(lines("\n".join(text))) == [0] * 8


def test_a_jump_within_the_tolerance_of_clocks_makes_none(lines: Lines) -> None:
    text = [said(0, 1).replace(":00,000", ":04,000"), said(1, 1)]
    assert parts(lines("\n".join(text))) == [0, 0]


def test_each_file_is_judged_alone(lines: Lines) -> None:
    assert parts(lines(said(0, 9), said(1, 1))) == [0, 0]
