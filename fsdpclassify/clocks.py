"""How far the clocks of hosts are apart, from steps that several hosts completed together.

The step that never completed is left out: there a late rank and a late clock look the same. Without enough
common steps nothing is said, and clocks are taken to agree within the tolerance that orders failures.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from fsdpclassify.records import Event, EventKind, Line

#: So many steps must have been completed on both hosts (design §2).
_COMMON = 5
#: One host prints a step once for each of its ranks; times further apart are steps of several attempts.
_ONE_STEP_S = 60.0
#: Smaller offsets are the loggers' own delays; a host whose times scatter by more than this is no clock at all.
_SMALLEST_S, _SCATTER_S = 2.0, 1.0

Times = Mapping[int, float]


def clock_offsets(lines: Sequence[Line], events: Iterable[Event]) -> dict[str, float]:
    """Seconds by which each host's clock is ahead of most others'; only hosts for which enough steps tell.

    Empty for a single host. The clock that most hosts share is the reference, and its hosts have offset 0.
    """
    steps = _step_times(events, hosts_of(lines))
    if len(steps) < 2:
        return {}
    reference = max(sorted(steps), key=lambda host: _linked(host, steps))
    found = {reference: 0.0}
    for host in steps:
        offset = None if host == reference else _offset(steps[host], steps[reference])
        if offset is not None:
            found[host] = offset
    if len(found) < 2:
        return {}
    middle = statistics.median_low(found.values())
    return {host: round(offset - middle, 3) for host, offset in sorted(found.items())}


def hosts_of(lines: Iterable[Line]) -> dict[int, str]:
    """The host of each rank, from the first of its lines that names one."""
    hosts: dict[int, str] = {}
    for line in lines:
        if line.rank is not None and line.node:
            hosts.setdefault(line.rank, line.node)
    return hosts


def corrected(
    lines: Sequence[Line], events: Sequence[Event], offsets: Mapping[str, float]
) -> tuple[list[Line], list[Event]]:
    """Lines and events on the reference clock; those of hosts whose clock is not clearly off stay as they are."""
    wrong = {host: offset for host, offset in offsets.items() if abs(offset) >= _SMALLEST_S}
    if not wrong:
        return list(lines), list(events)
    hosts = hosts_of(lines)
    moved = [_moved(line, wrong.get(_host(line, hosts) or "")) for line in lines]
    new = {id(old): line for old, line in zip(lines, moved, strict=True)}
    return moved, [_followed(event, new.get(id(event.line), event.line)) for event in events]


def _moved(line: Line, offset: float | None) -> Line:
    return line if offset is None or line.time is None else replace(line, time=line.time - offset)


def _followed(event: Event, line: Line) -> Event:
    """The event on its moved line; a time that a report printed is of the same host as the line."""
    if line is event.line:
        return event
    shift = (line.time or 0.0) - (event.line.time or 0.0)
    return replace(event, line=line, time=None if event.time is None else event.time + shift)


def _host(line: Line, hosts: Mapping[int, str]) -> str | None:
    return line.node or (None if line.rank is None else hosts.get(line.rank))


def _step_times(events: Iterable[Event], hosts: Mapping[int, str]) -> dict[str, dict[int, float]]:
    """For each host when each step was completed there: the first of its ranks to say so."""
    seen: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for e in events:
        host = _host(e.line, hosts)
        if e.kind is EventKind.STEP and e.step is not None and e.time is not None and e.line.stamped and host:
            seen[host][e.step].append(e.time)
    return {
        host: {step: min(times) for step, times in steps.items() if max(times) - min(times) <= _ONE_STEP_S}
        for host, steps in seen.items()
    }


def _linked(host: str, steps: Mapping[str, Times]) -> int:
    return sum(len(steps[host].keys() & steps[other].keys()) >= _COMMON for other in steps)


def _offset(times: Times, reference: Times) -> float | None:
    common = times.keys() & reference.keys()
    if len(common) < _COMMON:
        return None
    differences = [times[step] - reference[step] for step in common]
    middle = statistics.median(differences)
    scatter = statistics.median(abs(d - middle) for d in differences)
    return middle if scatter <= _SCATTER_S else None
