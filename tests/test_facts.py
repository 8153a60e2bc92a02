from __future__ import annotations

from typing import Any

import pytest

from fsdpclassify.facts import LINE_FACTS, line_facts
from fsdpclassify.records import Collective, Event, EventKind, Incident, Line
from fsdpclassify.window import When, WindowLine


def _line(body: str = "x", **changes: object) -> Line:
    values: dict[str, Any] = {"source": 0, "number": 1, "text": body, "body": body, "unprefixed": False}
    return Line(**values | changes)


def _row(body: str = "x", **changes: object) -> WindowLine:
    values: dict[str, Any] = {"text": body, "line": _line(body), "when": When.BEFORE, "age_s": None, "distance": 0}
    return WindowLine(**values | changes)


def _incident(timeout_s: float | None = 600.0, **changes: object) -> Incident:
    values: dict[str, Any] = {
        "detection": Event(kind=EventKind.TIMEOUT, line=_line()), "events": (), "lines": (), "onset": None,
        "collective": None if timeout_s is None else Collective(timeout_s=timeout_s), "world_size": None,
        "waiting": (0, 1), "failed": (2,), "missing": (3,), "ledger": (),
    }  # fmt: skip
    return Incident(**values | changes)


def _facts(row: WindowLine, incident: Incident | None = None, ranks_seen: int = 4) -> dict[str, float]:
    values = line_facts(row, incident or _incident(), ranks_seen)
    return dict(zip(LINE_FACTS, values, strict=True))


@pytest.mark.parametrize("when", list(When))
def test_exactly_one_time_holds(when: When) -> None:
    found = _facts(_row(when=when))
    assert {name: found[name] for name in ("before", "during", "after")} == {w.value: float(w is when) for w in When}


@pytest.mark.parametrize(
    ("rank", "expected"),
    [
        (0, (1.0, 0.0, 0.0, 0.0)),
        (2, (0.0, 1.0, 1.0, 0.0)),
        (3, (0.0, 1.0, 1.0, 0.0)),
        (9, (0.0, 1.0, 0.0, 0.0)),
        (None, (0.0, 0.0, 0.0, 1.0)),
    ],
)
def test_the_role_of_the_printing_rank(rank: int | None, expected: tuple[float, ...]) -> None:
    found = _facts(_row(rank=rank))
    names = ("rank_waiting", "rank_not_waiting", "rank_failed_or_missing", "rank_unknown")
    assert tuple(found[name] for name in names) == expected


def test_recency_falls_with_the_age_measured_in_timeouts() -> None:
    ages = [_facts(_row(age_s=a))["recency"] for a in (0.0, 300.0, 600.0, 6000.0)]
    assert ages[0] == 1.0
    assert ages == sorted(ages, reverse=True)
    assert len(set(ages)) == 4
    short = _facts(_row(age_s=30.0), _incident(timeout_s=30.0))["recency"]
    assert short == pytest.approx(ages[2])


def test_without_a_clock_recency_is_in_the_middle_and_said_to_be() -> None:
    found = _facts(_row(age_s=None))
    assert (found["recency"], found["no_clock"]) == (0.5, 1.0)
    assert _facts(_row(age_s=1.0))["no_clock"] == 0.0


def test_nearness_falls_with_the_lines_in_between() -> None:
    assert _facts(_row(distance=0))["nearness"] == 1.0
    assert _facts(_row(distance=4))["nearness"] == 0.5


def test_a_duration_counts_as_a_share_of_the_timeout() -> None:
    found = _facts(_row("saving took 300 s"))
    assert (found["has_duration"], found["duration_share"], found["duration_near_limit"]) == (1.0, 0.25, 0.0)
    assert _facts(_row("saving took 590 s"))["duration_near_limit"] == 1.0
    long = _facts(_row("saving took 9 hours"))
    assert (long["duration_share"], long["duration_near_limit"]) == (1.0, 0.0)
    assert _facts(_row("saving took 590 s"), _incident(timeout_s=None))["duration_near_limit"] == 1.0
    assert _facts(_row("saving"))["has_duration"] == 0.0


def test_who_else_printed_it() -> None:
    found = _facts(_row(ranks={1, 2}), ranks_seen=4)
    assert (found["printed_by_share"], found["single_rank"]) == (0.5, 0.0)
    assert _facts(_row(ranks={1}), ranks_seen=4)["single_rank"] == 1.0
    alone = _facts(_row(ranks={1}), ranks_seen=1)
    assert (alone["printed_by_share"], alone["single_rank"]) == (1.0, 0.0)
    assert _facts(_row(), ranks_seen=0)["printed_by_share"] == 0.0


def test_a_number_far_from_that_of_the_other_ranks() -> None:
    bodies: dict[int | None, str] = {r: f"shard holds {n} rows" for r, n in ((0, 100), (1, 100), (2, 100), (3, 900))}
    assert _facts(_row(rank=3, bodies=bodies))["outlier"] == 1.0
    assert _facts(_row(rank=0, bodies=bodies))["outlier"] == 0.0


@pytest.mark.parametrize(("body", "open_", "done"), [(" 41%|####", 1.0, 0.0), ("100%|####", 0.0, 1.0), ("41 %", 0, 0)])
def test_a_bar_is_open_or_done(body: str, open_: float, done: float) -> None:
    found = _facts(_row(body))
    assert (found["bar_open"], found["bar_done"]) == (open_, done)


@pytest.mark.parametrize(
    ("body", "frame"),
    [
        ('  File "/opt/app/train.py", line 3, in main', 1.0),
        ("#4 __poll (libc.so.6)", 1.0),
        ("wait (torch/distributed/x.py:41)", 1.0),
        ("loss 2.1", 0.0),
    ],
)
def test_frames_of_a_stack(body: str, frame: float) -> None:
    assert _facts(_row(body))["is_frame"] == frame


def test_plain_flags() -> None:
    found = _facts(_row(last_of_rank=True, is_detection=True, line=_line(unprefixed=True)))
    assert (found["last_of_rank"], found["is_detection"], found["unprefixed"], found["is_system"]) == (1, 1, 1, 0)
    system = _facts(_row(system=True, line=_line(unprefixed=True)))
    assert (system["unprefixed"], system["is_system"]) == (0, 1)


@pytest.mark.parametrize("count", [1, 10, 10**6])
def test_every_fact_lies_between_0_and_1(count: int) -> None:
    body = "took 99999 hours " + "x" * 1000
    bodies: dict[int | None, str] = {r: f"{10 ** (3 * r)} rows" for r in range(4)}
    found = _facts(_row(body, count=count, rank=3, bodies=bodies, age_s=1e9, distance=10**6), ranks_seen=4)
    assert all(0.0 <= value <= 1.0 for value in found.values()), found


def test_names_are_distinct() -> None:
    assert len(set(LINE_FACTS)) == len(LINE_FACTS)
