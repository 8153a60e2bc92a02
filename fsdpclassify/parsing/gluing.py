"""Glued text apart: a progress bar prints no newline, so the next process's message starts in mid-line."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

#: A c10 or excepthook prefix in the middle of a line; right behind a quotation mark it is a quotation.
_GLUED = re.compile(
    r"(?<=[^\s:(\[\"'`])[ \t]{0,9}(?=\[rank\d{1,6}\]:(?:\[[EWIFV]| ))"
    r"|(?<=[^\s:\"'`])[ \t]{0,9}(?=\[[EWIFV] [\w/]{0,80}\.(?:cpp|hpp):\d+\] )"
    r"|(?<=[ \t:])(?=\[rank\d{1,6}\]:\[[EWIFV])|(?<=[\])}%])(?=Traceback \(most recent call last\):)"
)
#: Outer prefixes of the message that starts there: task number, `--tee` label, Ray, mpirun, container stamp.
_OUTER = re.compile(
    r"(?:(?<![\d.])\d{1,5}: |\[[A-Za-z_]\w{0,30}\d{1,4}\]:|\([\w.:-]{1,60} pid=\d{1,9}[^()]{0,40}\) ?"
    r"|\[\d{1,8},\d{1,6}\]<std\w{3}>: ?"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z? )+$"
)
_OUTER_REACH = 160
#: A second c10 message that starts inside the first is not glued text but a quotation of it.
_QUOTING = re.compile(r"terminated with exception: ?$|what\(\): ? ?$|Original reason for failure was: ?$")
_MOST_CUTS = 64
_PREFIXES_END = 300


def unglue(text: str, prefixes_end: Callable[[str], int]) -> list[str]:
    """The messages of one frame, in order; `prefixes_end` tells how far the prefixes in front of a text reach."""
    if "[rank" not in text and ".cpp:" not in text and "Traceback (most" not in text:
        return [text]
    if text[0] == "[" and text.find("[rank", 1) < 0 and ".cpp:" not in text and "Traceback" not in text:
        return [text]  # an ordinary line: its one prefix stands in front
    if _stands_in_front(text, prefixes_end):
        return [text]
    cuts: list[int] = []
    for match in _GLUED.finditer(text):
        cut = _with_outer(text, match.start())
        if cut > (cuts[-1] if cuts else 0) and _is_seam(text, cut, match.start(), prefixes_end):
            cuts.append(cut)
        if len(cuts) == _MOST_CUTS:
            break
    edges = [0, *cuts, len(text)]
    return [text[a:b] for a, b in pairwise(edges) if text[a:b].strip()] or [text]


def _stands_in_front(text: str, prefixes_end: Callable[[str], int]) -> bool:
    """Whether the one thing in `text` that could be glued on is a prefix behind other prefixes."""
    at = text.find("[rank")
    if not 0 <= at <= _PREFIXES_END or text.find("[rank", at + 1) >= 0:
        return False
    if ".cpp:" in text or "Traceback (most" in text:
        return False
    return prefixes_end(text[: 2 * _PREFIXES_END]) > at


def _with_outer(text: str, start: int) -> int:
    low = max(0, start - _OUTER_REACH)
    match = _OUTER.search(text[low:start])
    return low + match.start() if match else start


def _is_seam(text: str, cut: int, start: int, prefixes_end: Callable[[str], int]) -> bool:
    """Whether a message ends at `cut`: not where only prefixes stand before, nor where a message is quoted."""
    if _QUOTING.search(text[max(0, start - 60) : start]):
        return False
    if cut == start and text[cut - 1] in " \t:":
        return False  # the outer text reads on into the prefix, so both belong together
    return cut > _PREFIXES_END or prefixes_end(text[: 2 * _PREFIXES_END]) <= start
