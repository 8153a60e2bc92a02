"""Incident -> window: the lines the model sees, templated and de-duplicated, each with when and by whom.

For every rank (or file, where lines name no rank) the last lines before the onset and everything up to
the detection; for ranks that are not waiting also what they print in the minute after it. Without a
clock the detection line of the same file is the only border.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from fsdpclassify.records import EventKind, Incident, InputKind, Line
from fsdpclassify.roles import is_clocked
from fsdpclassify.templating import template
from fsdpclassify.uneventful import is_uneventful

BEFORE_LINES = 100
_DURING_LINES = 240
_AFTER_LINES = 60
_AFTER_WAITING = 16
_AFTER_S = 60.0
MAX_TEMPLATES = 256
_BODIES = 256
#: C++ frames and registers say nothing that the line above them does not; of torchrun's report only codes count,
#: and those are events.
_SKIP = re.compile(
    r"^\s*(?:frame #\d+:|@ +0x|[=\-_*~#\s]{4,}$|[\^~ ]+$|PC: @"
    r"|(?:time|host|rank|exitcode|error_file|traceback) *: |\[\d+\]:\s*$|Failures:$"
    r"|raise (?:ChildFailedError|Process(?:Raised|Exited)Exception)\(|\S{1,200}\.py FAILED\s*$"
    r"|<NO_OTHER_FAILURES>|Root Cause \(first observed|Traceback \(most recent call last\):$)"
)
#: A shape is a text with all digits alike; longer texts are not worth remembering.
_SHAPE, _DIGITS = 400, bytes.maketrans(b"123456789", b"000000000")
_DIGIT = re.compile(r"\d")
#: A number that is zero has a slot of its own, so the text hangs on it.
_NOTHING = re.compile(r"(?<![\d.,])0+(?:[.,]0*)?(?![\d.,:]*\d)")
_PLAIN = re.compile(
    r"(?:[A-Za-z_]+[=:])?\d+(?:\.\d+)?(?:[KMGT]i?B|[kmnu]?s|e[-+]\d+)?[,.;:)]*"
    r"|[A-Za-z]+[-_]\d{4,}(?:\.[a-z]+)?[,;:)]*|[A-Za-z_]+\.\d+[,;:)]*"
)
#: Words beside which a number is a name, and characters of times, bars, shares, lists and paths.
_NAMES = re.compile(r"exit|[Cc]ode|Xid|[Ss]ignal|[Ss]tatus|[Ee]rr|ail|SIG|->|Numel|RC|[%<>/|]")


class When(StrEnum):
    """Where a line lies against the wait."""

    BEFORE = "before"
    DURING = "during"
    AFTER = "after"


@dataclass(slots=True, kw_only=True)
class WindowLine:
    """All occurrences of one template inside the window; `line` is the one that stands for them.

    `age_s` is seconds from the line to the detection (None without clocks), `distance` the number of
    window lines of the same rank or file between the line and the border.
    """

    text: str
    line: Line
    rank: int | None = None
    when: When
    age_s: float | None
    distance: int
    count: int = 1
    ranks: set[int] = field(default_factory=set)
    bodies: dict[int | None, str] = field(default_factory=dict)
    last_of_rank: bool = False
    system: bool = False
    is_detection: bool = False

    def speak(self, rank: int | None, body: str) -> None:
        """Note who printed an occurrence, and with which numbers."""
        if rank is not None:
            self.ranks.add(rank)
        if self.rank is None or rank is not None:
            self.rank = rank
        if len(self.bodies) < _BODIES:
            self.bodies[rank] = body


def cut_window(incident: Incident, kinds: Sequence[InputKind | None]) -> list[WindowLine]:
    """The window of `incident` in input order, at most `MAX_TEMPLATES` entries (the most recent ones win)."""
    border = _Border(incident)
    system = {source for source, kind in enumerate(kinds) if kind is InputKind.SYSTEM}
    # What a line says of its printer matters only where its prefixes name none; of steps there are most by far.
    telling = (e for e in incident.events if e.rank is not None and e.line.rank is None)
    own = (e for e in telling if e.kind not in _ABOUT_RANKS and e.line.source not in system)
    speakers = {id(e.line): e.rank for e in own}
    rare = (e for e in incident.events if e.kind is not EventKind.STEP)
    detections = {id(e.line) for e in rare if e.kind.value in _DETECTION_VALUES}
    streams: dict[tuple[int, int | None], list[Line]] = defaultdict(list)
    uneventful = _Uneventful()
    for line in incident.lines:
        if line.body and not _SKIP.match(line.body) and border.within(line) and not uneventful.of(line.body):
            rank = line.rank if line.rank is not None else speakers.get(id(line))
            streams[(line.source, rank)].append(line)
    groups: dict[tuple[str, str], WindowLine] = {}
    templates = _Templates()
    waiters = frozenset(incident.waiting)
    for (source, rank), lines in streams.items():
        waiting = rank is not None and rank in waiters
        picked = _pick(lines, border.when, waiting=waiting)
        for distance, (line, when) in enumerate(reversed(picked)):
            row = _add(groups, templates.of(line.body), line, when, distance, border)
            if row is not None:
                row.system |= kinds[source] is InputKind.SYSTEM
                row.is_detection |= id(line) in detections
                row.speak(rank, line.body)
    rows = sorted(groups.values(), key=_recency)[:MAX_TEMPLATES]
    return sorted(rows, key=lambda w: (w.line.source, w.line.number))


#: What a host says about a rank is not said by it.
_ABOUT_RANKS = frozenset({EventKind.HARDWARE, EventKind.KILL})
_DETECTION_VALUES = frozenset(
    {
        "timeout",
        "status",
        "notified",
        "dumping",
        "heartbeat",
        "monitored_barrier",
        "store_timeout",
        "gloo_timeout",
        "nccl_error",
        "desync_report",
    }
)


def _recency(row: WindowLine) -> tuple[int, float, int]:
    return (row.when is When.AFTER, row.age_s if row.age_s is not None else 0.0, row.distance)


class _Border:
    """Which side of the wait a line lies on, by clock where there is one, by position otherwise."""

    def __init__(self, incident: Incident) -> None:
        self._line = incident.detection.line
        self._time = incident.detection.time if is_clocked(incident.detection) else None
        self._onset = incident.onset
        lo, hi = _attempt_span(incident)
        self._lo, self._hi = lo, hi
        self._given_up = _given_up(incident)

    def within(self, line: Line) -> bool:
        """Whether the line belongs to this incident's attempt (per file, by line number)."""
        if not self._lo and not self._hi:
            return True
        return self._lo.get(line.source, 0) <= line.number <= self._hi.get(line.source, 1 << 60)

    def when(self, line: Line) -> When:
        if line.source == self._line.source and line.number == self._line.number:
            return When.BEFORE if line is not self._line else When.AFTER
        if not line.stamped and line.number > self._given_up.get(line.source, line.number):
            return When.AFTER
        if self._time is not None and line.time is not None and (line.stamped or line.source != self._line.source):
            return self._by_clock(line)
        if line.source == self._line.source:
            if line.number > self._line.number:
                return When.AFTER
            return When.DURING if self._during(line) else When.BEFORE
        return When.BEFORE

    def _by_clock(self, line: Line) -> When:
        assert self._time is not None
        assert line.time is not None
        if line.time > self._time or (line.time == self._time and self._follows(line)):
            return When.AFTER
        return When.DURING if self._during(line) else When.BEFORE

    def _follows(self, line: Line) -> bool:
        return line.source != self._line.source or line.number > self._line.number

    def _during(self, line: Line) -> bool:
        return self._onset is not None and line.time is not None and line.time >= self._onset

    def age(self, line: Line) -> float | None:
        if self._time is None or line.time is None:
            return None
        return self._time - line.time


