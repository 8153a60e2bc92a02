"""From the clock of dumps (UTC) to the wall clock that the logs of the same run print."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from fsdpclassify.recorder.wavefront import Front
from fsdpclassify.records import Event, EventKind

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
