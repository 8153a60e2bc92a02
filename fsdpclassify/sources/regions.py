"""Reads planned regions of a scanned text to numbered lines, whole lines wherever that is possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from fsdpclassify.records import RawLine
from fsdpclassify.sources.interface import Gap
from fsdpclassify.sources.lines import LineMaker
from fsdpclassify.sources.planning import Region
from fsdpclassify.sources.stores import Store
from fsdpclassify.sources.thinning import Thinner, Zone

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
    thinner: Thinner,
) -> tuple[list[RawLine], list[Gap]]:
    """The lines of `regions`, which ascend, and the gaps between them among `total_lines` lines.

    Of a region whose lines are short on average, the last lines are kept; `thinner` leaves out more.
    """
    lines: list[RawLine] = []
    gaps: list[Gap] = []
    last = 0
    for piece in _pieces(store, regions):
        numbers, data = _kept(piece, thinner)
        for before, number in pairwise(chain((last,), numbers)):
            if number > before + 1:
                gaps.append(Gap(source=source, first=before + 1, last=number - 1))
        if numbers:
            lines += maker.numbered(data, numbers)
            last = numbers[-1]
    if last < total_lines:
        gaps.append(Gap(source=source, first=last + 1, last=total_lines))
    return lines, gaps


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """Whole lines at offset `start`, the first of them number `first`."""

    start: int
    first: int
    data: bytes
    sampled: bool


def _kept(piece: _Piece, thinner: Thinner) -> tuple[Sequence[int], bytes]:
    """The numbers of the lines of `piece` to make, and their bytes without the last newline."""
    data = piece.data[:-1] if piece.data.endswith(b"\n") else piece.data
    zone = None if piece.sampled else thinner.zone_in(piece.start, piece.start + len(data))
    surplus = data.count(b"\n") + 1 - _FREE_LINES - len(data) // thinner.limits.bytes_per_line
    if surplus <= 0 and zone is None and not piece.sampled:
        return range(piece.first, piece.first + data.count(b"\n") + 1), data
    lines = data.split(b"\n")
    kept = _indexes(lines, piece, zone, thinner)
    if surplus > 0:
        kept = [index for index in kept if index >= surplus]
    return [piece.first + index for index in kept], b"\n".join([lines[index] for index in kept])


def _indexes(lines: Sequence[bytes], piece: _Piece, zone: Zone | None, thinner: Thinner) -> list[int]:
    if piece.sampled:
        return thinner.sample(lines)
    if zone is None:
        return list(range(len(lines)))
    low = piece.data.count(b"\n", 0, zone[0] - piece.start)
    high = piece.data.count(b"\n", 0, zone[1] - piece.start)
    within = [low + index for index in thinner.before(lines[low:high])]
    return [*range(low), *within, *range(high, len(lines))]


def _pieces(store: Store, regions: Sequence[Region]) -> Iterator[_Piece]:
    """The lines of each region that can be fetched."""
    done = 0
    for region in regions:
        for start, end in store.available(region.start, region.end):
            start, data = _aligned(store, max(start, done), end, region.must, start <= done and done > 0)
            if data:
                done = start + len(data)
                first = 1 + store.newlines_before(start)
                yield _Piece(start=start, first=first, data=data, sampled=region.sampled)


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
