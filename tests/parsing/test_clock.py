from collections.abc import Callable

import pytest

from fsdpclassify.records import Line

Lines = Callable[..., list[Line]]


def seconds(found: list[Line]) -> list[float | None]:
    first = next(line.time for line in found if line.time is not None)
    return [None if line.time is None else line.time - first for line in found]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2026-03-05 04:11:09,123 x", "2026-03-05 04:11:19,123 x"),
        ("2026/03/05 04:11:09 x", "2026/03/05 04:11:19 x"),
        ("2026-03-05T04:11:09Z x", "2026-03-05T04:11:19Z x"),
        ("  time      : 2026-03-05_04:11:09", "  time      : 2026-03-05_04:11:19"),
        ("[rank1]:[E305 04:11:09.9 x.cpp:1] x", "[rank1]:[E305 04:11:19.1 x.cpp:1] x"),
        ("[rank1]:[E1218 04:11:09.9 x.cpp:1] x", "[rank1]:[E1218 04:11:19.1 x.cpp:1] x"),
        ("E0105 04:11:09.301000 8801 torch/x.py:1] x", "[E105 04:11:19.301000000 x.cpp:1] x"),
        ("Mar 05 04:11:09 node07 kernel: x", "Mar  5 04:11:19 node07 kernel: x"),
        ("[Thu Mar  5 04:11:09 2026] x", "[Thu Mar  5 04:11:19 2026] x"),
        ("INFO 03-10 00:58:36 [loggers.py:2249] x", "INFO 03-10 00:58:46 [loggers.py:2249] x"),
        ("[04:11:09] x", "[04:11:19] x"),
        ("04:11:09 x", "04:11:19 x"),
    ],
)
def test_formats(lines: Lines, first: str, second: str) -> None:
    assert seconds(lines(f"{first}\n{second}"))[1] == pytest.approx(10)


def test_fraction_of_a_c10_second_is_not_wall_time(lines: Lines) -> None:
    found = lines("[rank1]:[E305 04:11:39.677000000 x.cpp:1] a\n[rank1]:[E305 04:11:39.254000000 x.cpp:1] b")
    assert seconds(found) == [0, 0]


def test_a_stamp_without_a_year_takes_it_from_the_others(lines: Lines) -> None:
    found = lines("2026-03-05 04:11:09 x\n[rank1]:[E305 04:11:19.1 x.cpp:1] x")
    assert seconds(found) == [0, 10]


def test_without_a_year_new_year_still_follows_december(lines: Lines) -> None:
    found = lines("[rank1]:[E1231 23:59:59.1 x.cpp:1] x\n[rank1]:[E101 00:00:09.1 x.cpp:1] x")
    assert seconds(found) == [0, 10]


def test_with_a_year_new_year_follows_december(lines: Lines) -> None:
    found = lines("2025-12-31 23:59:59 x\n[rank1]:[E101 00:00:09.1 x.cpp:1] x")
    assert seconds(found) == [0, 10]


@pytest.mark.parametrize("year", [2024, 2028])
def test_leap_day(lines: Lines, year: int) -> None:
    found = lines(f"{year}-02-28 23:59:59 x\n[rank1]:[E229 00:00:09.1 x.cpp:1] x\n[rank1]:[E301 00:00:09.1 x.cpp:1] x")
    assert seconds(found) == [0, 10, 86410]


def test_after_february_of_a_common_year(lines: Lines) -> None:
    found = lines("2026-02-28 23:59:59 x\n[rank1]:[E301 00:00:09.1 x.cpp:1] x")
    assert seconds(found) == [0, 10]


def test_clock_without_a_date_runs_over_midnight(lines: Lines) -> None:
    assert seconds(lines("[23:59:59] x\n[00:00:09] x\n[00:00:19] x")) == [0, 10, 20]


def test_clock_without_a_date_between_dated_lines(lines: Lines) -> None:
    found = lines("2026-03-05 23:59:49 x\n[23:59:59] x\n[00:00:09] x\n2026-03-06 00:00:19 x")
    assert seconds(found) == [0, 10, 20, 30]


def test_clock_without_a_date_before_the_first_dated_line(lines: Lines) -> None:
    found = lines("[23:59:59] x\n2026-03-06 00:00:09 x")
    assert seconds(found) == [0, 10]


def test_lines_without_a_stamp_take_the_last_one_of_their_file(lines: Lines) -> None:
    found = lines("a\n2026-03-05 04:11:09 b\nc", "d")
    assert [line.time is None for line in found] == [True, False, False, True]
    assert [line.stamped for line in found] == [False, True, False, False]


def test_impossible_stamps_are_none(lines: Lines) -> None:
    assert [line.stamped for line in lines("2026-13-45 04:11:09 x\n2026-03-05 24:61:00 x\n[99:99:99] x")] == [False] * 3
