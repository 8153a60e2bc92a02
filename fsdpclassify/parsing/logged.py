"""Exceptions that a logger printed on one line: `… ERROR trainer: ValueError: bad sample`.

A program logs many errors that it survives, so those that speak of another attempt, of being passed over, or of a
service on the network are left alone; whether the rank went on working is judged later, over the whole input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fsdpclassify.parsing.rule import Rule, event
from fsdpclassify.records import Event, EventKind, Line

_LOGGED = re.compile(
    r"(?:^|[\s\[|])(?:ERROR|CRITICAL|FATAL)[\]:|]{0,2}\s{1,4}(?:[-|:]\s)?"
    r"(?:\[[\w.:/-]{1,80}\]\s|[\w.-]{1,60}(?::\d{1,6})?\s?[:|-]\s{1,3}){0,2}"
    r"(?P<name>(?:[A-Za-z_]\w{0,60}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception)): (?P<detail>.{1,300})"
)
_SURVIVED = re.compile(
    r"\b(?:re-?try|retrying|retries|attempt|skip|skipped|skipping|ignor\w{1,4}|fall(?:ing)? ?back|continu\w{1,4}"
    r"|will be|handled|non-?fatal|temporar\w{1,4})\b",
    re.IGNORECASE,
)
_SERVICE = re.compile(
    r"HTTP|Connection|Timeout|Network|SSL|Socket|Remote|Client|Api|API|Dist(?:Backend|Store)|Comm|Upload|Rpc|RPC|Signal"
    r"|ChildFailed|CalledProcess|SystemExit"
)


def _logged(match: re.Match[str], line: Line) -> Iterable[Event]:
    name = match["name"].rsplit(".", 1)[-1]
    if _SERVICE.search(name) or _SURVIVED.search(match.string, match.start(), match.end()):
        return
    yield event(EventKind.ERROR, line, name=name, detail=match["detail"])


RULES = (Rule(name="logged_exception", anchor=r"(?:Error|Exception): ", pattern=_LOGGED, build=_logged),)
