"""Exits whose rank stands on other lines: torchrun's report tables, and local ranks that such a table translates.

The table's clock is that of the launcher at one second's resolution; it names the rank, the code and,
for a process with an error file, when it failed (log-formats §0.6, §4.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fsdpclassify.records import Event, EventKind

_TABLE = frozenset({"report_time", "report_rank", "report_code"})
#: Fields of one entry stand on neighbouring lines.
_NEAR = 8


def with_report_exits(events: Sequence[Event]) -> list[Event]:
    """`events` with an exit for each entry of a report table, and with global ranks for exits of local ones."""
    tables: dict[int, dict[int, set[int]]] = {}
    found: list[Event] = []
    entry: dict[str, Event] = {}
    for event in events:
        found.append(event)
        if event.kind is not EventKind.RANK_MAP or event.name not in _TABLE:
            continue
        if event.name == "report_time":
            entry = {}
        entry[event.name or ""] = event
        if event.name == "report_code" and (made := _exit(entry, event)) is not None:
            found.append(made)
            if made.rank is not None and made.local_rank is not None:
                tables.setdefault(event.line.source, {}).setdefault(made.local_rank, set()).add(made.rank)
    return [_translated(e, tables.get(e.line.source, {})) for e in found] if tables else found


def _exit(entry: dict[str, Event], code: Event) -> Event | None:
    rank, time = entry.get("report_rank"), entry.get("report_time")
    if rank is None or rank.line.source != code.line.source or code.line.number - rank.line.number > _NEAR:
        return None
    when = time.time if time is not None and time.line.source == code.line.source else code.time
    return replace(
        code, kind=EventKind.EXIT, name="report", rank=rank.rank, local_rank=rank.local_rank, time=when, detail=None
    )


def _translated(event: Event, table: dict[int, set[int]]) -> Event:
    if (
        event.kind is not EventKind.EXIT
        or event.name != "elastic"
        or event.rank is not None
        or event.local_rank is None
    ):
        return event
    ranks = table.get(event.local_rank, set())
    return replace(event, rank=next(iter(ranks))) if len(ranks) == 1 else event
