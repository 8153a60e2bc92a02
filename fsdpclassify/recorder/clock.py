"""From the clock of dumps (UTC) to the wall clock that the logs of the same run print, if they are of one run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime

from fsdpclassify.recorder.wavefront import Front
from fsdpclassify.records import DETECTIONS, Event, EventKind

_QUARTER_S = 900.0
_WIDEST_S = 15 * 3600.0
#: A dump is written within this time of the detection that it belongs to.
_NEAR_S = 300.0


def shift_to_logs(front: Front, events: Sequence[Event], *, dated: bool) -> float | None:
    """Seconds to add to a dump's times; 0 without stamped log lines, None where the two cannot be tied together.

    A timed-out call that both name gives it exactly. Else time zones do: they differ by quarters of an hour.
    """
    stamped = [e for e in events if e.time is not None and e.line.stamped]
    if not stamped:
        return 0.0
    same = [d for e in stamped if (d := _same_call(front, e)) is not None]
    if same:
        return statistics.median(same)
    return _by_zone(front, stamped) if dated else None


def _same_call(front: Front, event: Event) -> float | None:
    if event.kind is not EventKind.TIMEOUT or event.rank is None or not event.elapsed_s or event.time is None:
        return None
    standing = front.cast.standing.get(event.rank)
    for work in standing.in_flight if standing is not None else ():
        if work.created and work.seq == event.seq and work.operation.name == event.op:
            return event.time - event.elapsed_s - work.created
    return None


def _by_zone(front: Front, stamped: Sequence[Event]) -> float | None:
    ends = [w.work.created + w.work.timeout_s for w in front.waits.values() if w.work.timeout_s and w.work.created]
    seen = [e.time for e in stamped if e.kind in (EventKind.TIMEOUT, EventKind.NOTIFIED, EventKind.DUMPING) and e.time]
    if not ends or not seen:
        return None
    apart = min(seen) - min(ends)
    shift = round(apart / _QUARTER_S) * _QUARTER_S
    return shift if abs(apart - shift) <= _NEAR_S and abs(shift) <= _WIDEST_S else None


#: A dump is of another run if its newest call lies so much further from any detection than a timeout.
_ELSEWHEN_S = 3600.0
#: Where logs print no year they are placed in this one (parsing), and those without a date before it.
_NO_YEAR, _YEAR_S = 2000, 366 * 86400.0
_DAY_S = 86400.0


def elsewhen(front: Front, events: Sequence[Event], *, dated: bool) -> float | None:
    """How many seconds at least lie between the newest call of any dump and the waits that logs show, if that is
    more than the dumps of one run leave; None if it is not, or cannot be told.

    Logs print no time zone, so up to fifteen hours prove nothing by themselves. They do where both name the call
    of a rank, and it is another one, or lies apart by what no time zone is.
    """
    works = [w for s in front.cast.standing.values() for w in s.dump.works if w.created]
    times = _times_of(events, dated=dated)
    if not works or not times:
        return None
    newest = max(w.created for w in works)
    limit = _ELSEWHEN_S + max((w.timeout_s or 0.0 for w in works), default=0.0)
    newest = newest if dated else _without_year(newest)
    apart = min((t - newest for t in times), key=lambda d: abs(_wrapped(d, dated=dated)))
    distance = abs(_wrapped(apart, dated=dated))
    if distance <= limit:
        return None
    if distance > _WIDEST_S + limit:
        return distance
    moved = 0.0 if dated else newest - max(w.created for w in works)
    return distance if _is_another_call(front, events, moved, dated=dated) else None


def _times_of(events: Sequence[Event], *, dated: bool) -> list[float]:
    """When the logs show waits, else anything; only what has a date."""
    stamped = [e for e in events if e.time is not None and e.line.stamped]
    start = 0.0 if dated else datetime(_NO_YEAR, 1, 1, tzinfo=UTC).timestamp()
    waits = [e.time for e in stamped if e.kind in DETECTIONS and e.time is not None]
    return [t for t in waits or [e.time for e in stamped if e.time is not None] if t >= start]


def _without_year(seconds: float) -> float:
    try:
        moment = datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, ValueError, OSError):
        return seconds
    start = datetime(moment.year, 1, 1, tzinfo=UTC)
    return datetime(_NO_YEAR, 1, 1, tzinfo=UTC).timestamp() + (moment - start).total_seconds()


def _wrapped(seconds: float, *, dated: bool) -> float:
    """A distance in time; without years the shorter way round, less the day that leap years are apart."""
    if dated:
        return seconds
    around = (seconds + _YEAR_S / 2) % _YEAR_S - _YEAR_S / 2
    return max(0.0, abs(around) - _DAY_S)


def _is_another_call(front: Front, events: Sequence[Event], moved: float, *, dated: bool) -> bool:
    """Whether a rank's dump lacks the call that its log says has timed out, or has it at a time of no time zone.

    `moved` is what lies between the year of the dumps and the one that logs without a year were placed in.
    """
    told = [e for e in events if e.kind is EventKind.TIMEOUT and e.seq is not None and e.rank in front.cast.standing]
    same = [d for e in told if (d := _same_call(front, e)) is not None]
    if same:
        middle = statistics.median(same) - moved
        middle = middle if dated else math.copysign(_wrapped(middle, dated=False), middle)
        return abs(middle - round(middle / _QUARTER_S) * _QUARTER_S) > _NEAR_S or abs(middle) > _WIDEST_S
    recorded = {(r, w.seq) for r, s in front.cast.standing.items() for w in s.dump.works}
    return bool(told) and not any((e.rank, e.seq) in recorded for e in told)
