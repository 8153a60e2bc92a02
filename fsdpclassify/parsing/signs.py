"""How dialects of the host say something: fixed texts, each with the name of its event and its meaning in words.

The kernel, drivers and daemons speak about a node. A line of theirs in a rank's own folder says nothing
about that rank, so these events have none until `hosts` joins them by process or by device.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fsdpclassify.parsing.rule import Rule, event
from fsdpclassify.records import Event, EventKind, Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """`pattern` (no groups that capture) in a line means `meaning`; `name` is that of the event."""

    name: str
    pattern: str
    meaning: str
    kind: EventKind = EventKind.HARDWARE


def host_event(
    line: Line, *, name: str, detail: str, kind: EventKind = EventKind.HARDWARE, **more: int | None
) -> Event:
    """An event of the host that `line` is about; its rank is open."""
    return replace(event(kind, line, name=name, detail=detail, **more), rank=None)


def signs_rule(name: str, anchor: str, signs: Sequence[Sign]) -> Rule:
    """One rule for all `signs`; the first that matches a line is taken. `anchor` covers every one of them."""
    listed = tuple(signs)
    pattern = re.compile("|".join(f"(?P<s{i}>{sign.pattern})" for i, sign in enumerate(listed)))

    def build(match: re.Match[str], line: Line) -> Iterable[Event]:
        if match.start() == _first(pattern, match):
            sign = listed[int((match.lastgroup or "s0")[1:])]
            yield host_event(line, name=sign.name, detail=sign.meaning, kind=sign.kind)

    return Rule(name=name, anchor=anchor, pattern=pattern, build=build)


def _first(pattern: re.Pattern[str], match: re.Match[str]) -> int:
    """Where the first match of the line begins: a second text on it is the same happening."""
    found = pattern.search(match.string)
    return found.start() if found else -1
