"""DeepSpeed's own lines: pipeline step lines and the wall-clock breakdown of a step (log-formats §4.7)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fsdpclassify.parsing.rule import Rule, event, simple
from fsdpclassify.records import Event, EventKind, Line

_TIMER = re.compile(r"\| (?P<name>[a-z_]{2,40}): (?P<value_ms>\d{1,9}(?:\.\d{1,6})?)(?= \||$)")


def _timers(match: re.Match[str], line: Line) -> Iterable[Event]:
    """Each phase of the step with its seconds."""
    for timer in _TIMER.finditer(line.body, match.end() - 2):
        yield event(EventKind.PHASE, line, name=timer["name"], value_ms=timer["value_ms"])


RULES = (
    Rule(
        name="deepspeed_pipeline_step",
        anchor=r"iter time \(s\): ",
        pattern=re.compile(
            r"\bsteps: (?P<step>\d{1,9}) loss: \S{1,20} iter time \(s\): (?P<value>\d{1,9}(?:\.\d{1,6})?)\b"
        ),
        build=simple(EventKind.STEP),
    ),
    Rule(name="deepspeed_timers", anchor=r"time \(ms\) \| ", pattern=re.compile(r"\btime \(ms\) \| "), build=_timers),
)
