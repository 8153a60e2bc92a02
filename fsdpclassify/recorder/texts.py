"""A JSON dump that was cut off, up to its last complete entry."""

from __future__ import annotations

import re

#: Strings, the one that was cut too, and brackets; what lies between them is of no concern.
_TOKEN = re.compile(r'"[^"\\]*(?:\\[\s\S][^"\\]*)*"?|[\[\]{}]')
_CLOSERS = {"{": "}", "[": "]"}
#: The dump itself, and its list of entries or another container in it.
_DEEP = 2


def completed_json(data: bytes) -> list[bytes]:
    """The text up to where an entry, or a whole value of the dump, last ended, with what was open closed; else []."""
    text = data.decode("utf-8", "replace")
    open_ones: list[str] = []
    safe, ends = 0, ""
    for match in _TOKEN.finditer(text):
        mark = match[0]
        if mark in _CLOSERS:
            open_ones.append(mark)
        elif mark in ("}", "]"):
            if not open_ones or _CLOSERS[open_ones.pop()] != mark:
                return []
            if 0 < len(open_ones) <= _DEEP:
                safe, ends = match.end(), "".join(_CLOSERS[each] for each in reversed(open_ones))
    return [(text[:safe] + ends).encode()] if safe else []
