"""The telling lines of an incident in the order of the clock: alike ones of many ranks as one, steps as a summary.

A log repeats the same message for every rank and every step. What an engineer reads is who did what when;
`inspect --json` has every event beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from fsdpclassify.records import DETECTIONS, Event, EventKind, Incident
from fsdpclassify.report.phrases import QUOTED, phrase
from fsdpclassify.report.structured import Json, one_line

LIMIT = 40
#: Alike events further apart are told apart.
_APART_S = 120.0
_READ_CHARACTERS = 4000
_STEPS = frozenset({EventKind.STEP, EventKind.PROGRESS})
#: What only tells what kind of input this is, or is shown in a table of its own.
_UNTOLD = frozenset({EventKind.TRAINER, EventKind.SERVER, EventKind.RANK_MAP, EventKind.WORLD, EventKind.PHASE})
_FAILURES = frozenset({EventKind.ERROR, EventKind.EXIT, EventKind.SIGNAL, EventKind.KILL, EventKind.HARDWARE})


@dataclass(slots=True)
class _Row:
    """Alike events: the first of them stands for all."""

    first: Event
    ranks: set[int] = field(default_factory=set)
    count: int = 0
    last: Event | None = None
    lowest: int | None = None

    def add(self, event: Event) -> None:
        self.count += 1
        self.last = event
        if event.rank is not None:
            self.ranks.add(event.rank)
        if event.step is not None:
            self.lowest = event.step if self.lowest is None else min(event.step, self.lowest)

    @property
    def shown(self) -> Event:
        """The event whose line and time are given: of steps the last, of all else the first."""
        return self.last if self.last is not None and self.first.kind in _STEPS else self.first


def timeline(incident: Incident, paths: Sequence[str], mask: Callable[[str], str]) -> list[Json]:
    """At most `LIMIT` rows in order of time, or of the input where some have no time; `mask` sees printed text."""
    told = [_timed(e, incident) for e in incident.events if e.kind not in _UNTOLD and not _is_tabled(e)]
    rows = [*_steps(e for e in told if e.kind in _STEPS), *_alike(e for e in told if e.kind not in _STEPS)]
    kept = sorted(rows, key=lambda row: _weight(row, incident))[:LIMIT]
    return [_as_dict(row, incident, paths, mask) for row in sorted(kept, key=_order(kept))]


def _timed(event: Event, incident: Incident) -> Event:
    """The event, at the time estimated for the detection if it is an unstamped one as well."""
    if not incident.detection.estimated or event.kind not in DETECTIONS or event.line.stamped:
        return event
    return replace(event, time=incident.detection.time)


def _is_tabled(event: Event) -> bool:
    """Whether the table of the flight recorder says the same."""
    return event.kind is EventKind.RECORDED and event.name in ("dump", "counters")


def _steps(events: Iterable[Event]) -> list[_Row]:
    """One row for each bar, and one for all ranks whose steps begin and end alike."""
    own: dict[tuple[object, ...], _Row] = {}
    for e in events:
        own.setdefault((e.kind, e.rank, e.name), _Row(e)).add(e)
    merged: dict[tuple[object, ...], _Row] = {}
    for (kind, _, name), row in own.items():
        last = row.last.step if row.last is not None else None
        other = merged.setdefault((kind, name, row.lowest, last), row)
        if other is not row:
            other.ranks |= row.ranks
            other.count += row.count
    return list(merged.values())


def _alike(events: Iterable[Event]) -> list[_Row]:
    rows: list[_Row] = []
    open_rows: dict[tuple[object, ...], _Row] = {}
    for e in events:
        row = open_rows.get(key := _key(e))
        if row is None or _far(row, e):
            row = open_rows[key] = _Row(e)
            rows.append(row)
        row.add(e)
    return rows


def _key(e: Event) -> tuple[object, ...]:
    said = (e.detail or "")[:60] if e.kind in _FAILURES else None
    return (e.kind, e.name, e.op, e.seq, e.code, e.group, e.enqueued, e.completed, e.ranks, said)


def _far(row: _Row, event: Event) -> bool:
    last = row.last or row.first
    return event.time is not None and last.time is not None and abs(event.time - last.time) > _APART_S


def _weight(row: _Row, incident: Incident) -> tuple[int, int]:
    """What is left out first has the greatest weight: repeats of waits and what names no rank."""
    kind = row.first.kind
    if row.first.line is incident.detection.line:
        return (0, 0)
    rank = 1 if kind in _FAILURES else 2 if kind in DETECTIONS else 3 if kind in _STEPS else 4
    return (rank, -len(row.ranks))


def _order(rows: Sequence[_Row]) -> Callable[[_Row], tuple[float, int, int]]:
    timed = all(row.shown.time is not None for row in rows)
    return lambda row: (
        (row.shown.time or 0.0) if timed else 0.0,
        row.shown.line.source,
        row.shown.line.number,
    )


def _as_dict(row: _Row, incident: Incident, paths: Sequence[str], mask: Callable[[str], str]) -> Json:
    event = row.shown
    source = event.line.source
    return {
        "clock": _clock(event),
        "path": paths[source] if 0 <= source < len(paths) else "",
        "line": event.line.number,
        "kind": str(event.kind),
        "ranks": sorted(row.ranks),
        "what": one_line(mask(phrase(event, lowest=row.lowest))),
        "lines": row.count,
        "is_detection": row.first.line is incident.detection.line,
        "text": one_line(mask(_printed(event))) if event.kind in QUOTED else None,
    }


def _printed(event: Event) -> str:
    """What the line says behind its prefixes, which the row has told."""
    return (event.line.body or event.line.text)[:_READ_CHARACTERS]


def _clock(event: Event) -> str | None:
    """`04:11:09`, with `~` where the line itself prints no time and follows one that does."""
    if event.time is None:
        return None
    second = int(event.time % 86400)
    sign = "" if event.line.stamped else "~"
    return f"{sign}{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