def _given_up(incident: Incident) -> dict[int, int]:
    """For each file of a rank that waits where its own wait ends: what follows is later."""
    waiting = frozenset(incident.waiting)
    found: dict[int, int] = {}
    for e in incident.events:
        if e.kind in _OWN_ENDS and e.rank in waiting and e.line.source != incident.detection.line.source:
            found[e.line.source] = min(found.get(e.line.source, e.line.number), e.line.number)
    return found


#: By these a rank says that it waits no longer.
_OWN_ENDS = frozenset({EventKind.TIMEOUT, EventKind.GLOO, EventKind.PEER_CLOSED, EventKind.STORE, EventKind.BARRIER})


def _attempt_span(incident: Incident) -> tuple[dict[int, int], dict[int, int]]:
    """Per file the line numbers between the neighbouring incidents; open where there is none."""
    return dict(incident.first_line), dict(incident.last_line)


def _pick(lines: list[Line], when: Callable[[Line], When], *, waiting: bool) -> list[tuple[Line, When]]:
    sides: dict[When, list[tuple[Line, When]]] = {w: [] for w in When}
    for line in lines:
        side = when(line)
        sides[side].append((line, side))
    after = sides[When.AFTER][: _AFTER_WAITING if waiting else _AFTER_LINES]
    return sides[When.BEFORE][-BEFORE_LINES:] + sides[When.DURING][-_DURING_LINES:] + after


