"""What `inspect` shows: the ledger and the events of each incident, before any model has judged them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Protocol

from fsdpclassify.records import Event, EventKind, FatalError, Incident, InputRow
from fsdpclassify.report.recorded import recorded_as_dict, render_recorded
from fsdpclassify.report.structured import (
    SCHEMA_VERSION,
    Json,
    collective_as_dict,
    fatal_as_dict,
    input_as_dict,
    iso,
    ledger_row_as_dict,
    one_line,
)
from fsdpclassify.report.terminal import MOST_INCIDENTS, MOST_INPUTS
from fsdpclassify.report.timeline import LIMIT, timeline
from fsdpclassify.report.wording import cut, duration, printable, rank_ranges, ranks_in_words, wrap

_LEDGER_COLUMNS = (
    "role",
    "node",
    "last_step",
    "step_time_s",
    "enqueued",
    "completed",
    "exit_code",
    "clock_offset_s",
    "log_end",
    "first_error",
)
#: Facts of an event that are shown where the line prints them.
_EVENT_FACTS = tuple(
    "op seq numel_in numel_out timeout_s elapsed_s group enqueued completed peer code step total value name".split()
)


#: Kinds that a host reports: where it happened and what it means stands beside the printed line.
_HOST_KINDS = frozenset({EventKind.HARDWARE, EventKind.KILL, EventKind.MEMORY})
#: Widths of a cell of the ledger, and of a line about the incident.
_CELL, _WIDEST = 48, 116
#: So many lines of a ledger are looked through by eye, and so many runs of ranks in front of one.
_LEDGER_ROWS, _RUNS = 128, 8
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
    recorded = getattr(found, "recorded", None)
    return {
        "schema_version": SCHEMA_VERSION,
        "inputs": [input_as_dict(row) for row in found.inputs],
        "incidents": [_incident(incident, paths, mask) for incident in found.incidents],
        "first_fatal_error": None if fatal is None else fatal_as_dict(replace(fatal, text=mask(fatal.text))),
        "flight_recorder": None if recorded is None else recorded_as_dict(recorded, paths, mask),
    }


def _incident(incident: Incident, paths: Sequence[str], mask: Callable[[str], str]) -> Json:
    call = incident.collective
    dated = call is not None and call.dated
    return {
        "collective": None if call is None else collective_as_dict(call),
        "world_size": incident.world_size,
        "waiting_ranks": sorted(incident.waiting),
        "missing_ranks": sorted(incident.missing),
        "unheard_ranks": sorted(row.rank for row in incident.ledger if row.unheard),
        "failed_ranks": sorted(incident.failed),
        "nodes": list(incident.nodes),
        "clocks": _clocks(incident),
        "timeline": timeline(incident, paths, mask),
        "detection": _event(incident.detection, paths, mask, dated=dated),
        "events": [_event(event, paths, mask, dated=dated) for event in incident.events],
        "ledger": [
            {**ledger_row_as_dict(row, dated=dated), "clock_offset_s": row.clock_offset_s} for row in incident.ledger
        ],
    }


def _clocks(incident: Incident) -> Json | None:
    """How far the clocks of hosts are ahead, in seconds; null where the input does not tell."""
    found = {row.node: row.clock_offset_s for row in incident.ledger if row.node and row.clock_offset_s is not None}
    return dict(sorted(found.items())) or None


def _event(event: Event, paths: Sequence[str], mask: Callable[[str], str], *, dated: bool) -> Json:
    source = event.line.source
    facts = {name: getattr(event, name) for name in _EVENT_FACTS}
    if event.kind in _HOST_KINDS:
        stamp = iso(event.time, dated=dated and event.line.stamped)
        facts |= {"node": event.line.node, "time": stamp, "meaning": event.detail and mask(event.detail)}
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
    total = len(found["incidents"])
    if total > MOST_INCIDENTS:
        lines += [f"of {total:,} incidents the last {MOST_INCIDENTS}; --json has every one", ""]
    first = max(0, total - MOST_INCIDENTS)
    for number, incident in enumerate(found["incidents"][first:], first + 1):
        lines += [f"incident {number} of {total}", *_facts(incident)]
        lines += ["", "Ledger", *_ledger(incident["ledger"])]
        lines += ["", _heading(incident), *_timeline(incident["timeline"], width), ""]
    if not total:
        lines.append("no_timeout: no rank is shown waiting for another in this input")
        fatal = found["first_fatal_error"]
        if fatal is not None:
            lines.append(f"  first fatal error: {printable(fatal['path'])}:{fatal['line']}")
            lines.append(cut("      " + fatal["text"], width))
    if found.get("flight_recorder") is not None:
        lines += [*render_recorded(found["flight_recorder"]), ""]
    bad = [row for row in found["inputs"] if row["status"] != "ok" or row["message"]]
    lines += [printable(f"{row['path']}: {row['status']} {row['message'] or ''}").rstrip() for row in bad[:MOST_INPUTS]]
    if len(bad) > MOST_INPUTS:
        lines.append(f"… and {len(bad) - MOST_INPUTS:,} more inputs; --json has every one")
    return "\n".join(lines) + "\n"


def _heading(incident: Json) -> str:
    left_out = len(incident["events"]) - sum(row["lines"] for row in incident["timeline"])
    most = "the most telling of " if len(incident["timeline"]) == LIMIT else ""
    rest = "; --json has every event" if left_out or most else ""
    return f"Time line ({most}{len(incident['events'])} events{rest})"


def _facts(incident: Json) -> list[str]:
    rows = [("collective", printable(_call(incident["collective"] or {})) or "not printed")]
    rows.append(("world size", str(incident["world_size"] or "not shown")))
    for name in ("waiting", "missing", "failed"):
        rows.append((name, ranks_in_words(incident[f"{name}_ranks"]) or "none shown"))
    if incident["unheard_ranks"]:
        words = f"{ranks_in_words(incident['unheard_ranks'])}: nothing here is by or about it; its log may not be here"
        rows.append(("unheard", words))
    if incident["nodes"]:
        rows.append(("nodes", printable(", ".join(incident["nodes"]))))
    if len(incident["nodes"]) > 1:
        rows.append(("clocks", printable(_clocks_in_words(incident["clocks"]))))
    return [line for name, text in rows for line in _row(name, text)]


def _row(name: str, text: str) -> list[str]:
    return wrap(text, _WIDEST, indent=" " * 13, first=f"  {name:<11}")


def _call(call: Json) -> str:
    """The call in one sentence: `ALLREDUCE (a barrier), group 1, seq 812, timeout 600 s (10 min), …`."""
    parts = [call["op"] or ""] if call.get("op") else []
    if parts and call.get("meaning"):
        parts = [f"{parts[0]} ({call['meaning']})"]
    parts += [f"{name} {call[name]}" for name in ("group", "seq") if call.get(name) is not None]
    if call.get("timeout_s"):
        parts.append(f"timeout {duration(call['timeout_s'])}")
    parts += [f"{name} {call[name]}" for name in ("onset", "detected") if call.get(name)]
    return ", ".join(parts)


def _clocks_in_words(offsets: Json | None) -> str:
    if offsets is None:
        return (
            "too few common steps to compare the hosts' clocks: taken to agree within 5 s, no order is claimed inside"
        )
    return "; ".join(
        f"{node} {abs(ahead):g} s {'ahead' if ahead > 0 else 'behind'}" if ahead else f"{node} as most"
        for node, ahead in offsets.items()
    )


def _ledger(rows: Sequence[Json]) -> list[str]:
    """A table with one line for every run of ranks about which the input shows the same, and no empty columns."""
    if not rows:
        return ["  no line names a rank"]
    alike: dict[tuple[str, ...], list[int]] = {}
    for row in rows:
        alike.setdefault(tuple(_cell(row[name]) for name in _LEDGER_COLUMNS), []).append(row["rank"])
    table: list[tuple[str, ...]] = [("ranks", *_LEDGER_COLUMNS)]
    table += [(rank_ranges(ranks, _RUNS), *cells) for cells, ranks in islice(alike.items(), _LEDGER_ROWS)]
    more = len(alike) - len(table) + 1
    shown = [n for n, column in enumerate(zip(*table, strict=True)) if n < 2 or set(column[1:]) != {"-"}]
    table = [tuple(line[n] for n in shown) for line in table]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    text = ["  " + "  ".join(map(str.ljust, line, widths)).rstrip() for line in table]
    return [*text, f"  … and {more:,} rows more; --json has every rank"] if more > 0 else text


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else cut(str(value), _CELL)


def _timeline(rows: Sequence[Json], width: int) -> list[str]:
    """One line a row with its clock, and below it the printed line where that says more; `>` marks the detection."""
    lines: list[str] = []
    for row in rows:
        clock = row["clock"] or ""
        who = f" {ranks_in_words(row['ranks'])}" if row["ranks"] else ""
        several = f" ({row['lines']} lines)" if row["lines"] > 1 else ""
        mark = ">" if row["is_detection"] else " "
        head = f"{mark} {clock:>9}  {row['path']}:{row['line']} {row['kind']}{who}: {row['what']}{several}"
        lines.append(cut(head.replace(": (", " ("), width))
        if row["text"] is not None and row["text"].strip() != row["what"]:
            lines.append(cut("             " + row["text"].strip(), width))
    return lines
