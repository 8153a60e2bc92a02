"""Finds anchors in a stream of blocks: hyperscan where it has a wheel, `re` and `find` elsewhere.

Both engines report the same: for every anchor the cells (`CELL_BYTES` long, counted from the start
of the text) in which a match ends.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from fsdpclassify.sources.interface import Anchor

CELL_BYTES = 1024
_CELL_SHIFT = 10
#: Cells kept for one anchor, the first and the last ones; more hits than this are no rare anchor.
_KEPT_CELLS = 20_000
#: The slower engine looks for a match in at most this much of an unfinished line.
_CARRY_BYTES = 64 * 1024

_LITERAL = re.compile(rb"(?:[^\\.^$*+?{}\[\]|()]|\\[^A-Za-z0-9])+")


class Hits:
    """Cells in which one anchor was found, ascending and without repeats."""

    __slots__ = ("_base", "_first", "_fresh", "_last", "newest")

    def __init__(self, *, base: int = 0, watched: bool = False) -> None:
        """`base` is where the scanned part begins; `watched`: `take_fresh` is called after every block."""
        self._base = base - 1
        self._first: list[int] = []
        self._last: deque[int] | None = None
        self._fresh: list[int] | None = [] if watched else None
        self.newest = -1

    def add(self, end: int) -> None:
        """Note a match that ends before offset `end` of the scanned part."""
        self.add_cell((self._base + end) >> _CELL_SHIFT)

    def add_cell(self, cell: int) -> None:
        """Note a cell, which must not lie before one noted earlier."""
        if cell <= self.newest:
            return
        self.newest = cell
        if len(self._first) < _KEPT_CELLS:
            self._first.append(cell)
        else:
            self._last = self._last or deque(maxlen=_KEPT_CELLS)
            self._last.append(cell)
        if self._fresh is not None:
            self._fresh.append(cell)

    def take_fresh(self) -> list[int]:
        """Cells added since the last call."""
        if not self._fresh:
            return []
        fresh, self._fresh = self._fresh, []
        return fresh

    def cells(self) -> list[int]:
        """The cells kept."""
        return [*self._first, *(self._last or ())]


class HitTable(dict[int, Hits]):
    """`Hits` by the number of their anchor, made when they are asked for: of many anchors few are ever found."""

    def __init__(self, *, base: int = 0, watched: bool = False) -> None:
        super().__init__()
        self._base = base
        self._watched = watched

    def __missing__(self, number: int) -> Hits:
        """The hits of an anchor that was not found so far."""
        made = self[number] = Hits(base=self._base, watched=self._watched)
        return made


class Engine(Protocol):
    """Scans one text, block after block."""

    def scan(self, block: bytes | memoryview) -> None:
        """Look at the next block; matches may begin in an earlier one."""

    def close(self) -> None:
        """The text has ended."""


EngineMaker = Callable[[Mapping[int, Hits]], Engine]


def engine_for(anchors: Sequence[Anchor]) -> EngineMaker:
    """A maker of engines for `anchors`; the hits given to it go by the place of an anchor among them."""
    if not anchors:
        return _NoEngine
    try:
        import hyperscan
    except ImportError:
        return _portable(anchors)
    return _hyperscan(hyperscan, anchors)


class _NoEngine:
    """Nothing to look for."""

    def __init__(self, hits: Mapping[int, Hits]) -> None:
        pass

    def scan(self, block: bytes | memoryview) -> None:
        pass

    def close(self) -> None:
        pass


def _hyperscan(hyperscan: Any, anchors: Sequence[Anchor]) -> EngineMaker:  # noqa: ANN401 - it has no types
    expressions = [anchor.pattern for anchor in anchors]
    own = threading.local()  # a database carries its working memory, so each thread needs its own

    def make(hits: Mapping[int, Hits]) -> Engine:
        if not hasattr(own, "database"):
            own.database = hyperscan.Database(mode=hyperscan.HS_MODE_STREAM)
            own.database.compile(
                expressions=expressions,
                ids=list(range(len(expressions))),
                elements=len(expressions),
                flags=0,
            )
        return HyperscanEngine(own.database, hits)

    return make


class HyperscanEngine:
    """The fast engine; `database` is compiled once a thread for all texts."""

    def __init__(self, database: Any, hits: Mapping[int, Hits]) -> None:  # noqa: ANN401 - it has no types
        def on_match(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            hits[number].add(end)

        self._on_match = on_match  # the stream holds no reference of its own to it
        self._stream = database.stream(match_event_handler=on_match)
        self._scan = self._stream.__enter__().scan

    def scan(self, block: bytes | memoryview) -> None:
        """See `Engine`."""
        self._scan(block)

    def close(self) -> None:
        """See `Engine`."""
        self._stream.__exit__(None, None, None)


def _portable(anchors: Sequence[Anchor]) -> EngineMaker:
    finders = [_finder(anchor.pattern) for anchor in anchors]
    return lambda hits: PortableEngine(finders, hits)


Finder = Callable[[bytes], Iterator[int]]


class PortableEngine:
    """The slower engine: one search an anchor over whole lines, the last unfinished one carried on."""

    def __init__(self, finders: Sequence[Finder], hits: Mapping[int, Hits]) -> None:
        self._finders = finders
        self._hits = hits
        self._carry = b""
        self._offset = 0

    def scan(self, block: bytes | memoryview) -> None:
        """See `Engine`."""
        data = self._carry + block
        cut = data.rfind(b"\n") + 1
        if not cut and len(data) > _CARRY_BYTES:
            self._search(data)
            cut = len(data) - _CARRY_BYTES
        else:
            self._search(data[:cut])
        self._offset += cut
        self._carry = data[cut:]

    def close(self) -> None:
        """See `Engine`."""
        self._search(self._carry)
        self._carry = b""

    def _search(self, data: bytes) -> None:
        for number, finder in enumerate(self._finders):
            for end in finder(data):
                self._hits[number].add(self._offset + end)


def _finder(pattern: bytes) -> Finder:
    if _LITERAL.fullmatch(pattern):
        literal = re.sub(rb"\\(.)", rb"\1", pattern)
        return lambda data: _ends_of(literal, data)
    compiled = re.compile(pattern)
    return lambda data: (match.end() for match in compiled.finditer(data))


def _ends_of(literal: bytes, data: bytes) -> Iterator[int]:
    at = data.find(literal)
    while at >= 0:
        yield at + len(literal)
        at = data.find(literal, at + len(literal))
