"""`Report` -> what a tired engineer reads in the middle of the night: the answer first, then its grounds.

Plain text by string building: nothing here interprets markup, and everything that came out of a
log, a path or a bundle passes `printable` or `cut` on its way. Colour is off unless asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fsdpclassify.records import Abstention, Collective, Diagnosis, Evidence, InputRow, InputStatus, Remedy, Report
from fsdpclassify.report.structured import iso
from fsdpclassify.report.wording import duration, fold, percent, printable, ranks_in_words, wrap

DEFAULT_WIDTH = 100
MIN_WIDTH = 40
#: The telling part of a c10d line starts after a prefix of about a hundred characters.
TEXT_ROWS = 3
UNDETERMINED = "undetermined"
#: Nobody reads further back; and of thousands of inputs or nodes the first ones tell what is wrong.
MOST_INCIDENTS, MOST_INPUTS, MOST_NODES = 10, 20, 8

#: How a verdict reads with the guilty rank in front; labels that a user added get the general form.
_PHRASES = {
    "straggler": "{who} came too late",
    "offload_latency": "{who} was held up by host memory or offload traffic",
    "fabric_congestion": "the transport between ranks was slow or broken",
    "uneven_sharding": "{who} holds more work than the others",
    "desync": "{who} left the common sequence of collectives",
    "rank_failure": "{who} died or left first",
}
_REASONS = {
    Abstention.LOW_CONFIDENCE: "no cause is likely enough to be named",
    Abstention.OUT_OF_SCOPE: "the cause seems to lie outside the causes this model knows",
    Abstention.NO_EVIDENCE: "the log shows that somebody waited, but no line speaks for a cause",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """Line width in terminal cells, and whether ANSI colours may be used."""

    width: int = DEFAULT_WIDTH
    colour: bool = False

    def bold(self, text: str) -> str:
        """Emphasis for verdicts and headings."""
        return f"\x1b[1m{text}\x1b[0m" if self.colour else text

    def dim(self, text: str) -> str:
        """Faint text for what matters less."""
        return f"\x1b[2m{text}\x1b[0m" if self.colour else text

    def verdict(self, text: str, *, sure: bool) -> str:
        """The first line: red for a verdict, yellow where the tool abstains."""
        return f"\x1b[1;{31 if sure else 33}m{text}\x1b[0m" if self.colour else text


def render_report(report: Report, *, width: int = DEFAULT_WIDTH, colour: bool = False) -> str:
    """The whole answer as text ending in a newline; the last incident comes first."""
    style = Style(width=max(width, MIN_WIDTH), colour=colour)
    lines: list[str] = []
    total = len(report.incidents)
    for number in range(total, max(0, total - MOST_INCIDENTS), -1):
        lines += _incident(report.incidents[number - 1], style, number=number, total=total)
    if total > MOST_INCIDENTS:
        lines += [f"{total - MOST_INCIDENTS:,} earlier incidents are not shown; --json has every one", ""]
    if not total:
        lines += _no_incident(report, style)
    lines += _unread(report, style) + _notes(report, style)
    return "\n".join(lines) + "\n"


def headline(found: Diagnosis) -> str:
    """The verdict in words: label, probability, initiating ranks."""
    if found.verdict == UNDETERMINED:
        guess = f"{printable(found.model_label)}, {percent(found.probability)}"
        late = ranks_in_words(found.initiating_ranks)
        what = f"{late} did not come in time{_or_unheard(found)}" if late else "the collective was not finished"
        return f"undetermined: the log does not show why {what} (first guess: {guess})"
    who = ranks_in_words(found.initiating_ranks) or "a rank that the log does not name"
    phrase = _PHRASES.get(found.verdict, "{who} started it").format(who=who)
    if "{who}" not in _PHRASES.get(found.verdict, "{who}"):
        named = [ranks_in_words(found.initiating_ranks), _nodes(found)]
        phrase += "".join(f", at {name}" for name in named if name)
    elif found.initiating_nodes:
        phrase += f" ({_nodes(found)})"
    return f"{printable(found.verdict)} ({percent(found.probability)}): {phrase}{_or_unheard(found)}"


def _or_unheard(found: Diagnosis) -> str:
    """What else may explain that nothing is heard of the ranks that are named."""
    unheard = {row.rank for row in found.ledger if row.unheard}
    named = set(found.initiating_ranks)
    if not named or not named <= unheard:
        return ""
    return f" (or {'its log is' if len(named) == 1 else 'their logs are'} not here)"


def _nodes(found: Diagnosis) -> str:
    shown = [printable(node) for node in found.initiating_nodes[:MOST_NODES]]
    more = len(found.initiating_nodes) - len(shown)
    return ", ".join([*shown, f"{more:,} more"] if more else shown)


def _incident(found: Diagnosis, style: Style, *, number: int, total: int) -> list[str]:
    sure = found.verdict != UNDETERMINED
    place = f" [incident {number} of {total}]" if total > 1 else ""
    wrapped = wrap(headline(found) + place, style.width, indent="    ", first="")
    lines = [style.verdict(line, sure=sure) for line in wrapped]
    lines += _facts(found, style)
    lines += _evidence(found, style)
    lines += _rivals(found, style)
    lines += _remedy(found.remedy, style) if sure else _next_time(found, style)
    return [*lines, ""]


def _facts(found: Diagnosis, style: Style) -> list[str]:
    rows = [("waited in", _call(found.collective)), ("waiting", _waiting(found))]
    if found.failed_ranks:
        rows.append(("failed", ranks_in_words(found.failed_ranks)))
    if found.cause is not None:
        rows.append(("cause", found.cause))
    if found.abstained_because is not None:
        rows.append(("because", _REASONS[found.abstained_because]))
    lines: list[str] = []
    for name, text in rows:
        lines += wrap(text, style.width, indent=" " * 13, first=f"  {name:<11}")
    return lines


def _call(call: Collective | None) -> str:
    if call is None:
        return "a call that the log does not name"
    named = f"{call.meaning} ({call.op})" if call.meaning and call.op else call.meaning or call.op
    parts = [named or "a call that the log does not name"]
    parts += [f"group {call.group}"] if call.group is not None else []
    parts += [f"seq {call.seq}"] if call.seq is not None else []
    parts += [f"timeout {duration(call.timeout_s)}"] if call.timeout_s is not None else []
    onset = iso(call.onset, dated=call.dated)
    parts += [f"since {onset}"] if onset is not None else []
    return ", ".join(parts)


def _waiting(found: Diagnosis) -> str:
    world = f" of {found.world_size}" if found.world_size is not None else ""
    return (ranks_in_words(found.waiting_ranks) or "ranks that the log does not name") + world


def _evidence(found: Diagnosis, style: Style) -> list[str]:
    if not found.evidence:
        return []
    lines = ["", style.bold("Evidence")]
    for item in found.evidence:
        lines += _evidence_item(item, style, "first guess" if found.verdict == UNDETERMINED else "verdict")
    return lines


def _evidence_item(item: Evidence, style: Style, asked: str) -> list[str]:
    who = "" if item.rank is None else f", rank {item.rank}"
    effect = "" if item.weight >= 0 else f"; against the {asked}"
    place = f"  {printable(item.path)}:{item.line}{who}"
    head = f"{place}: for {printable(item.supports)} ({item.weight:+.2f}{effect})"
    printed = fold(item.text, style.width, indent="      ", rows=TEXT_ROWS)
    lines = [head, *(style.dim(row) for row in printed)]
    return lines + (wrap(item.why, style.width, indent="      ") if item.why else [])


def _rivals(found: Diagnosis, style: Style) -> list[str]:
    lines = ["", style.bold("Rivals")] if found.alternatives else []
    for rival in found.alternatives:
        told = f": {rival.separate_by}" if rival.separate_by else ""
        text = f"{rival.label} {percent(rival.probability)}{told}"
        lines += wrap(text, style.width, indent="      ", first="  ")
    return lines


def _remedy(remedy: Remedy, style: Style) -> list[str]:
    lines: list[str] = []
    if remedy.summary:
        lines += ["", *wrap(remedy.summary, style.width, indent="     ", first="Fix: ")]
    for number, step in enumerate(remedy.steps, 1):
        lines += wrap(step, style.width, indent="     ", first=f"  {number}. ")
    if remedy.longer_timeout_helps is not None:
        helps = "can help" if remedy.longer_timeout_helps else "will not help"
        lines.append(f"  A longer timeout {helps}.")
    if remedy.verify:
        lines += ["", style.bold("Check the change")]
        lines += [f"  {printable(command)}" for command in remedy.verify]
    if remedy.ops_request:
        lines += ["", style.bold("Ask the cluster's operators")]
        lines += wrap(remedy.ops_request, style.width, indent="  ")
    return lines


def _next_time(found: Diagnosis, style: Style) -> list[str]:
    lines = ["", style.bold("Record next time")] if found.collect_next else []
    for item in found.collect_next:
        lines += wrap(item, style.width, indent="    ", first="  - ")
    return lines


def _no_incident(report: Report, style: Style) -> list[str]:
    lines = [style.verdict("no_timeout: no rank is shown waiting for another in this input", sure=False)]
    fatal = report.first_fatal_error
    if fatal is None:
        return [*lines, "  No fatal error was found either.", ""]
    who = "" if fatal.rank is None else f", rank {fatal.rank}"
    lines.append(f"  first fatal error: {printable(fatal.path)}:{fatal.line}{who}")
    return [*lines, *fold(fatal.text, style.width, indent="      ", rows=TEXT_ROWS), ""]


def _unread(report: Report, style: Style) -> list[str]:
    bad = [row for row in report.inputs if row.status is not InputStatus.OK]
    aside = [row for row in report.inputs if row.status is InputStatus.OK and row.message]
    return _inputs("Inputs not read in full", bad, style) + _inputs("Inputs set aside", aside, style)


def _inputs(heading: str, rows: Sequence[InputRow], style: Style) -> list[str]:
    lines = [style.bold(heading)] if rows else []
    for row in rows[:MOST_INPUTS]:
        status = [] if row.status is InputStatus.OK else [str(row.status)]
        text = ": ".join([row.path, *status, *([row.message] if row.message else [])])
        lines += wrap(text, style.width, indent="      ", first="  ")
    if len(rows) > MOST_INPUTS:
        lines.append(f"  … and {len(rows) - MOST_INPUTS:,} more; --json has every one")
    return lines


def _notes(report: Report, style: Style) -> list[str]:
    lines = [line for note in report.extra.values() for line in wrap(note, style.width, indent="  ", first="Note: ")]
    model = f"{printable(report.model.name)} {printable(report.model.version)}"
    return [*lines, style.dim(f"fsdpclassify {report.tool_version}, model {model}, {report.elapsed_ms} ms")]
