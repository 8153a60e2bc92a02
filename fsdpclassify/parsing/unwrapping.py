"""Hard wraps off: a log pasted from a terminal breaks every long message at one width, even inside words.

A file counts as wrapped when the lines of its greatest length are followed by text that can only be
their continuation. Joined lines keep the number of the first physical line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from fsdpclassify.records import RawLine

Prefixed = Callable[[str], bool]

_NARROWEST, _WIDEST = 40, 400
#: So many lines of the greatest length prove a wrap by themselves; fewer need a word that was cut.
_MANY = 3
_STRAY = 20
_LONGEST = 16_384
#: Words of fixed messages: one that lies across a line's end shows that the line was cut there.
_CUT_WORDS = re.compile(
    r"ProcessGroup(?:NCCL|Gloo)|Watchdog caught collective operation timeout|collective operation timeout"
    r"|Work(?:NCCL|HCCL|Gloo)\(|SeqNum=\d|OpType=[A-Z_]{4}"
    r"|Numel(?:In|Out)=\d|Timeout\(ms\)=\d|milliseconds before timing out|ran for \d+ milliseconds"
    r"|last (?:enqueued|completed) (?:NCCL )?work"
    r"|failure detected by watchdog|work sequence id|PG status|watchdog thread terminated|NCCL operations have failed"
    r"|data inconsistency|entire process down|Timed out\s+waiting|operation to complete|Received a dump signal"
    r"|flight recorder"
    r"|collective timeout|torch/distributed/|NCCL (?:WARN|INFO|error)|Connection (?:closed|reset) by"
    r"|site-packages/|most recent call"
    r"|Traceback \(most|terminate called after|DistBackendError|RuntimeError|OutOfMemoryError|CUDA out of memory"
    r"|CollectiveFingerPrint|monitoredBarrier|default_pg\)|Stack trace of the failed|subsequent GPU operations"
)
_REACH = 48
#: Characters that end no message, and characters that begin none.
_OPEN, _CLOSE = "/_-(,=<&[{ ", "/_-.,=)>:]};"
#: Starts of records that no prefix rule peels: they open a line of their own.
_OPENING = re.compile(
    r"\s{2,}|\t|Traceback \(most|\{|\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d\b|\[\d{4}-|[A-Z][a-z]{2} [ \d]\d \d\d:"
    r"|(?:INFO|WARN|WARNING|ERROR|DEBUG)\b"
    r"|terminate called|what\(\):|frame #|Exception raised|[\w.]{0,60}(?:Error|Exception): |\*\*\*|[=*#~_-]{4}"
    r"|Epoch\b|[Ss]tep\b|iter"
)


def unwrap(raws: Sequence[RawLine], prefixed: Prefixed) -> list[RawLine]:
    """`raws` with the pieces of hard-wrapped lines joined, file by file; `prefixed` tells a text that opens a line."""
    joined: list[RawLine] = []
    for run in _sources(raws):
        width = _width(run, prefixed)
        joined.extend(run if width is None else _join(run, width, prefixed))
    return joined


def _sources(raws: Sequence[RawLine]) -> Iterator[Sequence[RawLine]]:
    start = 0
    for i in range(1, len(raws) + 1):
        if i == len(raws) or raws[i].source != raws[start].source:
            yield raws[start:i]
            start = i


def _width(run: Sequence[RawLine], prefixed: Prefixed) -> int | None:
    """The width at which this file was wrapped; None if it was not."""
    width = max((len(raw.text) for raw in run), default=0)
    if not _NARROWEST <= width <= _WIDEST:
        return None
    kept, stray = _ends(run, width, prefixed)
    if not kept or stray > (len(kept) + stray) // _STRAY:
        return None
    return width if (len(kept) >= _MANY and _words_are_cut(kept)) or any(_cuts_a_word(a, b) for a, b in kept) else None


def _ends(run: Sequence[RawLine], width: int, prefixed: Prefixed) -> tuple[list[tuple[str, str]], int]:
    """The lines of length `width` with their rest, and how many have none; a last piece of full length needs none."""
    kept: list[tuple[str, str]] = []
    stray, goes_on = 0, False
    for raw, follower in pairwise(run):
        was_rest, goes_on = goes_on, False
        if len(raw.text) != width or follower.number != raw.number + 1:
            continue
        if _continues(raw.text, follower.text, prefixed):
            kept.append((raw.text, follower.text))
            goes_on = True
        elif not was_rest:
            stray += 1
    return kept, stray


def _continues(text: str, follower: str, prefixed: Prefixed) -> bool:
    """Whether `follower` can be the rest of `text`: it opens no record and does not start like `text` itself."""
    if not follower.strip() or _OPENING.match(follower) or follower[:6] == text[:6]:
        return False
    return len(set(text)) > 4 and not prefixed(follower)


def _words_are_cut(pairs: Sequence[tuple[str, str]]) -> bool:
    """Whether at least half of the ends lie inside a phrase, as blind cuts do and ends of messages do not."""
    return 2 * sum(_is_inside(a[-1], b[0]) for a, b in pairs) >= len(pairs)


def _is_inside(last: str, first: str) -> bool:
    return last in _OPEN or first in _CLOSE or (first.islower() or first.isdigit() or first == " ")


def _cuts_a_word(text: str, follower: str) -> bool:
    tail, head = text[-_REACH:], follower[:_REACH]
    return any(m.start() < len(tail) < m.end() for m in _CUT_WORDS.finditer(tail + head))


def _join(run: Sequence[RawLine], width: int, prefixed: Prefixed) -> Iterator[RawLine]:
    """Join pieces: one that is a single character short of `width` lost the blank at its end."""
    at = 0
    while at < len(run):
        pieces, last = [run[at].text], run[at]
        while at + 1 < len(run) and _goes_on(last, run[at + 1], width, prefixed) and len(pieces) * width < _LONGEST:
            at += 1
            pieces.append((" " if len(last.text) < width else "") + run[at].text)
            last = run[at]
        at += 1
        yield run[at - len(pieces)] if len(pieces) == 1 else replace(run[at - len(pieces)], text="".join(pieces))


def _goes_on(raw: RawLine, follower: RawLine, width: int, prefixed: Prefixed) -> bool:
    if follower.number != raw.number + 1 or len(raw.text) < width - 1:
        return False
    if len(raw.text) == width - 1 and (raw.text[-1] in ".)]}" or not follower.text[:1].isalnum()):
        return False
    return _continues(raw.text, follower.text, prefixed)
