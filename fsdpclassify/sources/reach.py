"""Looks further back from a detection for ranks that printed little before it."""

from __future__ import annotations

import re
from collections import Counter

from fsdpclassify.sources.limits import Limits
from fsdpclassify.sources.planning import Region
from fsdpclassify.sources.stores import Store

_STEP_BYTES = 1024 * 1024
_BARREN_STEPS = 2
# Who printed a line, roughly: only to see that nobody was missed, never to say who it was. A text
# is searched for one of these, that which its lines use most: one at a time is many times faster.
PRINTERS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (rb"\[rank\d+\]", rb"\[default\d+\]", rb"\bpid=\d+", rb"^\d{1,5}: ", rb"\brank[ =:]\d+")
)
_TRIED_BYTES = 64 * 1024


def reach_back(store: Store, start: int, known_until: int, limits: Limits) -> list[Region]:
    """Single lines before `start`, back to `reach_bytes`, of printers with few lines behind it.

    Printers are those seen between `start` and `known_until`, and any other met on the way. The
    search ends when each has its `lines_per_prefix` lines, or when going on shows nothing new.
    """
    base, _ = _before(store, start, known_until)
    printer = max(PRINTERS, key=lambda each: len(each.findall(base, 0, _TRIED_BYTES)))
    seen = Counter(printer.findall(base))
    found: list[Region] = []
    barren, low = 0, start
    while seen and low > 0 and start - low < limits.reach_bytes and barren < _BARREN_STEPS:
        data, low = _before(store, max(0, low - _STEP_BYTES), low)
        if not data:
            break
        wanted = _wanted(printer, data, low, seen, limits.lines_per_prefix)
        barren = 0 if wanted else barren + 1
        found += wanted
    return found


def _before(store: Store, start: int, end: int) -> tuple[bytes, int]:
    """The available bytes from `start`, or from later, up to `end`, and where they begin."""
    parts = store.available(start, end)
    if not parts or parts[-1][1] < end:
        return b"", end
    low = parts[-1][0]
    return store.fetch(low, end), low


def _wanted(printer: re.Pattern[bytes], data: bytes, offset: int, seen: Counter[bytes], quota: int) -> list[Region]:
    """Lines of `data`, the last ones first, of printers of whom less than `quota` lines were seen."""
    found: list[Region] = []
    for match in reversed(list(printer.finditer(data))):
        key = match.group()
        if seen[key] < quota:
            seen[key] += 1
            start = data.rfind(b"\n", 0, match.start()) + 1
            end = data.find(b"\n", match.start()) + 1 or len(data)
            found.append(Region(start=offset + start, end=offset + end, must=offset + match.start()))
    return found
