"""Numbers that templating takes out of a line's text and that come back as facts: durations and outliers."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable
from itertools import pairwise

_UNITS = {
    "ms": 0.001, "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0,
    "m": 60.0, "min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3600.0, "hour": 3600.0, "hours": 3600.0, "hrs": 3600.0,
}  # fmt: skip
_DURATION = re.compile(
    r"(?<![\w.-])(\d{1,9}(?:\.\d{1,6})?) ?(ms|secs?|seconds?|mins?|minutes?|hours?|hrs|[smh])(?![\w/])", re.IGNORECASE
)
_CLOCK = re.compile(r"(?<![\d:.-])(?:(\d{1,3}):)?(\d{1,2}):(\d\d)(?:\.\d+)?(?![\d:])")
_NAMED = re.compile(
    r"(?:[a-z_]*(?:time|elapsed|took|duration|wait|_s|secs?))['\"]?\s?[=:]\s?(\d{1,9}(?:\.\d{1,6})?)(?![\w:%])",
    re.IGNORECASE,
)
_MS_KEY = re.compile(r"\(ms\)['\"]?\s?[=:|]\s?(\d{1,12}(?:\.\d{1,6})?)")
_NUMBER = re.compile(r"(?<![\w.])-?\d{1,15}(?:\.\d{1,9})?(?![\w.])")
#: The watchdog's own "ran for" and limits are what was waited, not what somebody spent.
_OWN = re.compile(
    r"ran for \d+ milliseconds|Timeout\(ms\)=\d+"
    r"|timed out after \d+ ?ms|wait timeout after \d+ ?ms|stuck for \d+ seconds"
)
#: A date or stamp in front is a clock, not a duration.
_STAMP = re.compile(
    r"\d{2,4}[-/]\d\d[-/]?\d{0,2}[ T_]\d\d:\d\d:\d\d\S*|^\W*\d\d:\d\d:\d\d\S*|\b[EWIFV]\d{3,4} \d\d:\d\d:\d\d\S*"
    r"|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d|(?<=\d)<[\d:?]+"
)


def longest_duration(text: str) -> float | None:
    """The longest duration printed in `text` in seconds, wait limits and clock stamps apart; None if none is."""
    clean = _STAMP.sub(" ", _OWN.sub(" ", text[:4000]))
    values = [float(n) * _UNITS[u.lower()] for n, u in _DURATION.findall(clean)]
    values += [float(n) for n in _NAMED.findall(clean)]
    values += [float(n) / 1000 for n in _MS_KEY.findall(clean)]
    values += [int(h or 0) * 3600 + int(m) * 60 + int(s) for h, m, s in _CLOCK.findall(clean)]
    return max(values) if values else None


def outlier(bodies: dict[int | None, str], rank: int | None) -> float:
    """How far `rank`'s numbers lie from the median of the same message on other ranks, as a ratio in [0, 5].

    0 when fewer than three ranks print it; the first number that differs most counts.
    """
    if rank not in bodies or len(bodies) < 3:
        return 0.0
    columns = [_numbers(b) for b in bodies.values()]
    width = min(len(c) for c in columns)
    own = _numbers(bodies[rank])
    best = 0.0
    for i in range(min(width, 12)):
        best = max(best, _distance(own[i], [c[i] for c in columns]))
    return min(best, 5.0)


def _distance(value: float, column: Iterable[float]) -> float:
    values = list(column)
    middle = statistics.median(values)
    spread = statistics.median(abs(v - middle) for v in values)
    scale = max(spread * 3, abs(middle) * 0.05, 1e-9)
    return min(abs(value - middle) / scale / 3, 5.0)


def _numbers(text: str) -> list[float]:
    return [float(n) for n in _NUMBER.findall(_STAMP.sub(" ", text[:2000]))]


_LIST = re.compile(r"[\[(]\s?(-?\d[\d.,eE+ -]{4,2000})[\])]")
_ITEM = re.compile(r"-?\d{1,15}(?:\.\d{1,9})?(?:[eE][+-]?\d{1,3})?")
_ITEMS = 4


def printed_list(text: str) -> tuple[float, ...]:
    """The longest bracketed list of at least four positive numbers in `text`, as one value for each rank or expert.

    () without one. Numbers that only count on (`[0, 1, 2, 3]`) are the names of ranks, no loads.
    """
    lists = [tuple(float(n) for n in _ITEM.findall(m[1])) for m in _LIST.finditer(text[:4000])]
    loads = [v for v in lists if len(v) >= _ITEMS and min(v) >= 0 and not _counts_on(v)]
    return max(loads, key=len, default=())


def _counts_on(values: tuple[float, ...]) -> bool:
    return all(b > a for a, b in pairwise(values))


def list_spread(text: str) -> float:
    """How far the largest of a printed list lies above its median, in [0, 1]: 1 from 32 times on, 0 without a list."""
    values = printed_list(text)
    middle = statistics.median(values) if values else 0.0
    if not values or max(values) <= 0:
        return 0.0
    return min(math.log2(max(values) / max(middle, max(values) / 32)) / 5.0, 1.0)
