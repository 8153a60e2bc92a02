"""From the clock of dumps to that of the logs."""

from __future__ import annotations

from datetime import UTC, datetime
from types import ModuleType

import pytest

from fsdpclassify.recorder.clock import elsewhen, shift_to_logs
from fsdpclassify.recorder.dumps import read_dump
from fsdpclassify.recorder.wavefront import Front, find_front
from fsdpclassify.records import Event, EventKind, Line


def front(make: ModuleType) -> Front:
    return find_front({rank: read_dump(found) for rank, found in make.lagging_rank().items()})


def begun(make: ModuleType) -> float:
    return float(make.START_NS / 1e9 + 12 * 0.25)


def event(time: float | None, *, kind: EventKind = EventKind.TIMEOUT, seq: int = 12, stamped: bool = True) -> Event:
    line = Line(source=0, number=1, text="", body="", time=time, stamped=stamped)
    return Event(kind=kind, line=line, rank=0, time=time, seq=seq, op="_ALLGATHER_BASE", elapsed_s=600.0)


def test_the_same_call_gives_the_shift_exactly(make: ModuleType) -> None:
    assert shift_to_logs(front(make), [event(begun(make) + 600.0 - 4000.5)], dated=False) == pytest.approx(-4000.5)


@pytest.mark.parametrize("zone_s", [0, 3600, -12_600])
def test_else_the_nearest_time_zone_does(make: ModuleType, zone_s: int) -> None:
    notice = event(begun(make) + 600.0 + zone_s + 71.0, kind=EventKind.NOTIFIED)
    assert shift_to_logs(front(make), [notice], dated=True) == zone_s


def test_what_lies_between_zones_or_has_no_year_is_not_tied(make: ModuleType) -> None:
    between = event(begun(make) + 600.0 + 450.0, kind=EventKind.NOTIFIED)
    assert shift_to_logs(front(make), [between], dated=True) is None
    other = event(begun(make) + 600.0, seq=99)
    assert shift_to_logs(front(make), [other], dated=False) is None
    assert shift_to_logs(front(make), [event(begun(make) + 40 * 3600, seq=99)], dated=True) is None


def test_without_stamped_lines_the_dumps_keep_their_clock(make: ModuleType) -> None:
    assert shift_to_logs(front(make), [event(None), event(3.0, stamped=False)], dated=False) == 0.0


HOUR = 3600.0


@pytest.mark.parametrize("hours", [-5.5, 0.0, 0.2, 2.0, 14.0])
def test_dumps_of_the_same_call_are_of_this_run_in_any_time_zone(make: ModuleType, hours: float) -> None:
    same = event(begun(make) + 600.0 + hours * HOUR)
    if hours * HOUR % 900 == 0:
        assert elsewhen(front(make), [same], dated=True) is None
    late = event(begun(make) + 700.0, seq=99)
    assert elsewhen(front(make), [late], dated=True) is None, "within an hour nothing else is asked"


@pytest.mark.parametrize("hours", [-400.0, 30.0, 24 * 365.0])
def test_dumps_further_away_than_time_zones_are_of_another_run(make: ModuleType, hours: float) -> None:
    for seq in (12, 99):
        apart = elsewhen(front(make), [event(begun(make) + 600.0 + hours * HOUR, seq=seq)], dated=True)
        assert apart is not None
        assert apart == pytest.approx(abs(hours) * HOUR, abs=700)


def test_some_hours_away_another_call_tells_another_run(make: ModuleType) -> None:
    at = begun(make) + 600.0 + 5 * HOUR
    assert elsewhen(front(make), [event(at, seq=12)], dated=True) is None
    assert elsewhen(front(make), [event(at + 400, seq=12)], dated=True) is not None, "no time zone is off by that"
    assert elsewhen(front(make), [event(at, seq=99)], dated=True) is not None
    assert elsewhen(front(make), [event(at, kind=EventKind.NOTIFIED)], dated=True) is None, "no call to compare"


def test_without_years_days_of_the_year_are_compared(make: ModuleType) -> None:
    day = begun(make) - datetime(2026, 1, 1, tzinfo=UTC).timestamp() + datetime(2000, 1, 1, tzinfo=UTC).timestamp()
    assert elsewhen(front(make), [event(day + 600.0)], dated=False) is None
    assert elsewhen(front(make), [event(day + 2 * HOUR + 600)], dated=False) is None
    assert elsewhen(front(make), [event(day + 20 * 24 * HOUR)], dated=False) is not None
    assert elsewhen(front(make), [event(40_000.0)], dated=False) is None, "a clock without a date cannot be compared"


def test_logs_without_stamps_say_nothing(make: ModuleType) -> None:
    assert elsewhen(front(make), [event(None), event(3.0, stamped=False)], dated=True) is None
