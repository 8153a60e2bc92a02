"""What `inspect` shows: the ledger and the events of each incident, before any model has judged them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from fsdpclassify.records import Event, FatalError, Incident, InputRow
from fsdpclassify.report.structured import (
    SCHEMA_VERSION,
    Json,
    collective_as_dict,
    fatal_as_dict,
    input_as_dict,
    ledger_row_as_dict,
    one_line,
)
from fsdpclassify.report.wording import cut, printable, rank_ranges, ranks_in_words

_LEDGER_COLUMNS = (
    "role",
    "node",
    "last_step",
    "step_time_s",
    "enqueued",
    "completed",
    "exit_code",
    "log_end",
)
#: Facts of an event that are shown where the line prints them.
_EVENT_FACTS = tuple(
    "op seq numel_in numel_out timeout_s elapsed_s group enqueued completed peer code step total value name".split()
)


_FIRST_EVENTS, _LAST_EVENTS = 100, 300
#: Of a printed line so much is masked and then cut to what is shown.
_READ_CHARACTERS = 4000


class Inspected(Protocol):
    """The part of what reading the inputs found that is shown."""

    @property
    def inputs(self) -> Sequence[InputRow]:
        """One row an input, in the order of the lines' `source`."""

    @property
    def incidents(self) -> Sequence[Incident]:
        """In time order."""


def inspection_as_dict(found: Inspected, fatal: FatalError | None, mask: Callable[[str], str]) -> Json:
    """The object of `inspect --json`; `mask` sees each printed line before it is cut, so that no half
    of a secret is left.
    """
    paths = [row.path for row in found.inputs]
    fatal = None if found.incidents else fatal
    return {
        "schema_version": SCHEMA_VERSION,
        "inputs": [input_as_dict(row) for row in found.inputs],
        "incidents": [_incident(incident, paths, mask) for incident in found.incidents],
        "first_fatal_error": None if fatal is None else fatal_as_dict(fatal),
    }


def _incident(incident: Incident, paths: Sequence[str], mask: Callable[[str], str]) -> Json:
    call = incident.collective
    dated = call is not None and call.dated
    return {
        "collective": None if call is None else collective_as_dict(call),
        "world_size": incident.world_size,
        "waiting_ranks": sorted(incident.waiting),
        "missing_ranks": sorted(incident.missing),
        "failed_ranks": sorted(incident.failed),
        "nodes": list(incident.nodes),
        "detection": _event(incident.detection, paths, mask),
        "events": [_event(event, paths, mask) for event in incident.events],
        "ledger": [ledger_row_as_dict(row, dated=dated) for row in incident.ledger],
    }


def _event(event: Event, paths: Sequence[str], mask: Callable[[str], str]) -> Json:
    source = event.line.source
    facts = {name: getattr(event, name) for name in _EVENT_FACTS}
    return {
        "kind": str(event.kind),
        # An event that the user stated (`--hung`) stands on no line of any input.
        "path": paths[source] if 0 <= source < len(paths) else "",
        "line": event.line.number,
        "rank": event.rank,
        "text": one_line(mask(event.line.text[:_READ_CHARACTERS])),
        "facts": {name: value for name, value in facts.items() if value is not None},
    }


def render_inspection(found: Json, *, width: int) -> str:
    """The object of `inspection_as_dict` (masked or not) as text ending in a newline."""
    lines: list[str] = []
    for number, incident in enumerate(found["incidents"], 1):
        lines += [f"incident {number} of {len(found['incidents'])}", *_facts(incident)]
        lines += ["", "Ledger", *_ledger(incident["ledger"]), "", "Events"]
        lines += [*_events(incident["events"], width), ""]
    if not lines:
        lines.append("no_timeout: no rank is shown waiting for another in this input")
        fatal = found["first_fatal_error"]
        if fatal is not None:
            lines.append(f"  first fatal error: {printable(fatal['path'])}:{fatal['line']}")
            lines.append(cut("      " + fatal["text"], width))
    bad = [row for row in found["inputs"] if row["status"] != "ok"]
    lines += [printable(f"{row['path']}: {row['status']} {row['message'] or ''}").rstrip() for row in bad]
    return "\n".join(lines) + "\n"


def _facts(incident: Json) -> list[str]:
    call = incident["collective"] or {}
    shown = ", ".join(f"{name} {value}" for name, value in call.items() if value is not None)
    rows = [("collective", printable(shown) or "not printed")]
    rows.append(("world size", str(incident["world_size"] or "not shown")))
    for name in ("waiting", "missing", "failed"):
        rows.append((name, ranks_in_words(incident[f"{name}_ranks"]) or "none shown"))
    return [f"  {name:<11}{text}" for name, text in rows]


def _ledger(rows: Sequence[Json]) -> list[str]:
    """A table with one line for every run of ranks about which the input shows the same."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for row in rows:
        alike.setdefault(tuple(_cell(row[name]) for name in _LEDGER_COLUMNS), []).append(row["rank"])
    table: list[tuple[str, ...]] = [("ranks", *_LEDGER_COLUMNS)]
    table += [(rank_ranges(ranks), *cells) for cells, ranks in alike.items()]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  " + "  ".join(map(str.ljust, line, widths)).rstrip() for line in table]


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else printable(str(value))


def _events(events: Sequence[Json], width: int) -> list[str]:
    """All events of a small incident; of a large one the first and the last, with what was left out said."""
    left_out = max(len(events) - _FIRST_EVENTS - _LAST_EVENTS, 0)
    shown = events if not left_out else [*events[:_FIRST_EVENTS], *events[-_LAST_EVENTS:]]
    lines: list[str] = []
    for index, event in enumerate(shown):
        if left_out and index == _FIRST_EVENTS:
            lines.append(f"  … {left_out} events left out; --json has them all")
        following = shown[index + 1] if index + 1 < len(shown) else None
        same = following is not None and all(following[key] == event[key] for key in ("path", "line"))
        # Several facts of one printed line share its text.
        lines += _event_lines(event, width)[: 1 if same else 2]
    return lines


def _event_lines(event: Json, width: int) -> list[str]:
    who = "" if event["rank"] is None else f" rank {event['rank']}"
    facts = ", ".join(f"{name} {value}" for name, value in event["facts"].items())
    head = f"  {event['path']}:{event['line']} {event['kind']}{who}" + (f" ({facts})" if facts else "")
    return [printable(head), cut("      " + event["text"].strip(), width)]
