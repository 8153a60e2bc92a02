"""Tables of the host: a header that a rule finds, and the lines under it that only mean something together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fsdpclassify.parsing.rule import Rule, simple
from fsdpclassify.records import Event, EventKind, Line

Reader = Callable[[Sequence[Line]], Iterable[Event]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """`read` gets the header's line and at most `most` lines of the same file behind it: the first, or the last."""

    name: str
    read: Reader
    most: int
    last: bool = False

    def rule(self, *, anchor: str, pattern: re.Pattern[str]) -> Rule:
        """The rule for the header; `with_tables` puts the events of the table in place of the header's."""
        return Rule(name=self.name, anchor=anchor, pattern=pattern, build=simple(EventKind.RANK_MAP, name=self.name))


def with_tables(events: Sequence[Event], lines: Sequence[Line], tables: Sequence[Table]) -> list[Event]:
    """`events` with what each table says instead of its header; others unchanged.

    From the first header of a kind on, the reader sees the whole file: it may hold several, and the same one again.
    """
    known = {table.name: table for table in tables}
    if not any(e.kind is EventKind.RANK_MAP and e.name in known for e in events):
        return list(events)
    index = {id(line): i for i, line in enumerate(lines)}
    found: list[Event] = []
    read: set[tuple[int, str]] = set()
    for event in events:
        table = known.get(event.name or "") if event.kind is EventKind.RANK_MAP else None
        if table is None:
            found.append(event)
        elif (event.line.source, table.name) not in read:
            read.add((event.line.source, table.name))
            found.extend(table.read(_under(lines, index[id(event.line)], table)))
    return found


def _under(lines: Sequence[Line], start: int, table: Table) -> Sequence[Line]:
    """The line at `start` and those of its file that follow it."""
    end = start + 1
    limit = len(lines) if table.last else min(len(lines), start + 1 + table.most)
    while end < limit and lines[end].source == lines[start].source:
        end += 1
    return [lines[start], *lines[max(start + 1, end - table.most) : end]]
