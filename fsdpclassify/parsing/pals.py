"""PALS, the launcher of Cray systems: how its ranks ended."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fsdpclassify.parsing.rule import Rule, event
from fsdpclassify.records import Event, EventKind, Line

_ENDED = re.compile(
    r"(?:(?P<node>[\w.-]{1,80}): )?\brank (?P<rank>\d{1,6}) (?:died from signal (?P<signal>\d{1,3})\b"
    r"|exited with code (?P<code>\d{1,3})\b)"
)


def _ended(match: re.Match[str], line: Line) -> Iterable[Event]:
    code = f"-{match['signal']}" if match["signal"] else match["code"]
    yield event(EventKind.EXIT, line, rank=match["rank"], code=code, name="pals", detail=match["node"])


RULES = (Rule(name="pals_exit", anchor=r"died from signal |exited with code ", pattern=_ENDED, build=_ended),)
