"""Megatron-LM's timers: for each part of an iteration the least and the greatest time over the ranks."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fsdpclassify.parsing.rule import Rule, event
from fsdpclassify.records import Event, EventKind, Line

_TIMER = re.compile(
    r"^(?P<name>[a-z][a-z0-9-]{2,60}) \.{2,80}: \((?P<least>\d{1,10}\.\d{1,3}), (?P<most>\d{1,10}\.\d{1,3})\)"
)


def _timer(match: re.Match[str], line: Line) -> Iterable[Event]:
    yield event(
        EventKind.PHASE,
        line,
        name=match["name"],
        value_ms=match["most"],
        detail=f"least {match['least']} ms of all ranks",
    )


RULES = (Rule(name="megatron_timer", anchor=r" \.\.+: \(", pattern=_TIMER, build=_timer),)
