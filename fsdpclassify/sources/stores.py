"""Texts that were scanned, asked again for regions: on disk, or what was retained of a stream."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from fsdpclassify.sources.newlines import NewlineIndex, count_newlines
from fsdpclassify.sources.opening import Seekable


class Store(Protocol):
    """Parts of a text, with the newlines before each."""

    size: int

    def available(self, start: int, end: int) -> list[tuple[int, int]]:
        """The parts of `start` to `end` that can be fetched, ascending."""

    def fetch(self, start: int, end: int) -> bytes:
        """Bytes `start` to `end` (cut to the text), or `b""` unless all of them are available."""

    def newlines_before(self, offset: int) -> int:
        """Newlines before an available offset."""


class SeekableStore:
    """A text that can be read again."""

    def __init__(self, text: Seekable, index: NewlineIndex) -> None:
        self._text = text
        self._index = index
        self._counted = (0, 0)
        self.size = index.size

    def available(self, start: int, end: int) -> list[tuple[int, int]]:
        """See `Store`."""
        return [(max(0, start), min(end, self.size))]

    def fetch(self, start: int, end: int) -> bytes:
        """See `Store`."""
        return self._text.fetch(max(0, start), min(end, self.size))

    def newlines_before(self, offset: int) -> int:
        """See `Store`; counts on from the last offset asked for, or from the block's start."""
        start, count = self._index.before(offset)
        if start <= self._counted[0] <= offset:
            start, count = self._counted
        count += count_newlines(self._text.fetch(start, offset))
        self._counted = (offset, count)
        return count


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Retained bytes from `offset`, with `newlines` newlines in the text before them."""

    offset: int
    newlines: int
    data: bytes

    @property
    def end(self) -> int:
        """Offset behind the last byte."""
        return self.offset + len(self.data)

    def part(self, start: int, end: int) -> Chunk:
        """The bytes from offset `start` to `end`, both cut to this chunk."""
        low = max(0, start - self.offset)
        newlines = self.newlines + self.data.count(b"\n", 0, low)
        return Chunk(offset=self.offset + low, newlines=newlines, data=self.data[low : end - self.offset])


class RetainedStore:
    """What was kept of a text that could be read only once."""

    def __init__(self, chunks: Iterable[Chunk], size: int) -> None:
        self.size = size
        self._chunks: list[Chunk] = []
        end = 0
        for chunk in sorted(chunks, key=lambda each: (each.offset, -len(each.data))):
            if chunk.end > end:
                self._chunks.append(chunk.part(end, chunk.end) if chunk.offset < end else chunk)
                end = chunk.end
        self._starts = [chunk.offset for chunk in self._chunks]

    def available(self, start: int, end: int) -> list[tuple[int, int]]:
        """See `Store`."""
        found: list[tuple[int, int]] = []
        for chunk in self._chunks[max(0, bisect_right(self._starts, start) - 1) :]:
            low, high = max(start, chunk.offset), min(end, chunk.end)
            if chunk.offset >= end:
                break
            if low >= high:
                continue
            if found and found[-1][1] == low:
                found[-1] = (found[-1][0], high)
            else:
                found.append((low, high))
        return found

    def fetch(self, start: int, end: int) -> bytes:
        """See `Store`."""
        start, end = max(0, start), min(end, self.size)
        if self.available(start, end) != [(start, end)]:
            return b""
        parts = []
        for chunk in self._chunks[bisect_right(self._starts, start) - 1 :]:
            if chunk.offset >= end:
                break
            parts.append(chunk.data[max(0, start - chunk.offset) : end - chunk.offset])
        return b"".join(parts)

    def newlines_before(self, offset: int) -> int:
        """See `Store`."""
        chunk = self._chunks[bisect_right(self._starts, offset) - 1]
        return chunk.part(offset, chunk.end).newlines
