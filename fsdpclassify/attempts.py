"""Detections -> episodes: which of them belong to one wait, and which events and lines are those of its attempt.

What is looked up for every episode is sorted once before, so that a log of thousands of attempts takes no longer
for each of them than a log of one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fsdpclassify.order import Order
from fsdpclassify.progressing import Marks
from fsdpclassify.records import Event, EventKind, Line
from fsdpclassify.stretches import Files, Span

#: What one attempt says of the run holds for the next.
_LASTING = frozenset({EventKind.WORLD, EventKind.RANK_MAP, EventKind.TRAINER, EventKind.SERVER})
_Key = tuple[float, int]
_FIRST: _Key = (float("-inf"), -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """The detections of one incident with the events and lines of its attempt.

    `first_line` and `last_line` say for each source where another episode borders on this one.
    """

    detections: tuple[Event, ...]
    events: tuple[Event, ...]
    lines: tuple[Line, ...]
    first_line: dict[int, int] = field(default_factory=dict)
    last_line: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class _Group:
    """The detections of one wait; `start` is the restart that parts them from those before, if one does."""

    detections: list[Event]
    ranks: set[int | None]
    start: Event | None = None


def episodes(
    detections: Sequence[Event], events: Sequence[Event], lines: Sequence[Line], order: Order
) -> Iterator[Episode]:
    """The episodes of `detections` (in order), one after another."""
    groups = _grouped(detections, Marks(events, order))
    shared = _Shares(events, groups, order)
    files = Files(lines if len(groups) > 1 else (), order)
    for index, (group, (first, last)) in enumerate(zip(groups, _bounds(groups), strict=True)):
        found = shared.of(index)
        restart = _last_restart(found, group.detections[0], order)
        if restart is not None:
            found = [e for e in found if e.kind in _LASTING or not order.is_before(e, restart)]
            first[restart.line.source] = max(restart.line.number, first.get(restart.line.source, 0))
        since, until = _end_before(groups, index), _start_after(groups, index)
        span = Span(first=first, last=last, own=_own_lines(group.detections), since=since, until=until).whole()
        yield Episode(
            detections=tuple(group.detections),
            events=tuple(found),
            lines=files.between(span) if len(groups) > 1 else tuple(lines),
            first_line=span.first,
            last_line=span.last,
        )


def _grouped(detections: Sequence[Event], marks: Marks) -> list[_Group]:
    groups: list[_Group] = []
    for event in detections:
        open_one = groups[-1] if groups else None
        progress = marks.progress_between(open_one.detections[-1], event, open_one.ranks) if open_one else None
        if open_one is None or progress is not None:
            start = progress.mark if progress is not None and progress.is_restart else None
            open_one = _Group(detections=[], ranks=set(), start=start)
            groups.append(open_one)
        open_one.detections.append(event)
        open_one.ranks.add(event.rank)
    return groups


def _end_before(groups: Sequence[_Group], index: int) -> float | None:
    return groups[index - 1].detections[-1].time if index else None


def _start_after(groups: Sequence[_Group], index: int) -> float | None:
    if index + 1 == len(groups):
        return None
    after = groups[index + 1]
    return (after.start or after.detections[0]).time


def _bounds(groups: Sequence[_Group]) -> list[tuple[dict[int, int], dict[int, int]]]:
    """For each group where in its files the detections of earlier ones end, and where later ones begin."""
    ends: list[dict[int, int]] = []
    known: dict[int, int] = {}
    for group in groups:
        ends.append(dict(known))
        for e in group.detections:
            known[e.line.source] = max(known.get(e.line.source, 0), e.line.number + 1)
    starts: list[dict[int, int]] = []
    known = {}
    for group in reversed(groups):
        starts.append(dict(known))
        for e in group.detections if group.start is None else [*group.detections, group.start]:
            known[e.line.source] = min(known.get(e.line.source, 1 << 60), e.line.number - 1)
    return list(zip(ends, reversed(starts), strict=True))


def _own_lines(detections: Sequence[Event]) -> dict[int, tuple[int, int]]:
    """For each file the numbers of the first and the last line with one of `detections`."""
    found: dict[int, tuple[int, int]] = {}
    for e in detections:
        low, high = found.get(e.line.source, (e.line.number, e.line.number))
        found[e.line.source] = min(low, e.line.number), max(high, e.line.number)
    return found


def _last_restart(events: Sequence[Event], detection: Event, order: Order) -> Event | None:
    """The last restart before the wait that the new attempt lived through: it finished a step in between."""
    marks = (e for e in events if e.kind is EventKind.ATTEMPT and e.name != "resumed")
    before = [e for e in marks if order.is_before(e, detection)]
    if not before:
        return None
    steps: dict[int, Event] = {}  # the last one of each file, or without regard to files where a clock orders all
    for e in events:
        if e.kind is EventKind.STEP and order.is_before(e, detection):
            place = 0 if order.by_clock else e.line.source
            if place not in steps or order.key(steps[place]) < order.key(e):
                steps[place] = e
    lived = [
        mark
        for mark in before
        if (step := steps.get(0 if order.by_clock else mark.line.source)) is not None and order.is_before(mark, step)
    ]
    return max(lived, key=order.key, default=None)


class _Shares:
    """Parts the events of an input among the episodes: each gets what lies between its neighbours' detections."""

    def __init__(self, events: Sequence[Event], groups: Sequence[_Group], order: Order) -> None:
        self._events = events
        self._groups = groups
        self._order = order
        if len(groups) < 2:
            return
        self._timeless = [i for i, e in enumerate(events) if order.is_timeless(e) and not order.is_recorded(e)]
        rest = (i for i, e in enumerate(events) if not order.is_recorded(e) and not order.is_timeless(e))
        pairs = sorted((order.key(events[i]), i) for i in rest)
        self._keys = [key for key, _ in pairs]
        self._places = [i for _, i in pairs]
        self._recorded: dict[int, list[Event]] = {}
        nearest = _Nearest(groups, order)
        for e in events:
            if order.is_recorded(e):
                self._recorded.setdefault(nearest.of(e), []).append(e)

    def of(self, index: int) -> list[Event]:
        """The events of episode `index`, those of dumps last."""
        group = self._groups[index]
        stated = [e for e in group.detections if e.kind is EventKind.STATED_HANG]
        if len(self._groups) < 2:
            recorded = [e for e in self._events if self._order.is_recorded(e)]
            return [e for e in self._events if not self._order.is_recorded(e)] + recorded + stated
        start, end = self._reach(index)
        places = self._places[start:end]
        if group.start is not None:
            begun = bisect_left(self._keys, self._order.key(group.start), start, end) - start
            places = [i for i in places[:begun] if self._events[i].kind in _LASTING] + places[begun:]
        printed = [self._events[i] for i in sorted([*places, *self._timeless])]
        return printed + self._recorded.get(index, []) + stated

    def _reach(self, index: int) -> tuple[int, int]:
        """From the last detection of the episode before to the restart, or the first detection, of the next one."""
        groups, key = self._groups, self._order.key
        low = key(groups[index - 1].detections[-1]) if index else _FIRST
        if index + 1 == len(groups):
            return bisect_right(self._keys, low), len(self._keys)
        after = groups[index + 1]
        return bisect_right(self._keys, low), bisect_left(self._keys, key(after.start or after.detections[0]))


class _Nearest:
    """The episode whose detections lie nearest to what a dump shows; without clocks the last one."""

    def __init__(self, groups: Sequence[_Group], order: Order) -> None:
        self._last = len(groups) - 1
        timed = [(d.time, i) for i, group in enumerate(groups) for d in group.detections if d.time is not None]
        self._timed = sorted(timed) if order.by_clock else []

    def of(self, event: Event) -> int:
        """The index of that episode."""
        if event.time is None or not self._timed:
            return self._last
        time = event.time
        at = bisect_left(self._timed, (time, -1))
        return min(self._timed[max(0, at - 1) : at + 1], key=lambda d: abs(d[0] - time))[1]
