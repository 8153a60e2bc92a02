"""The lines of one attempt, cut out of each file between the detections of the attempts before and after it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from fsdpclassify.order import Order
from fsdpclassify.records import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Lines `first` to `last` of each file (both included); by clock where a file has no such border; all of `own`."""

    first: dict[int, int]
    last: dict[int, int]
    own: dict[int, tuple[int, int]]
    since: float | None
    until: float | None

    def whole(self) -> Span:
        """The same with borders that leave no detection of its own out: a clock that jumps puts lines out of order."""
        first = {s: min(n, self.own[s][0]) if s in self.own else n for s, n in self.first.items()}
        last = {s: max(n, self.own[s][1]) if s in self.own else n for s, n in self.last.items()}
        return replace(self, first=first, last=last)


class Files:
    """The lines of each file, to cut out those of one attempt."""

    def __init__(self, lines: Sequence[Line], order: Order) -> None:
        self._files: dict[int, list[Line]] = {}
        for line in lines:
            self._files.setdefault(line.source, []).append(line)
        self._numbers = {source: [line.number for line in own] for source, own in self._files.items()}
        clocks = {source: _clock(own) for source, own in self._files.items()} if order.by_clock else {}
        self._clocks = {source: times for source, times in clocks.items() if times is not None}

    def between(self, span: Span) -> tuple[Line, ...]:
        """The lines of `span` in the order of the input."""
        found: list[Line] = []
        for source, own in self._files.items():
            numbers, clock = self._numbers[source], self._clocks.get(source)
            start, end = 0, len(own)
            if source in span.first:
                start = bisect_left(numbers, span.first[source])
            elif clock is not None and span.since is not None:
                start = bisect_left(clock, span.since)
            if source in span.last:
                end = bisect_right(numbers, span.last[source])
            if clock is not None and span.until is not None:
                end = min(end, bisect_right(clock, span.until))
            if source in span.own:
                low, high = span.own[source]
                start, end = min(start, bisect_left(numbers, low)), max(end, bisect_right(numbers, high))
            found += own[start:end]
        return tuple(found)


def _clock(lines: Sequence[Line]) -> list[float] | None:
    """The times of a file whose clock never runs backwards; None for any other."""
    times = [line.time if line.time is not None else float("-inf") for line in lines]
    return times if all(a <= b for a, b in pairwise(times)) else None