class _Uneventful:
    """Which lines report nothing, remembered by their shape (zeros apart from other digits)."""

    def __init__(self) -> None:
        self._known: dict[bytes, bool] = {}

    def of(self, body: str) -> bool:
        """As `is_uneventful`; memory left is looked at anew."""
        if len(body) > _SHAPE or "Mem:" in body:
            return is_uneventful(body)
        shape = body.encode("utf-8", "surrogatepass").translate(_NONZERO)
        known = self._known.get(shape)
        if known is None:
            known = self._known[shape] = is_uneventful(body)
        return known


_NONZERO = bytes.maketrans(b"23456789", b"11111111")


class _Templates:
    """Templates, remembered for texts that differ in plain numbers alone: those all become the same slot."""

    def __init__(self) -> None:
        self._known: dict[bytes, str | None] = {}

    def of(self, body: str) -> str:
        """The template of `body`, as `template` gives it."""
        if len(body) > _SHAPE or not body.isascii() or _NOTHING.search(body):
            return template(body)
        shape = body.encode().translate(_DIGITS)
        known = self._known.get(shape, "")
        if known:
            return known
        text = template(body)
        if known is not None:
            self._known[shape] = text if _numbers_are_plain(body) else None
        return text


def _numbers_are_plain(body: str) -> bool:
    """Whether no digit of `body` names anything (a code, a status, a type), so that any other gives the same text."""
    if _NAMES.search(body):
        return False
    return all(_PLAIN.fullmatch(word) for word in body.split() if _DIGIT.search(word))


def _add(
    groups: dict[tuple[str, str], WindowLine], text: str, line: Line, when: When, distance: int, border: _Border
) -> WindowLine | None:
    age = border.age(line)
    if not text or (when is When.AFTER and age is not None and age < -_AFTER_S):
        return None
    key = (text, "after" if when is When.AFTER else "before")
    row = groups.get(key)
    if row is None:
        row = WindowLine(text=text, line=line, when=when, age_s=age, distance=distance, count=0)
        groups[key] = row
    elif _closer(line, row):
        row.line, row.when, row.age_s = line, when, age
        row.distance = min(row.distance, distance)
    row.count += 1
    row.last_of_rank |= distance == 0
    return row


def _closer(line: Line, row: WindowLine) -> bool:
    """The occurrence nearest before the detection stands for its template; after it, the first one."""
    if line.time is None or row.line.time is None or row.when is When.AFTER:
        return False
    return line.time > row.line.time
