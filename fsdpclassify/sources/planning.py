"""Decides which regions of a large text are read to lines; works on offsets alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fsdpclassify.sources.engines import CELL_BYTES
from fsdpclassify.sources.limits import Limits

_JOIN_BYTES = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Bytes `start` to `end`. The line that holds offset `must` belongs to it as a whole.

    `sampled` regions are there for what can be found anywhere in the text.
    """

    start: int
    end: int
    must: int | None = None
    sampled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Cells of detection anchors that lie close together."""

    cells: tuple[int, ...]

    @property
    def start(self) -> int:
        """Offset at which the first cell begins."""
        return self.cells[0] * CELL_BYTES


def clusters_of(cells: Iterable[int], apart_bytes: int, most: int) -> list[Cluster]:
    """Clusters of `cells` that lie more than `apart_bytes` apart; of too many, the first and the last.

    The last incident of a text decides its verdict, so more of the last ones are kept.
    """
    groups: list[list[int]] = []
    for cell in sorted(set(cells)):
        if groups and (cell - groups[-1][-1]) * CELL_BYTES <= apart_bytes:
            groups[-1].append(cell)
        else:
            groups.append([cell])
    if len(groups) > most:
        groups = groups[: most // 3] + groups[len(groups) - (most - most // 3) :]
    return [Cluster(cells=tuple(group)) for group in groups]


def plan(
    size: int,
    clusters: Sequence[Cluster],
    others: Sequence[Sequence[int]],
    limits: Limits,
    samples: Sequence[Region],
    proxy: int | None = None,
) -> list[Region]:
    """The regions of a text of `size` bytes to read, ascending and apart from each other.

    `samples` are regions spread over the text, `others` the cells of each further anchor, `proxy`
    an offset that stands for the detection where this text shows none itself.
    """
    regions = [
        Region(start=0, end=limits.head_bytes, must=0),
        Region(start=size - limits.tail_bytes, end=size),
        *samples,
    ]
    if proxy is not None:
        regions.append(Region(start=proxy - limits.before_bytes, end=proxy + limits.before_bytes))
    scattered: list[int] = []
    for cluster in clusters:
        regions += _around_cluster(cluster, limits)
        scattered += cluster.cells
    for cells in (*others, scattered):
        regions += _around_cells(cells, limits, max(2, limits.around_count // max(1, len(others) + 1)))
    return merged(regions, size)


def merged(regions: Iterable[Region], size: int) -> list[Region]:
    """`regions` cut to the text, in order, with those joined that touch."""
    joined: list[Region] = []
    for region in sorted(regions, key=lambda each: each.start):
        start, end = max(0, region.start), min(size, region.end)
        if start >= end:
            continue
        if joined and start <= joined[-1].end + _JOIN_BYTES:
            last = joined[-1]
            musts = [must for must in (last.must, region.must) if must is not None]
            joined[-1] = Region(
                start=last.start,
                end=max(last.end, end),
                must=min(musts, default=None),
                sampled=last.sampled and region.sampled,
            )
        else:
            joined.append(Region(start=start, end=end, must=region.must, sampled=region.sampled))
    return joined


def even_samples(size: int, limits: Limits) -> list[Region]:
    """Regions spread evenly over a text of `size` bytes, so that step times can be sampled."""
    count = limits.sample_count
    starts = (size * number // max(1, count) for number in range(count))
    return [Region(start=start, end=start + limits.sample_bytes, sampled=True) for start in starts]


def _around_cluster(cluster: Cluster, limits: Limits) -> list[Region]:
    first, last = cluster.start, (cluster.cells[-1] + 1) * CELL_BYTES
    return [
        Region(start=first - limits.before_bytes, end=first + limits.after_bytes, must=first),
        Region(start=last - limits.after_bytes, end=last + limits.after_bytes, must=last - CELL_BYTES),
    ]


def _around_cells(cells: Sequence[int], limits: Limits, most: int) -> list[Region]:
    """A few lines around each cell; of too many cells the first third and the last ones."""
    if len(cells) > most:
        cells = [*cells[: most // 3], *cells[len(cells) - (most - most // 3) :]]
    return [
        Region(
            start=cell * CELL_BYTES - limits.around_bytes,
            end=(cell + 1) * CELL_BYTES + limits.around_bytes,
            must=cell * CELL_BYTES,
        )
        for cell in cells
    ]
