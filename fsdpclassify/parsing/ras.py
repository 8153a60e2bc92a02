"""NCCL's RAS subsystem (2.24 and later): which processes it lost, and how far each rank's operations got.

The report lists, for a communicator whose ranks disagree, the operation that each group of ranks has launched;
the rank far behind the others is the one that did not come (log-formats §3.4).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from fsdpclassify.parsing.rule import Rule, event, simple
from fsdpclassify.records import Event, EventKind, Line

_LAUNCHED = re.compile(
    r"^(?P<count>\d{1,6}) ranks? (?:have|has) launched up to operation (?P<most>\d{1,12})"
    r"|^Rank (?P<rank>\d{1,6}) has launched up to operation (?P<seq>\d{1,12})"
    r"|^Rank (?P<none>\d{1,6}) has not launched any operations"
)
#: Lines of one communicator's report stand together.
_NEAR = 64


def _launched(match: re.Match[str], line: Line) -> Iterable[Event]:
    rank = match["rank"] or match["none"]
    yield event(
        EventKind.RANK_MAP,
        line,
        rank=rank,
        seq=match["seq"] or match["most"] or "0",
        total=match["count"],
        name="ras_operation",
    )


def with_laggards(events: Sequence[Event]) -> list[Event]:
    """`events` with a report of lagging ranks for the one rank that RAS shows behind all others of the world.

    RAS prints ranks of a communicator: only in one of the world's size are they global ranks.
    """
    if not any(e.name == "ras_operation" for e in events):
        return list(events)
    sizes = {e.total for e in events if e.kind is EventKind.WORLD and e.total}
    most: Event | None = None
    found: list[Event] = []
    for e in events:
        found.append(e)
        if e.name != "ras_operation":
            continue
        if e.total is not None:
            most = e
        elif _is_behind(e, most) and most is not None and (most.total or 0) + 1 == max(sizes, default=0):
            found.append(
                replace(e, kind=EventKind.JOINED, name="lagging", ranks=(e.rank,) if e.rank is not None else ())
            )
    return found


def _is_behind(event: Event, most: Event | None) -> bool:
    if most is None or most.line.source != event.line.source or event.line.number - most.line.number > _NEAR:
        return False
    return event.seq is not None and most.seq is not None and event.seq < most.seq


RULES = (
    Rule(name="ras_operation", anchor=r"launched (?:up to|any) operation", pattern=_LAUNCHED, build=_launched),
    Rule(
        name="ras_dead",
        anchor=r"RAS declaring peer |considered dead",
        pattern=re.compile(
            r"(?P<detail>RAS declaring peer \S{1,80} as DEAD|process(?:es)? (?:is|are) considered dead)"
        ),
        build=simple(EventKind.RANK_MAP, name="ras_dead"),
    ),
)
