"""Sources -> incidents: reads, peels, parses and groups. Training and inference share this path unchanged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fsdpclassify.incident import find_incidents
from fsdpclassify.parsing import RULES, parse, read_lines
from fsdpclassify.records import Event, EventKind, FatalError, Incident, InputKind, InputRow, Line
from fsdpclassify.sources import Anchor, Source, read

_FATAL = (EventKind.ERROR, EventKind.KILL, EventKind.EXIT, EventKind.SIGNAL, EventKind.HARDWARE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What the inputs hold, before any model: rows of inputs, lines, events and incidents in time order."""

    inputs: tuple[InputRow, ...]
    kinds: tuple[InputKind | None, ...]
    lines: tuple[Line, ...]
    events: tuple[Event, ...]
    incidents: tuple[Incident, ...]
    dated: bool


def find(sources: Sequence[Source], *, hung: bool = False) -> Findings:
    """Read `sources` and rebuild their incidents; unreadable inputs become rows, never exceptions."""
    reading = read(sources, ANCHORS)
    lines, dated = read_lines(reading.lines)
    events = parse(lines)
    kinds = tuple(row.kind for row in reading.inputs)
    incidents = find_incidents(lines, events, kinds=kinds, hung=hung, dated=dated)
    return Findings(
        inputs=reading.inputs,
        kinds=kinds,
        lines=tuple(lines),
        events=tuple(events),
        incidents=tuple(incidents),
        dated=dated,
    )


def first_fatal_error(findings: Findings) -> FatalError | None:
    """The first thing that ended a process in inputs without an incident; None when there is an incident."""
    if findings.incidents:
        return None
    fatal = [e for e in findings.events if e.kind in _FATAL or e.kind in _COMMUNICATION]
    if not fatal:
        return None
    timed = all(e.time is not None and e.line.stamped for e in fatal)
    first = min(fatal, key=lambda e: e.time or 0.0) if timed else fatal[0]
    return FatalError(
        path=findings.inputs[first.line.source].path,
        line=first.line.number,
        rank=first.rank,
        text=first.line.text.strip()[:500],
    )


#: In an inference server these end the process although they make no incident.
_COMMUNICATION = (EventKind.TIMEOUT, EventKind.NCCL_ERROR, EventKind.WATCHDOG_ABORT, EventKind.DUMPING)


def _anchors() -> tuple[Anchor, ...]:
    return tuple(
        Anchor(name=rule.name, pattern=_plain(rule.anchor).encode(), detection=rule.detection)
        for rule in RULES
        if _rare(rule.name)
    )


#: Steps, bars and trainer words are on nearly every line: they are sampled, never scanned for.
_COMMON = frozenset({"step", "bar", "trainer", "world_size", "stack_in_collective", "exception", "inference_server"})


def _rare(name: str) -> bool:
    return name not in _COMMON


def _plain(pattern: str) -> str:
    """Anchors are written for `re`; the scanner's dialect shares what they use."""
    return re.sub(r"\(\?P<\w+>", "(?:", pattern)


ANCHORS = _anchors()
