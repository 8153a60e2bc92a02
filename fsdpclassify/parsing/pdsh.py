"""pdsh and clush: how the commands on their hosts ended."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fsdpclassify.parsing.rule import Rule, event
from fsdpclassify.records import Event, EventKind, Line

_EXIT = re.compile(
    r"(?:pdsh@[\w.-]{1,80}: (?P<a>[\w.-]{1,80}): (?:ssh|rsh|mrsh|exec) exited with exit code (?P<code>\d{1,3})"
    r"|clush: (?P<b>[\w.,\[\]-]{1,80}): exited with exit code (?P<code2>\d{1,3}))"
)


def _exit(match: re.Match[str], line: Line) -> Iterable[Event]:
    node = match["a"] or match["b"]
    yield event(EventKind.EXIT, line, rank=None, code=match["code"] or match["code2"], name="pdsh", detail=node)


RULES = (Rule(name="pdsh_exit", anchor=r"exited with exit code ", pattern=_EXIT, build=_exit),)
