"""Reads planned regions of a scanned text to numbered lines, whole lines wherever that is possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fsdpclassify.records import RawLine
from fsdpclassify.sources.interface import Gap
from fsdpclassify.sources.lines import LineMaker
from fsdpclassify.sources.planning import Region
from fsdpclassify.sources.stores import Store

#: How far beyond a region its first and last line are followed.
_LINE_BYTES = 64 * 1024
#: So many lines of a region are kept however short they are.
_FREE_LINES = 1000


def read_regions(
    store: Store,
    regions: Sequence[Region],
    maker: LineMaker,
    source: int,
    total_lines: int,
    bytes_per_line: int,
) -> tuple[list[RawLine], list[Gap]]:
    """The lines of `regions`, which ascend, and the gaps between them among `total_lines` lines.

    Of a region whose lines are shorter than `bytes_per_line` on average, the last lines are kept.
    """
    lines: list[RawLine] = []
    gaps: list[Gap] = []
    last = 0
    for first, data in _pieces(store, regions):
        first, data = _thinned(first, data, bytes_per_line)
        if first > last + 1:
            gaps.append(Gap(source=source, first=last + 1, last=first - 1))
        lines += maker.lines(data, first)
        last = max(last, first + data.count(b"\n") - data.endswith(b"\n"))
    if last < total_lines:
        gaps.append(Gap(source=source, first=last + 1, last=total_lines))
    return lines, gaps


def _thinned(first: int, data: bytes, bytes_per_line: int) -> tuple[int, bytes]:
    surplus = data.count(b"\n") - _FREE_LINES - len(data) // bytes_per_line
    if surplus <= 0:
        return first, data
    parts = data.split(b"\n", surplus)
    return first + surplus, parts[-1]


def _pieces(store: Store, regions: Sequence[Region]) -> Iterator[tuple[int, bytes]]:
    """Number of the first line, and the bytes of the lines, of each region that can be fetched."""
    done = 0
    for region in regions:
        for start, end in store.available(region.start, region.end):
            start, data = _aligned(store, max(start, done), end, region.must, start <= done and done > 0)
            if data:
                done = start + len(data)
                yield 1 + store.newlines_before(start), data


def _aligned(store: Store, start: int, end: int, must: int | None, at_line: bool) -> tuple[int, bytes]:
    """The region cut or stretched to whole lines: its new start, and its bytes."""
    if start >= end:
        return start, b""
    data = store.fetch(start, end)
    if not at_line and start > 0:
        start, data = _from_line_start(store, start, data, must)
    if data and not data.endswith(b"\n"):
        data = _to_line_end(store, start, data, must)
    return start, data


def _from_line_start(store: Store, start: int, data: bytes, must: int | None) -> tuple[int, bytes]:
    if store.fetch(start - 1, start) == b"\n":
        return start, data
    cut = data.find(b"\n") + 1
    if cut and (must is None or start + cut <= must):
        return start + cut, data[cut:]
    if must is None:
        return start, b""  # all of it lies inside one long line, which says nothing by a fragment
    before = store.fetch(max(0, start - _LINE_BYTES), start)
    line_start = before.rfind(b"\n") + 1
    if not line_start and start > len(before):
        line_start = before.rfind(b"\r") + 1 or len(before)
    return start - len(before) + line_start, before[line_start:] + data


def _to_line_end(store: Store, start: int, data: bytes, must: int | None) -> bytes:
    end = start + len(data)
    if end >= store.size:
        return data
    after = store.fetch(end, min(store.size, end + _LINE_BYTES))
    if cut := after.find(b"\n") + 1:
        return data + after[:cut]
    if after and end + len(after) >= store.size:
        return data + after
    # The end of the line is not here: keep whole lines, and a part of one only if it must be kept.
    whole = data.rfind(b"\n") + 1
    return data if must is not None and must >= start + whole else data[:whole]
