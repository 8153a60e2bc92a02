"""verl's metric line: `step:<n> - <key>:<value> - …`, with the seconds of the step among its many values."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fsdpclassify.parsing.rule import Rule, event
from fsdpclassify.records import Event, EventKind, Line

_STEP = re.compile(r"\bstep:(?P<step>\d{1,9}) - ")


def _step_time(match: re.Match[str], line: Line) -> Iterable[Event]:
    step = _STEP.search(match.string, 0, match.start())
    if step is not None:
        yield event(EventKind.STEP, line, step=step["step"], value=match["value"])


RULES = (
    Rule(
        name="verl_step_time",
        anchor=r"timing_s/step:",
        pattern=re.compile(r"\btiming_s/step:(?P<value>\d{1,9}(?:\.\d{1,12})?)"),
        build=_step_time,
    ),
)
