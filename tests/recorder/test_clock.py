"""From the clock of dumps to that of the logs."""

from __future__ import annotations

from types import ModuleType

import pytest

from fsdpclassify.recorder.clock import shift_to_logs
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
