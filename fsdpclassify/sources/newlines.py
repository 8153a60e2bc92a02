"""Counts newlines fast enough not to slow a scan down, and remembers where they lie."""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_right
from collections.abc import Callable


def fast_counter() -> Callable[[bytes | memoryview], int]:
    """A newline counter for large blocks; with numpy, which is imported only when a log is large."""
    try:
        import numpy as np
    except ImportError:
        return count_newlines
    own = threading.local()  # one buffer a thread: a new one for each block costs more than counting

    def count(block: bytes | memoryview) -> int:
        if len(block) > len(getattr(own, "found", ())):
            own.found = np.empty(len(block), dtype=np.bool_)
        found = own.found[: len(block)]
        np.equal(np.frombuffer(block, dtype=np.uint8), 10, out=found)
        return int(np.count_nonzero(found))

    return count


def count_newlines(block: bytes | memoryview) -> int:
    """Newlines in `block`."""
    return bytes(block).count(b"\n")


class NewlineIndex:
    """How many newlines lie before the start of each block of a text."""

    __slots__ = ("_before", "_count", "_starts", "newlines", "size")

    def __init__(self, count: Callable[[bytes | memoryview], int]) -> None:
        self._count = count
        self._starts = array("Q")
        self._before = array("Q")
        self.newlines = 0
        self.size = 0

    def add(self, block: bytes | memoryview) -> None:
        """The text goes on with `block`."""
        self._starts.append(self.size)
        self._before.append(self.newlines)
        self.newlines += self._count(block)
        self.size += len(block)

    def extend(self, other: NewlineIndex) -> None:
        """The text goes on with the text of `other`."""
        self._starts.extend(array("Q", [start + self.size for start in other._starts]))
        self._before.extend(array("Q", [count + self.newlines for count in other._before]))
        self.newlines += other.newlines
        self.size += other.size

    def before(self, offset: int) -> tuple[int, int]:
        """The last block start at or before `offset`, and the newlines before that start."""
        place = bisect_right(self._starts, offset) - 1
        return (self._starts[place], self._before[place]) if place >= 0 else (0, 0)
