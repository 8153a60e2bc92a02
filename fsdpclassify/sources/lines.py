"""Bytes to lines: newlines counted, carriage-return frames parted, control characters removed.

Input is UTF-8 text as bytes (other encodings were recoded before); output is `RawLine`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count

from fsdpclassify.making import maker
from fsdpclassify.records import RawLine

MAX_FRAME_BYTES = 64 * 1024
FIRST_FRAMES = 2
LAST_FRAMES = 40

_CONTROL_BYTES = bytes(code for code in (*range(32), 127) if code not in (9, 10))
_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor moves
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # OSC and other strings: titles, hyperlinks
    r"|\x1b[ -/]*[0-~]?"  # short escapes, and an escape cut off at the end
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
# C0 but tab, DEL, C1; then line separators and direction marks, which can forge what a reader sees.
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")


_raw_line = maker(RawLine)


def clean(text: str) -> str:
    """`text` without ANSI escapes and control characters; tabs stay."""
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPE.sub("", text)
    return _CONTROL.sub("", text)


def is_plain(block: bytes) -> bool:
    """Whether `block` is ASCII without control characters other than tab and newline."""
    return block.isascii() and len(block.translate(None, _CONTROL_BYTES)) == len(block)


class LineMaker:
    """Makes the `RawLine`s of one input."""

    __slots__ = ("_node", "_rank", "_source")

    def __init__(self, source: int, hint_rank: int | None, hint_node: str | None) -> None:
        self._source = source
        self._rank = hint_rank
        self._node = hint_node

    def lines(self, block: bytes, first: int) -> list[RawLine]:
        """The lines of `block`, whose first byte lies on line number `first`.

        A newline at the end of `block` closes its last line and begins no further one.
        """
        if not block:
            return []
        return self.numbered(block[:-1] if block.endswith(b"\n") else block, count(first))

    def numbered(self, block: bytes, numbers: Iterable[int]) -> list[RawLine]:
        """The lines of `block`, which begins with a line and ends without a newline; `numbers` are theirs."""
        if is_plain(block):
            source, rank, node, make = self._source, self._rank, self._node, _raw_line
            return [
                make(source=source, number=number, text=text, hint_rank=rank, hint_node=node)
                for number, text in zip(numbers, _capped(block.decode("ascii").split("\n")), strict=False)
            ]
        parts = zip(numbers, block.split(b"\n"), strict=False)
        return [line for number, part in parts for line in self._frames(part, number)]

    def _frames(self, part: bytes, number: int) -> Iterator[RawLine]:
        part = part.rstrip(b"\r")
        if b"\r" not in part:
            yield self._line(_text(part), number)
            return
        frames = part.split(b"\r")
        skipped = range(FIRST_FRAMES, len(frames) - LAST_FRAMES)
        # An empty frame is only the return that a progress bar prints before itself.
        kept = [(index, text) for index, frame in enumerate(frames) if index not in skipped and (text := _text(frame))]
        for index, text in kept or [(0, "")]:
            yield self._line(text, number, index)

    def _line(self, text: str, number: int, frame: int = 0) -> RawLine:
        return RawLine(
            source=self._source,
            number=number,
            text=text,
            frame=frame,
            hint_rank=self._rank,
            hint_node=self._node,
        )


def _capped(texts: list[str]) -> list[str]:
    if max(map(len, texts)) <= MAX_FRAME_BYTES:
        return texts
    return [text[:MAX_FRAME_BYTES] for text in texts]


def _text(frame: bytes) -> str:
    return clean(frame[:MAX_FRAME_BYTES].decode("utf-8", "replace"))
