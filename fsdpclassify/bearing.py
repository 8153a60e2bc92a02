"""Which events of the hosts bear on a wait: not those of another time, and not those of another machine.

A system log covers months and may come from a node that the run was not on. What does not bear on the
incident stays among its events, under a name that is nobody's fault, with the reason in `detail`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fsdpclassify.parsing.hosts import is_name, short_node
from fsdpclassify.records import Event, EventKind, Line
from fsdpclassify.roles import is_clocked, is_fault

#: A fault this long before the wait began did not begin it: the run made its collectives in between.
_LONG_BEFORE_S = 900.0
_DEFAULT_WAIT_S = 1800.0
#: Steps printed so soon after a fault may have been on their way.
_ON_ITS_WAY_S = 5.0
_STEPS_AFTER = 2


def bearing(
    events: Sequence[Event], lines: Sequence[Line], detection: Event, onset: float | None, world: int | None
) -> tuple[Event, ...]:
    """`events` with faults of the hosts set aside that lie too far back, were survived, or struck another machine."""
    if not any(_is_of_host(e) for e in events):
        return tuple(events)
    start = onset if onset is not None else _start(detection)
    steps = [(e.time, e.step) for e in events if e.kind is EventKind.STEP and e.time is not None and is_clocked(e)]
    nodes = _nodes(lines, world)
    return tuple(_judged(e, start, detection, steps, nodes) if _is_of_host(e) else e for e in events)


def _is_of_host(event: Event) -> bool:
    return event.kind is EventKind.KILL or (event.kind is EventKind.HARDWARE and is_fault(event))


def _start(detection: Event) -> float | None:
    """When the wait began at the latest reckoning; None without a clock."""
    if detection.time is None or not is_clocked(detection):
        return None
    return detection.time - (detection.elapsed_s or detection.timeout_s or _DEFAULT_WAIT_S)


def _judged(
    event: Event,
    start: float | None,
    detection: Event,
    steps: Sequence[tuple[float, int | None]],
    nodes: frozenset[str] | None,
) -> Event:
    if nodes is not None and event.line.node is not None and short_node(event.line.node) not in nodes:
        return _aside(event, "elsewhere", "on a machine that no rank of the run is on")
    if start is None or detection.time is None or event.time is None or not is_clocked(event):
        return event
    before = start - event.time
    if before > _LONG_BEFORE_S:
        return _aside(event, "earlier", f"{_span(before)} before the wait began: not its cause")
    after = {s for t, s in steps if s is not None and event.time + _ON_ITS_WAY_S < t < detection.time}
    if event.name != "link" and event.name != "iommu" and len(after) >= _STEPS_AFTER:
        return _aside(event, "earlier", f"the run made {len(after)} more steps after it")
    return event


def _span(seconds: float) -> str:
    """Minutes up to three hours, hours up to three days, days above."""
    for unit, length in (("days", 86400.0), ("hours", 3600.0)):
        if seconds >= 3 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 60:.0f} minutes"


def _aside(event: Event, name: str, why: str) -> Event:
    detail = f"{event.detail}; {why}" if event.detail else why
    return replace(event, kind=EventKind.HARDWARE, name=name, detail=detail)


def _nodes(lines: Sequence[Line], world: int | None) -> frozenset[str] | None:
    """The run's nodes by short name, where the input shows a named one for every rank; None otherwise."""
    if world is None:
        return None
    found = {
        line.rank: short_node(line.node) or "" for line in lines if line.rank is not None and line.node is not None
    }
    named = all(is_name(node) for node in found.values())
    return frozenset(found.values()) if named and len(found) >= world else None
