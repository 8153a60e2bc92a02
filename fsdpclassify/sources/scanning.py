"""One pass over a large text: anchors, newlines, and what a stream must not lose."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

from fsdpclassify.sources.blocks import BLOCK_BYTES
from fsdpclassify.sources.engines import EngineMaker, HitTable
from fsdpclassify.sources.interface import Anchor
from fsdpclassify.sources.limits import Limits
from fsdpclassify.sources.newlines import NewlineIndex
from fsdpclassify.sources.opening import Seekable
from fsdpclassify.sources.retention import Retainer

_PART_BYTES = 32 * 1024 * 1024
_MAX_PARTS = 4
_AHEAD_BLOCKS = 8


def ahead(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """`blocks`, read ahead in a thread: unpacking and scanning both let others run."""
    import queue
    import threading

    ready: queue.Queue[bytes] = queue.Queue(_AHEAD_BLOCKS)
    stopped = threading.Event()
    faults: list[BaseException] = []

    def fill() -> None:
        try:
            while not stopped.is_set() and (block := next(blocks, b"")):
                ready.put(block)
        except BaseException as fault:  # it is raised again where the blocks are wanted
            faults.append(fault)
        ready.put(b"")

    thread = threading.Thread(target=fill, daemon=True)
    thread.start()
    try:
        yield from iter(ready.get, b"")
    finally:
        stopped.set()
        while thread.is_alive():  # it may wait for room to put what nobody wants any more
            with suppress(queue.Empty):
                ready.get(timeout=0.01)
    if faults:
        raise faults[0]


@dataclass(slots=True, kw_only=True)
class Scan:
    """What one pass showed of a text: hits by the place of their anchor, newlines, the last byte."""

    anchors: Sequence[Anchor]
    hits: HitTable
    index: NewlineIndex
    retainer: Retainer | None
    last_byte: bytes = b""

    @property
    def lines(self) -> int:
        """Physical lines of the text, an unfinished last one included."""
        return self.index.newlines + (self.last_byte not in (b"", b"\n"))

    def detections(self) -> list[int]:
        """Cells of all detection anchors."""
        found = self.hits.items()
        return sorted({cell for number, hits in found if self.anchors[number].detection for cell in hits.cells()})

    def others(self) -> list[list[int]]:
        """Cells of each further anchor that was found."""
        found = [hits.cells() for number, hits in sorted(self.hits.items()) if not self.anchors[number].detection]
        return [cells for cells in found if cells]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanner:
    """Scans texts for `anchors`, one after another."""

    anchors: Sequence[Anchor]
    engine: EngineMaker
    count: Callable[[bytes | memoryview], int]
    limits: Limits = field(default_factory=Limits)

    def scan(self, blocks: Iterator[bytes], *, retain: bool) -> Scan:
        """One pass over `blocks`; `retain` for a text that cannot be read again."""
        hits = HitTable(watched=retain)
        return self._scan(blocks, hits, self._retainer(hits) if retain else None)

    def _scan(self, blocks: Iterator[bytes | memoryview], hits: HitTable, retainer: Retainer | None) -> Scan:
        scan = Scan(anchors=self.anchors, hits=hits, index=NewlineIndex(self.count), retainer=retainer)
        engine, index = self.engine(hits), scan.index
        for block in blocks:
            engine.scan(block)
            if retainer is not None:
                retainer.add(bytes(block), index.size, index.newlines)
            index.add(block)
            scan.last_byte = bytes(block[-1:])
        engine.close()
        return scan

    def scan_seekable(self, text: Seekable, size: int) -> Scan:
        """One pass over the first `size` bytes of `text`; a long text is scanned in parts at once.

        Raises `OSError` if the text cannot be read to its end.
        """
        borders = _borders(text, size)
        parts = list(pairwise(borders))
        if len(parts) == 1:
            scans = [self._scan_part(text, *parts[0])]
        else:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(len(parts)) as pool:  # engines, reads and counts let others run
                scans = list(pool.map(lambda part: self._scan_part(text, *part), parts))
        return _joined(scans)

    def _scan_part(self, text: Seekable, start: int, end: int) -> Scan:
        hits = HitTable(base=start)
        scan = self._scan(text.blocks(start, end, BLOCK_BYTES), hits, None)
        if scan.index.size < end - start:
            raise OSError("it was cut while it was read")
        return scan

    def _retainer(self, hits: HitTable) -> Retainer:
        pairs = list(enumerate(self.anchors))
        return Retainer(
            [hits[number] for number, anchor in pairs if anchor.detection],
            [hits[number] for number, anchor in pairs if not anchor.detection],
            self.limits,
        )


def _borders(text: Seekable, size: int) -> list[int]:
    """Where the parts of `text` begin and end that are scanned at once; borders follow a newline."""
    parts = min(_MAX_PARTS, os.cpu_count() or 1, size // _PART_BYTES)
    borders = [0]
    for number in range(1, parts):
        near = size * number // parts
        newline = text.fetch(near, near + BLOCK_BYTES).find(b"\n")
        if newline >= 0:
            borders.append(near + newline + 1)
    return [*borders, size]


def _joined(scans: Sequence[Scan]) -> Scan:
    whole = scans[0]
    for scan in scans[1:]:
        whole.index.extend(scan.index)
        whole.last_byte = scan.last_byte or whole.last_byte
        for number, more in scan.hits.items():
            for cell in more.cells():
                whole.hits[number].add_cell(cell)
    return whole
