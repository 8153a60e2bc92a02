"""Small pieces of human text: rank lists, durations, percentages, and hostile text made harmless."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

_SHORT_ESCAPES = {"\t": " ", "\n": "\\n", "\r": "\\r"}


def printable(text: str) -> str:
    """The text on one line with every character that could steer a terminal shown as an escape.

    Control characters (C0, C1, DEL), bidirectional overrides, zero-width marks, line separators
    and lone surrogates become escapes that name their code; printable characters of any script stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    if char in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[char]
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def cut(text: str, width: int) -> str:
    """Harmless one-line text in at most `width` terminal cells; `…` marks what was cut off."""
    safe = printable(text)
    if len(safe) * 2 <= width or _cells(safe) <= width:
        return safe
    return safe[: _fitting(safe, width - 1)] + "…"


def fold(text: str, width: int, indent: str, rows: int) -> list[str]:
    """A printed line as at most `rows` harmless lines of `width` cells; the last one is cut.

    It breaks behind a blank where one is near, so that words can be searched for; nothing is left out.
    """
    rest, room = printable(text.strip()), max(width - len(indent), 2)
    lines: list[str] = []
    while len(lines) < rows - 1 and _cells(rest) > room:
        end = max(_fitting(rest, room), 1)
        blank = rest.rfind(" ", end // 2, end)
        end = blank + 1 if blank > 0 else end
        lines.append(indent + rest[:end])
        rest = rest[end:]
    return [*lines, indent + cut(rest, room)]


def _fitting(safe: str, cells: int) -> int:
    """How many of the first characters fit into so many cells."""
    used = 0
    for index, char in enumerate(safe):
        used += _cell(char)
        if used > cells:
            return index
    return len(safe)


def _cells(text: str) -> int:
    return len(text) if text.isascii() else sum(_cell(char) for char in text)


def _cell(char: str) -> int:
    # Combining marks take no cell, but count as one: a stack of them would paint over other lines.
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def wrap(text: str, width: int, indent: str = "", first: str | None = None) -> list[str]:
    """Our own prose as indented lines of at most `width` cells; a longer word stays whole."""
    lines: list[str] = []
    line, empty = (indent if first is None else first), True
    for word in printable(text).split():
        if not empty and len(line) + 1 + len(word) > width:
            lines.append(line)
            line, empty = indent, True
        line, empty = (line + word if empty else f"{line} {word}"), False
    return [*lines, line]


#: A list of ranks for people has so many runs at most; JSON has every rank.
MOST_RUNS = 24


def rank_ranges(ranks: Iterable[int], most: int | None = None) -> str:
    """Ranks in ascending order with runs drawn together: `0-3,5`; of more than `most` runs the first, and how many."""
    ordered = sorted(set(ranks))
    parts: list[str] = []
    start = 0
    for index in range(1, len(ordered) + 1):
        if index == len(ordered) or ordered[index] != ordered[index - 1] + 1:
            first, last = ordered[start], ordered[index - 1]
            parts.append(f"{first}" if first == last else f"{first}-{last}")
            start = index
    if most is not None and len(parts) > most:
        return ",".join(parts[:most]) + f",… ({len(ordered):,} in all)"
    return ",".join(parts)


def ranks_in_words(ranks: Sequence[int]) -> str:
    """`rank 1`, or `ranks 0-3,5`; empty text for no rank."""
    if not ranks:
        return ""
    return f"{'rank' if len(set(ranks)) == 1 else 'ranks'} {rank_ranges(ranks, MOST_RUNS)}"


def percent(probability: float) -> str:
    """A probability as people say it; never `100 %` or `0 %` for what is merely close to it."""
    if 0.995 <= probability < 1.0:
        return "above 99 %"
    if 0.0 < probability < 0.005:
        return "below 1 %"
    return f"{probability * 100:.0f} %"


def duration(seconds: float) -> str:
    """Seconds in the unit in which people set timeouts: `600 s (10 min)`."""
    short = f"{seconds:.3f}".rstrip("0").rstrip(".") + " s"
    for unit, length in (("days", 86400.0), ("h", 3600.0)):
        if seconds >= 3 * length:
            return f"{short} ({seconds / length:.1f}".removesuffix(".0") + f" {unit})"
    return f"{short} ({seconds / 60:.0f} min)" if seconds >= 120 and seconds % 60 == 0 else short
