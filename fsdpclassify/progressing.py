"""What shows that a run went on between two detections: a new step, a restart, or a step counter that fell back.

A run that resumes from a checkpoint counts steps that it has counted before. So a step of a rank below the last one
that it showed is as much a sign of a new attempt as a banner is; a repeated tail of a log is not.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fsdpclassify.order import Order
from fsdpclassify.records import Event, EventKind, Line

#: Progress this many seconds after a detection belongs to a new episode, not to lines printed late.
_SETTLE_S = 5.0
_KINDS = frozenset({EventKind.STEP, EventKind.PROGRESS, EventKind.ATTEMPT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The first sign of it, and whether a new attempt begins there."""

    mark: Event
    is_restart: bool


class Marks:
    """Steps, bars and restarts in order; asked for every pair of neighbouring detections, the earlier ones first."""

    def __init__(self, events: Sequence[Event], order: Order) -> None:
        self._order = order
        found = sorted(((order.key(e), e) for e in events if e.kind in _KINDS), key=lambda m: m[0])
        self._keys = [key for key, _ in found]
        self._events = [e for _, e in found]
        self._best = _Best(self._events)
        self._first: dict[tuple[int, int], int] = {}
        for e in events:
            if e.line.rank is not None:
                self._first.setdefault((e.line.source, e.line.rank), e.line.number)

    @cached_property
    def _fallen(self) -> set[int]:
        """Where counters fell back; most logs never ask."""
        return _fallen(self._events, by_clock=self._order.by_clock)

    def progress_between(self, last: Event, event: Event, ranks: Collection[int | None]) -> Progress | None:
        """What shows that the run goes on, or starts again, between the detections `last` and `event`.

        `ranks` are those whose detections make one wait with `last`. Without clocks, a counter that fell back tells
        a restart only before a rank that gave up a second time: logs may have been put one behind another.
        """
        low = self._order.key(last)
        first = bisect_right(self._keys, low)
        best = self._best.before(first)
        settled = low[0] if _began_after(event, last) else low[0] + _SETTLE_S
        again = self._order.by_clock or event.rank in ranks or event.rank is None or None in ranks
        for i in range(first, bisect_left(self._keys, self._order.key(event))):
            if self._is_progress(i, last, settled, best, again=again):
                self._best.begin(i)
                e = self._events[i]
                is_plain = e.kind is EventKind.STEP and e.step is not None and e.step > best
                return Progress(mark=e, is_restart=not is_plain)
        return None

    def _is_progress(self, i: int, last: Event, settled: float, best: int, *, again: bool) -> bool:
        e, by_clock = self._events[i], self._order.by_clock
        if not by_clock and not self._follows(e, last):
            return False  # without clocks, only the order within one interleaved file means anything
        late = by_clock and self._keys[i][0] < settled
        if e.kind is EventKind.ATTEMPT:
            return not (late and e.name in ("start_up", "resumed"))
        if e.kind is not EventKind.STEP or e.step is None or late:
            return False
        if e.step > best or (again and i in self._fallen):
            return True
        start = self._order.start(e.line.source)
        return by_clock and start is not None and start > settled

    def _follows(self, e: Event, last: Event) -> bool:
        """Whether `e` was printed after `last`: in one file, by a rank that had spoken in it before `last`.

        A rank whose first line comes later may have been put there by `cat`, whenever it ran.
        """
        if e.line.source != last.line.source:
            return False
        return e.line.rank is None or self._first[(e.line.source, e.line.rank)] <= last.line.number


def _began_after(event: Event, earlier: Event) -> bool:
    """Whether the wait that `event` gives up began only after `earlier`: what stands between is no late flush."""
    if event.time is None or earlier.time is None or not event.elapsed_s:
        return False
    if not (event.line.stamped and earlier.line.stamped):
        return False  # times taken over from other lines are too old by an unknown amount
    return event.time - event.elapsed_s >= earlier.time


class _Best:
    """The furthest step of the present attempt, up to a mark; marks are asked for in ascending order."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._at = 0
        self._best = -1
        self._restarted = False

    def begin(self, index: int) -> None:
        """A new attempt, or a new stretch of the old one, begins at the mark `index`."""
        self._at, self._best, self._restarted = index, -1, False

    def before(self, index: int) -> int:
        """The furthest step before the mark `index`; -1 if none was shown. A restart without a detection counts too."""
        for e in self._events[self._at : index]:
            if e.kind is EventKind.ATTEMPT:
                self._restarted = True
            elif e.step is not None:
                is_behind = self._restarted and e.kind is EventKind.STEP and e.step < self._best
                self._best = e.step if is_behind else max(e.step, self._best)
                self._restarted = False
        self._at = max(self._at, index)
        return self._best


@dataclass(slots=True)
class _Stream:
    """The steps of one rank, or of a file whose lines name none: the last one, and the least distance of two."""

    last: int | None = None
    interval: int = 0
    texts: set[tuple[int, str]] = field(default_factory=set)


def _fallen(events: Sequence[Event], *, by_clock: bool) -> set[int]:
    """Indices of the steps at which a counter fell back. Lines that were printed before, word by word, are a
    repeated tail; where lines name no rank, ranks that take turns may be one interval apart.
    """
    streams: dict[tuple[int, ...], _Stream] = {}
    found: set[int] = set()
    for i, e in enumerate(events):
        if e.kind is not EventKind.STEP or e.step is None:
            continue
        stream = streams.setdefault(_stream_of(e, e.line, by_clock=by_clock), _Stream())
        text = (e.line.source, e.line.text)
        fall = stream.last - e.step if stream.last is not None else 0
        if fall > (0 if e.rank is not None else max(stream.interval, 1)) and text not in stream.texts:
            found.add(i)
        if fall < 0:
            stream.interval = min(-fall, stream.interval or -fall)
        stream.last = e.step
        stream.texts.add(text)
    return found


def _stream_of(e: Event, line: Line, *, by_clock: bool) -> tuple[int, ...]:
    """Whose counter a step is of: that of a rank, in one file unless a clock puts several in order."""
    if e.rank is None:
        return (line.source, line.part, -1, -1)
    return (e.rank,) if by_clock else (line.source, e.rank)
