"""Sources -> incidents: reads, peels, parses and groups. Training and inference share this path unchanged."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fsdpclassify.incident import find_incidents
from fsdpclassify.parsing import RULES, parse, read_lines
from fsdpclassify.recorder.collecting import DumpShelf, Recorded
from fsdpclassify.records import Event, EventKind, FatalError, Incident, InputKind, InputRow, Line, RawLine
from fsdpclassify.roles import is_fault
from fsdpclassify.sources import Anchor, Source, read

#: Reports cut printed lines to what they show once secrets are masked, so that no half of one is left.
_MASKED_CHARACTERS = 4000
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
    #: The flight-recorder dumps among the inputs; None where there is no usable one.
    recorded: Recorded | None = None


def find(sources: Sequence[Source], *, hung: bool = False) -> Findings:
    """Read `sources` and rebuild their incidents; unreadable inputs become rows, never exceptions."""
    shelf = DumpShelf()
    reading = read(sources, ANCHORS, dumps=shelf)
    kinds = tuple(row.kind for row in reading.inputs)
    lines, dated = read_lines(_without_hints(reading.lines, kinds))
    events = parse(lines)
    recorded = shelf.recorded()
    rows = reading.inputs if recorded is None else _explained(reading.inputs, recorded.reasons)
    if recorded is not None and (apart := _of_another_run(recorded, events, dated=dated)):
        rows, recorded = _explained(rows, apart), None
    if recorded is not None:
        events, dated = _with_dumps(events, recorded, dated=dated)
    incidents = find_incidents(lines, events, kinds=kinds, hung=hung, dated=dated)
    return Findings(
        inputs=rows,
        kinds=kinds,
        lines=tuple(lines),
        events=tuple(events),
        incidents=tuple(incidents),
        dated=dated,
        recorded=recorded,
    )


def _with_dumps(events: Sequence[Event], recorded: Recorded, *, dated: bool) -> tuple[list[Event], bool]:
    """The events of the logs and after them those of the dumps on the logs' clock; whether that has a year."""
    from fsdpclassify.recorder.clock import shift_to_logs  # most inputs hold no dump
    from fsdpclassify.recorder.events import events_of

    shift = shift_to_logs(recorded.front, events, dated=dated)
    is_alone = not any(e.line.stamped for e in events)
    return [*events, *events_of(recorded, shift)], dated or is_alone


def _of_another_run(recorded: Recorded, events: Sequence[Event], *, dated: bool) -> dict[int, str]:
    """For the input of every dump why it is not used, if they are of another run than the logs; else {}."""
    from fsdpclassify.recorder.clock import elsewhen  # most inputs hold no dump

    apart = elsewhen(recorded.front, events, dated=dated)
    if apart is None:
        return {}
    why = f"its calls lie {apart / 3600:,.0f} hours from the waits that the logs show: of another run and not used"
    return dict.fromkeys(recorded.sources.values(), why)


def _explained(rows: Sequence[InputRow], reasons: Mapping[int, str]) -> tuple[InputRow, ...]:
    """The rows, with a message at each dump that is not used."""
    return tuple(replace(row, message=reasons.get(index, row.message)) for index, row in enumerate(rows))


def _without_hints(raws: Sequence[RawLine], kinds: Sequence[InputKind | None]) -> Sequence[RawLine]:
    """`raws` without ranks from the paths of system logs: a kernel log in the folder of a rank speaks for its node."""
    if InputKind.SYSTEM not in kinds:
        return raws
    return [replace(r, hint_rank=None) if kinds[r.source] is InputKind.SYSTEM else r for r in raws]


def first_fatal_error(findings: Findings) -> FatalError | None:
    """The first thing that ended a process in inputs without an incident; None when there is an incident."""
    if findings.incidents:
        return None
    fatal = [
        e
        for e in findings.events
        if (e.kind in _FATAL or e.kind in _COMMUNICATION) and (e.kind is not EventKind.HARDWARE or is_fault(e))
    ]
    if not fatal:
        return None
    timed = all(e.time is not None and e.line.stamped for e in fatal)
    first = min(fatal, key=lambda e: e.time or 0.0) if timed else fatal[0]
    return FatalError(
        path=findings.inputs[first.line.source].path,
        line=first.line.number,
        rank=first.rank,
        text=(first.line.front + first.line.text).strip()[:_MASKED_CHARACTERS],
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
_COMMON = frozenset(
    {
        "step", "bar", "trainer", "world_size", "stack_in_collective", "exception", "logged_exception",
        "inference_server", "deepspeed_pipeline_step", "deepspeed_timers", "megatron_timer", "verl_step_time",
    }
)  # fmt: skip


def _rare(name: str) -> bool:
    return name not in _COMMON


def _plain(pattern: str) -> str:
    """Anchors are written for `re`; the scanner's dialect shares what they use."""
    return re.sub(r"\(\?P<\w+>", "(?:", pattern)


ANCHORS = _anchors()
