"""The order of events: by clock where every source is stamped, by position otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from fsdpclassify.records import Event, InputKind, Line

_LAST = 1 << 59


class Order:
    """Clock order where every source is stamped, input order otherwise.

    Tables of a host and kernel lines whose clock nothing ties down have no order, and take none from the others.
    """

    def __init__(self, lines: Sequence[Line], kinds: Sequence[InputKind | None]) -> None:
        self._index = {id(line): i for i, line in enumerate(lines)}
        self._starts: dict[int, float] = {}
        self._dumps = {source for source, kind in enumerate(kinds) if kind is InputKind.FLIGHT_RECORDER}
        for line in lines:
            if line.time is not None:
                self._starts.setdefault(line.source, line.time)
        timeless = {line.source for line in lines if kinds[line.source] is InputKind.SYSTEM} - set(self._starts)
        self._timeless = timeless if self._starts else set()
        self.by_clock = bool(lines) and {line.source for line in lines} - self._timeless == set(self._starts)

    def key(self, event: Event) -> tuple[float, int]:
        """Sorts events; what stands before the first stamp of its file is as old as that stamp."""
        position = self.position(event.line)
        if not self.by_clock:
            return (0.0, position)
        if event.time is None and self.is_recorded(event):
            return (float("inf"), position)
        return (event.time if event.time is not None else self._starts.get(event.line.source, float("inf")), position)

    def start(self, source: int) -> float | None:
        """The first stamp of a file; None if it has none."""
        return self._starts.get(source)

    def is_timeless(self, event: Event) -> bool:
        """Whether the event states how a host is, at no time: it belongs to every episode."""
        return self.by_clock and event.line.source in self._timeless

    def is_before(self, event: Event, other: Event) -> bool:
        """Whether `event` is known to lie before `other`: by clock, or by position in one file."""
        if not self.by_clock and event.line.source != other.line.source:
            return False
        return self.key(event) < self.key(other)

    def position(self, line: Line) -> int:
        """Where the line stands in the input; what dumps show was written last."""
        return self._index.get(id(line), _LAST if line.source in self._dumps else 0)

    def is_recorded(self, event: Event) -> bool:
        """Whether a flight-recorder dump shows the event."""
        return event.line.source in self._dumps
