"""Wall-clock stamps in log lines, as printed by loggers, kernels, containers and c10.

The nine digits behind a c10 second come from another clock than the second itself (log-formats
§0.4), so fractions of c10 stamps are dropped. Stamps without a year or without a date are
completed from the dated stamps of the same input (`settle`).
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

_MONTHS = {m: i for i, m in enumerate(calendar.month_abbr) if m}
#: A leap year, so that 29 February without a year stays a date.
_NO_YEAR = 2000
_DAY = 86400.0

#: Cheap test that comes first: most lines of most logs carry no clock.
_ANY = re.compile(r"\d:\d\d:\d\d")
#: How far into a line its own stamp, and a c10 stamp behind other text, are looked for.
_HEAD, _REACH = 200, 4000
_ISO = re.compile(r"(?<!\d)(20\d\d)[-/](\d\d)[-/](\d\d)[ T_](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")
_C10 = re.compile(r"\[?\b[EWIFV](\d{1,2})(\d\d) (\d\d):(\d\d):(\d\d)(?:\.\d+)?")
_SYSLOG = re.compile(r"(?:^|[\s\[])([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d)(?: (20\d\d))?")
_MONTH_DAY = re.compile(r"(?:^|[\s\[])(\d\d)[-/](\d\d) (\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?")
_CLOCK = re.compile(r"^\W{0,3}(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?(?=[\s\]|])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Seconds since the epoch of a naive wall clock; `dated` and `year` say what was printed."""

    seconds: float
    dated: bool = True
    year: bool = True


def find_stamp(text: str) -> Stamp | None:
    """The outermost stamp of a line, or a c10 stamp anywhere in it; None if there is none."""
    if not holds_clock(text):
        return None
    head = text[:_HEAD]
    return _iso(head) or _c10(text[:_REACH]) or _syslog(head) or _month_day(head) or _clock(head)


def holds_clock(text: str) -> bool:
    """Whether a clock time stands anywhere in the part of `text` that is searched for stamps."""
    return _ANY.search(text, 0, _REACH) is not None


def full_date(text: str) -> tuple[int, int] | None:
    """Where the first stamp with a date and a year stands near the front of `text`, if one does."""
    match = _ISO.search(text[:_HEAD])
    return match.span() if match else None


def _seconds(year: int, month: int, day: int, hms: tuple[str, str, str], fraction: str | None) -> float | None:
    hour, minute, second = (int(p) for p in hms)
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 61):
        return None
    whole = calendar.timegm((year, month, day, hour, minute, second))
    return whole + (float(f"0.{fraction}") if fraction else 0.0)


def _iso(text: str) -> Stamp | None:
    m = _ISO.search(text)
    if m is None:
        return None
    value = _seconds(int(m[1]), int(m[2]), int(m[3]), (m[4], m[5], m[6]), m[7])
    return None if value is None else Stamp(seconds=value)


def _c10(text: str) -> Stamp | None:
    m = _C10.search(text)
    if m is None:
        return None
    value = _seconds(_NO_YEAR, int(m[1]), int(m[2]), (m[3], m[4], m[5]), None)
    return None if value is None else Stamp(seconds=value, year=False)


def _syslog(text: str) -> Stamp | None:
    m = _SYSLOG.search(text)
    if m is None or m[1] not in _MONTHS:
        return None
    year = int(m[6]) if m[6] else _NO_YEAR
    value = _seconds(year, _MONTHS[m[1]], int(m[2]), (m[3], m[4], m[5]), None)
    return None if value is None else Stamp(seconds=value, year=m[6] is not None)


def _month_day(text: str) -> Stamp | None:
    m = _MONTH_DAY.search(text)
    if m is None:
        return None
    value = _seconds(_NO_YEAR, int(m[1]), int(m[2]), (m[3], m[4], m[5]), m[6])
    return None if value is None else Stamp(seconds=value, year=False)


def _clock(text: str) -> Stamp | None:
    m = _CLOCK.match(text)
    if m is None:
        return None
    value = _seconds(_NO_YEAR, 1, 1, (m[1], m[2], m[3]), m[4])
    return None if value is None else Stamp(seconds=value % _DAY, dated=False, year=False)


def settle(stamps: Sequence[Stamp | None], sources: Sequence[int]) -> tuple[list[float | None], bool]:
    """Put all stamps of an input set on one calendar; `sources` says which file each is from.

    Stamps without a year take the year of the closest full date; stamps without a date take the day
    that the order of their file asks for. The second value says whether a year was printed anywhere:
    without one the calendar is arbitrary and only differences mean anything.
    """
    full = [s.seconds for s in stamps if s is not None and s.year]
    anchor = max(full) if full else _turn_of_year([s.seconds for s in stamps if s is not None and s.dated])
    placed = [None if s is None or not s.dated else _with_year(s, anchor) for s in stamps]
    if any(s is not None and not s.dated for s in stamps):
        _place_undated(stamps, sources, placed)
    return placed, bool(full)


def _turn_of_year(seconds: Sequence[float]) -> float | None:
    """The latest stamp if the input reaches over New Year, so that January follows December; None otherwise."""
    return max(seconds) if seconds and max(seconds) - min(seconds) > _DAY * 183 else None


def _place_undated(stamps: Sequence[Stamp | None], sources: Sequence[int], placed: list[float | None]) -> None:
    """Give each stamp without a date the day on which it follows the one before it in its file."""
    latest = max((p for p in placed if p is not None), default=None)
    ahead: dict[int, float] = {}
    for i in range(len(stamps) - 1, -1, -1):
        at = placed[i]
        if at is not None:
            ahead[sources[i]] = at  # what is left is the first dated stamp of each file
    last: dict[int, float] = {}
    for i, (stamp, source) in enumerate(zip(stamps, sources, strict=True)):
        if stamp is None:
            continue
        at = placed[i]
        if at is None:
            at = placed[i] = _day_of(stamp.seconds, last.get(source), ahead.get(source, latest))
        last[source] = at


def _day_of(clock: float, before: float | None, ahead: float | None) -> float:
    """`clock` on the first day that does not lie half a day before `before`, else on the last before `ahead`."""
    if before is not None:
        day = before - before % _DAY
        return min((day + s + clock for s in (-_DAY, 0.0, _DAY)), key=lambda t: abs(t - before))
    if ahead is None:
        return clock
    day = ahead - ahead % _DAY
    return day + clock if day + clock <= ahead + 3600 else day + clock - _DAY


def _with_year(stamp: Stamp, anchor: float | None) -> float:
    if stamp.year or anchor is None:
        return stamp.seconds
    here = calendar.timegm((_NO_YEAR, 1, 1, 0, 0, 0))
    offset = stamp.seconds - here
    year = _year_of(anchor)
    # 2000 was a leap year: after February the day number is one too high in a common year.
    candidates = [
        calendar.timegm((y, 1, 1, 0, 0, 0)) + offset - _leap_shift(y, offset) for y in (year - 1, year, year + 1)
    ]
    return min(candidates, key=lambda c: abs(c - anchor))


def _leap_shift(year: int, offset: float) -> float:
    return _DAY if not calendar.isleap(year) and offset >= 59 * _DAY else 0.0


def _year_of(seconds: float) -> int:
    return datetime.fromtimestamp(seconds, tz=UTC).year
