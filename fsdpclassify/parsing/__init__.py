"""Lines -> events: every dialect file brings rules, this module runs them over peeled lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice

from fsdpclassify.parsing import (
    agreement,
    c10d,
    context,
    deepspeed,
    devices,
    failures,
    gloo,
    kernel,
    launchers,
    logged,
    megatron,
    nccl,
    pals,
    pdsh,
    ports,
    processes,
    progress,
    ras,
    scheduler,
    serving,
    smi,
    topology,
    torchcomms,
    utilisation,
    verl,
)
from fsdpclassify.parsing.blocks import with_tables
from fsdpclassify.parsing.calls import with_calls
from fsdpclassify.parsing.hosts import with_hosts
from fsdpclassify.parsing.prefixes import read_lines
from fsdpclassify.parsing.quoting import is_quoted
from fsdpclassify.parsing.ras import with_laggards
from fsdpclassify.parsing.reports import with_report_exits
from fsdpclassify.parsing.rule import Rule
from fsdpclassify.parsing.spawned import with_spawned
from fsdpclassify.parsing.tasks import with_task_ranks
from fsdpclassify.records import DETECTIONS, Event, EventKind, Line

__all__ = ["RULES", "Rule", "parse", "read_lines"]

RULES: tuple[Rule, ...] = (
    *c10d.RULES,
    *agreement.RULES,
    *nccl.RULES,
    *gloo.RULES,
    *launchers.RULES,
    *failures.RULES,
    *progress.RULES,
    *context.RULES,
    *serving.RULES,
    *kernel.RULES,
    *devices.RULES,
    *ports.RULES,
    *topology.RULES,
    *utilisation.RULES,
    *smi.RULES,
    *processes.RULES,
    *scheduler.RULES,
    *deepspeed.RULES,
    *logged.RULES,
    *megatron.RULES,
    *pals.RULES,
    *pdsh.RULES,
    *ras.RULES,
    *torchcomms.RULES,
    *verl.RULES,
)
#: What stands in tables, read whole once a rule has found the header.
_TABLES = (
    devices.REPORT,
    ports.ADAPTERS,
    ports.COUNTERS,
    topology.MATRIX,
    utilisation.CSV,
    smi.NVIDIA,
    smi.ROCM,
    processes.PROCESSES,
)
_GATES = tuple((re.compile(rule.anchor), rule) for rule in RULES)
#: How many following lines a wrapped message may go on for.
_JOIN = 2
#: A longer line is machine output pasted whole; what matters in it lies near either end.
_SEARCHED = 16_384
_MATCHES = 8
#: Lines that differ in their digits alone have the same candidates: anchors hold no fixed digit.
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_SHAPES, _SHAPE = 50_000, 400


def parse(lines: Sequence[Line]) -> list[Event]:
    """Every event of `lines`, in their order. A line that makes a detection makes no plain error as well."""
    events: list[Event] = []
    candidates = _Candidates()
    once: set[tuple[int, int | None, str]] = set()
    for index, line in enumerate(lines):
        rules = candidates.of(line.text)
        if rules:
            events.extend(_events_of(rules, lines, index, line, once))
    events = with_report_exits(with_tables(events, lines, _TABLES))
    events = with_laggards(with_task_ranks(events, lines))
    return with_hosts(with_calls(with_spawned(events, lines), lines), lines)


class _Candidates:
    """Which rules' anchors a text holds, remembered by the text's shape."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Rule, ...]] = {}

    def of(self, text: str) -> tuple[Rule, ...]:
        """The rules whose anchor occurs in `text`."""
        if len(text) > _SHAPE:
            return self._search(text[: 4 * _SEARCHED])
        shape = text.encode("utf-8", "surrogatepass").translate(_DIGITS)  # many times faster than on `str`
        known = self._known.get(shape)
        if known is None:
            known = self._search(shape.decode("utf-8", "surrogatepass"))
            if len(self._known) < _SHAPES:
                self._known[shape] = known
        return known

    def _search(self, text: str) -> tuple[Rule, ...]:
        return tuple(rule for gate, rule in _GATES if gate.search(text))


def _events_of(
    rules: Iterable[Rule], lines: Sequence[Line], index: int, line: Line, once: set[tuple[int, int | None, str]]
) -> list[Event]:
    found: list[Event] = []
    for rule in rules:
        if not rule.once:
            found += _apply(rule, lines, index, line)
            continue
        key = (line.source, line.rank, rule.name)
        if key not in once and (made := _apply(rule, lines, index, line)):
            once.add(key)
            found += made
    if len(found) < 2:
        return found
    if any(e.kind in DETECTIONS for e in found):
        return [e for e in found if e.kind is not EventKind.ERROR]
    first = {e.name: e for e in reversed(found) if e.kind is EventKind.ERROR}
    return [e for e in found if e.kind is not EventKind.ERROR or first[e.name] is e]


def _apply(rule: Rule, lines: Sequence[Line], index: int, line: Line) -> list[Event]:
    body = line.text if rule.prefixes else line.body
    if len(body) > 2 * _SEARCHED:
        body = f"{body[:_SEARCHED]} {body[-_SEARCHED:]}"
    matches = list(islice(rule.pattern.finditer(body), 1 if rule.once else _MATCHES))
    if not matches and rule.joins:
        match = _joined(rule, lines, index, line)
        matches = [match] if match else []
    if rule.detection and matches:
        matches = [m for m in matches if not is_quoted(m.string, m.start())]
    return [event for match in matches for event in rule.build(match, line)]


def _joined(rule: Rule, lines: Sequence[Line], index: int, line: Line) -> re.Match[str] | None:
    """The rule's match when the message was wrapped at a terminal width into the next lines."""
    text = line.body[-_SEARCHED:]
    for follower in lines[index + 1 : index + 1 + _JOIN]:
        if follower.source != line.source:
            break
        for glue in ("", " "):
            match = rule.pattern.search((text + glue + follower.text[:_SEARCHED].strip())[: 2 * _SEARCHED])
            if match:
                return match
        text += follower.text[:_SEARCHED].strip()
    return None
