"""Reads one large input: scans all of it, then makes lines of the regions that matter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fsdpclassify.records import InputStatus
from fsdpclassify.sources.blocks import Blocks, reason
from fsdpclassify.sources.engines import CELL_BYTES, engine_for
from fsdpclassify.sources.interface import (
    Anchor,
    MemberOrigin,
    PipeOrigin,
    RefusedOrigin,
    Source,
    StreamOrigin,
)
from fsdpclassify.sources.judging import Refusal, failed_row, refused_row, text_row
from fsdpclassify.sources.limits import Limits
from fsdpclassify.sources.lines import LineMaker
from fsdpclassify.sources.newlines import fast_counter
from fsdpclassify.sources.opening import Content, opened
from fsdpclassify.sources.planning import Cluster, Region, clusters_of, even_samples, merged, plan
from fsdpclassify.sources.reach import reach_back
from fsdpclassify.sources.regions import read_regions
from fsdpclassify.sources.result import Result
from fsdpclassify.sources.scanning import Scan, Scanner, ahead
from fsdpclassify.sources.stores import SeekableStore, Store
from fsdpclassify.sources.thinning import Thinner


class LargeReader:
    """Reads the large inputs of one call; `limits` are those for one of them."""

    def __init__(self, anchors: Sequence[Anchor], limits: Limits) -> None:
        self._limits = limits
        self._scanner = Scanner(anchors=anchors, engine=engine_for(anchors), count=fast_counter(), limits=limits)

    def first_pass(
        self,
        index: int,
        source: Source,
        sample: bytes,
        content: Content,
        held: Iterator[bytes],
        blocks: Blocks,
    ) -> Result:
        """Scan the text whose blocks `held` gives, the last of them out of `blocks`, and make its lines.

        The lines of a text that can be read again and shows no detection wait for `second_pass`:
        where they matter is known when the others were scanned.
        """
        scan = self._scan(source, content, held, blocks)
        row = text_row(source.path, sample, scan.index.size, scan.lines, blocks.damage)
        detections = scan.detections()
        place = detections[-1] * CELL_BYTES / scan.index.size if detections else None
        result = Result(row=row, scan=scan, place=place)
        if scan.retainer is not None:
            self._read_lines(index, source, result, scan.retainer.store(scan.index.size), None)
        elif content.seekable is not None and detections:
            self._read_lines(index, source, result, SeekableStore(content.seekable, scan.index), None)
        return result

    def second_pass(self, index: int, source: Source, result: Result, proxy: float | None) -> None:
        """Make the lines of a text that shows no detection; `proxy` is where others show theirs."""
        if result.scan is None or isinstance(source.origin, MemberOrigin | RefusedOrigin):
            return
        try:
            with opened(source.origin) as content:
                if content.seekable is not None:
                    store = SeekableStore(content.seekable, result.scan.index)
                    self._read_lines(index, source, result, store, proxy)
        except OSError as error:
            result.row = failed_row(source.path, InputStatus.UNREADABLE, reason(error))

    def _scan(self, source: Source, content: Content, held: Iterator[bytes], blocks: Blocks) -> Scan:
        text = content.seekable
        if text is None:
            # Not a stream of somebody else's: a read that waits for it could not be broken off.
            own = not isinstance(source.origin, StreamOrigin | PipeOrigin)
            return self._scanner.scan(ahead(held) if own else held, retain=True)
        size = text.size if blocks.max_bytes is None else min(text.size, blocks.max_bytes)
        try:
            scan = self._scanner.scan_seekable(text, size)
        except OSError:
            return self._scanner.scan(held, retain=False)  # it is read up to where that is possible
        if size < text.size:
            blocks.damage = f"only the first {size} bytes were read"
        return scan

    def _read_lines(self, index: int, source: Source, result: Result, store: Store, proxy: float | None) -> None:
        if (scan := result.scan) is None:
            return
        result.scan = None
        limits = self._limits
        clusters = clusters_of(scan.detections(), limits.before_bytes, limits.clusters)
        samples = even_samples(store.size, limits) if scan.retainer is None else scan.retainer.samples()
        at = int(proxy * store.size) if proxy is not None and not clusters else None
        regions = plan(store.size, clusters, scan.others(), limits, samples, at)
        if limits.reach_bytes:
            regions = merged([*regions, *_reach(store, clusters, limits)], store.size)
        maker = LineMaker(index, source.hint_rank, source.hint_node)
        zones = [(cluster.start - limits.before_bytes, cluster.start) for cluster in clusters]
        thinner = Thinner(limits=limits, zones=zones)
        result.lines, result.gaps = read_regions(store, regions, maker, index, scan.lines, thinner)
        if scan.lines == 1 and not any(line.text for line in result.lines):
            why = Refusal(kind=None, status=InputStatus.BINARY, message="it holds only NUL bytes")
            result.row, result.lines = refused_row(source.path, why, store.size), []


def _reach(store: Store, clusters: Sequence[Cluster], limits: Limits) -> Iterator[Region]:
    """Lines further back, before each detection, or before the end where there is none."""
    starts = [cluster.start for cluster in clusters] or [store.size]
    for start in starts:
        low = max(0, start - limits.before_bytes)
        yield from reach_back(store, low, min(store.size, start + limits.after_bytes), limits)
