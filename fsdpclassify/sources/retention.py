"""Keeps, while a text goes by once, what a plan made afterwards will ask for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from fsdpclassify.sources.engines import CELL_BYTES, Hits
from fsdpclassify.sources.limits import Limits
from fsdpclassify.sources.planning import Region
from fsdpclassify.sources.stores import Chunk, RetainedStore

_FIRST_CLUSTERS = 2
_LAST_CLUSTERS = 3
_MAX_RING_BYTES = 8 * 1024 * 1024
_MAX_EDGES = 16
_FIRST_STRIDE = 256 * 1024


class Retainer:
    """Sees every block after it was scanned; holds a ring of recent blocks and what proved worth it."""

    def __init__(self, detections: Sequence[Hits], others: Sequence[Hits], limits: Limits) -> None:
        self._detections = detections
        self._others = others
        self._limits = limits
        self._ring: deque[Chunk] = deque()
        self._ring_bytes = 0
        self._ring_limit = min(_MAX_RING_BYTES, limits.before_bytes + limits.reach_bytes)
        self._kept: list[Chunk] = []
        self._around: deque[Chunk] = deque(maxlen=2 * limits.around_count + 1)
        self._first: list[list[Chunk]] = []
        self._last: deque[list[Chunk]] = deque(maxlen=_LAST_CLUSTERS)
        self._cluster: list[Chunk] = []
        self._last_hit = -limits.before_bytes - 1
        self._cluster_end = 0
        self._samples = _Samples(limits)

    def add(self, block: bytes, offset: int, newlines: int) -> None:
        """The next block, at `offset`, with `newlines` newlines before it."""
        chunk = Chunk(offset=offset, newlines=newlines, data=block)
        if offset < self._limits.head_bytes:
            self._kept.append(chunk.part(0, self._limits.head_bytes))
        self._samples.add(chunk)
        self._push(chunk)
        self._keep_detections(chunk)
        for hits in self._others:
            for cell in _edges(hits.take_fresh()):
                self._keep_around(cell)

    def store(self, size: int) -> RetainedStore:
        """All that was kept of the text, which had `size` bytes."""
        clusters = (chunk for cluster in (*self._first, *self._last) for chunk in cluster)
        return RetainedStore([*self._kept, *self._around, *clusters, *self._samples.chunks, *self._ring], size)

    def samples(self) -> list[Region]:
        """Where the retained samples lie."""
        return [Region(start=chunk.offset, end=chunk.end, sampled=True) for chunk in self._samples.chunks]

    def _push(self, chunk: Chunk) -> None:
        self._ring.append(chunk)
        self._ring_bytes += len(chunk.data)
        while self._ring_bytes - len(self._ring[0].data) >= self._ring_limit:
            self._ring_bytes -= len(self._ring.popleft().data)

    def _keep_detections(self, chunk: Chunk) -> None:
        fresh = {cell for hits in self._detections for cell in hits.take_fresh()}
        for cell in _edges(sorted(fresh)):
            self._on_detection(cell)
        if chunk.offset < self._cluster_end and self._cluster and self._cluster[-1] is not chunk:
            self._cluster.append(chunk)

    def _on_detection(self, cell: int) -> None:
        hit = cell * CELL_BYTES
        if hit - self._last_hit > self._limits.before_bytes:
            self._cluster = list(self._ring)
            (self._first if len(self._first) < _FIRST_CLUSTERS else self._last).append(self._cluster)
        self._last_hit = hit
        if self._cluster and hit - self._cluster[0].offset < 2 * self._ring_limit:
            self._cluster_end = hit + self._limits.after_bytes
        else:
            self._keep_around(cell)

    def _keep_around(self, cell: int) -> None:
        """The cell and its neighbours, as far as they are here already."""
        start = cell * CELL_BYTES - self._limits.around_bytes
        end = (cell + 1) * CELL_BYTES + self._limits.around_bytes
        for chunk in self._recent(start):
            if chunk.offset < end and chunk.end > start:
                self._around.append(chunk.part(start, end))

    def _recent(self, start: int) -> Iterator[Chunk]:
        for chunk in reversed(self._ring):
            yield chunk
            if chunk.offset <= start:
                return


def _edges(cells: Sequence[int]) -> Sequence[int]:
    """First and last cell of each run of neighbours; of many the outermost, for a flood says little."""
    edges = [
        cell
        for place, cell in enumerate(cells)
        if not (0 < place < len(cells) - 1 and cells[place - 1] == cell - 1 and cells[place + 1] == cell + 1)
    ]
    half = _MAX_EDGES // 2
    return edges if len(edges) <= _MAX_EDGES else [*edges[:half], *edges[-half:]]


class _Samples:
    """Evenly spaced parts of a text of unknown length: the stride doubles as the text goes on."""

    def __init__(self, limits: Limits) -> None:
        self._bytes = limits.sample_bytes
        self._most = 2 * limits.sample_count
        self._stride = _FIRST_STRIDE
        self._next = 0
        self.chunks: list[Chunk] = []

    def add(self, chunk: Chunk) -> None:
        """See the next block; a sample begins in the block that reaches its place."""
        if chunk.end <= self._next or not self._most:
            return
        start = max(self._next, chunk.offset)
        if chunk.end - start < min(self._bytes, len(chunk.data)):
            return  # the next block has room for it
        self.chunks.append(chunk.part(start, start + self._bytes))
        self._next += self._stride
        if len(self.chunks) > self._most:
            del self.chunks[1::2]
            self._stride *= 2
            self._next = self.chunks[-1].offset // self._stride * self._stride + self._stride
