"""Reads sources: small ones line by line, large ones in one pass and then only where it matters."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from fsdpclassify.records import InputKind, InputStatus
from fsdpclassify.sources.blocks import Blocks, reason
from fsdpclassify.sources.decompress import damage_errors
from fsdpclassify.sources.interface import (
    Anchor,
    FileOrigin,
    MemberOrigin,
    MemoryOrigin,
    PipeOrigin,
    Reading,
    RefusedOrigin,
    Source,
    StreamOrigin,
)
from fsdpclassify.sources.judging import (
    MAX_DUMP_BYTES,
    DumpReader,
    dump_row,
    failed_row,
    note_row,
    refusal,
    refused_row,
    text_row,
)
from fsdpclassify.sources.kinds import SAMPLE_BYTES
from fsdpclassify.sources.limits import DEFAULT_LIMITS, Limits
from fsdpclassify.sources.lines import LineMaker
from fsdpclassify.sources.opening import Content, opened, text_of
from fsdpclassify.sources.result import Result

if TYPE_CHECKING:
    from fsdpclassify.sources.archives import ArchiveWalk
    from fsdpclassify.sources.large import LargeReader

_MAX_THREADS = 4


def read(
    sources: Sequence[Source],
    anchors: Sequence[Anchor] = (),
    *,
    limits: Limits = DEFAULT_LIMITS,
    dumps: DumpReader | None = None,
) -> Reading:
    """Rows, lines and gaps of `sources`, in their order; never raises for the sake of an input.

    Inputs of up to `limits.whole_bytes` in all give every line. Of larger ones the whole text is
    scanned for `anchors`, and the head, the tail, what lies around anchors, and samples give lines.
    Flight-recorder dumps give no lines; they are handed to `dumps`. Nor do notes, scripts and configurations
    that lie beside other inputs; one that is the only input is read as a log.
    """
    return _Reader(sources, anchors, limits, dumps).read()


class _Reader:
    """One call of `read`."""

    def __init__(
        self, sources: Sequence[Source], anchors: Sequence[Anchor], limits: Limits, dumps: DumpReader | None
    ) -> None:
        self._sources = sources
        self._dumps = dumps
        self._anchors = anchors
        self._archives = ExitStack()
        sizes = [size for source in sources if (size := _known_size(source)) is not None]
        self._left = 0 if sum(sizes) > limits.whole_bytes else limits.whole_bytes
        self._lines_left = limits.whole_lines
        # A line costs the same however large its input is: of many inputs only the tiny ones are read whole.
        self._share = min(limits.share(len(sources)), limits.whole_bytes // max(1, len(sources)))
        self._limits = limits.for_one_of(len(sources))

    def read(self) -> Reading:
        """See the function `read`."""
        with self._archives:
            results = self._first_passes()
        places = sorted(place for result in results if (place := result.place) is not None)
        proxy = places[len(places) // 2] if places else None
        for index, result in enumerate(results):
            if result.scan is not None:
                self._large.second_pass(index, self._sources[index], result, proxy)
        return Reading(
            inputs=tuple(result.row for result in results),
            lines=list(chain.from_iterable(result.lines for result in results)),
            gaps=tuple(chain.from_iterable(result.gaps for result in results)),
        )

    def _first_passes(self) -> list[Result]:
        threads = min(_MAX_THREADS, os.cpu_count() or 1)
        plain = all(isinstance(source.origin, FileOrigin | RefusedOrigin) for source in self._sources)
        if self._left or not plain or threads == 1 or len(self._sources) == 1:
            return [self._first_pass(index, source) for index, source in enumerate(self._sources)]
        from concurrent.futures import ThreadPoolExecutor

        _ = self._large  # made once, before the threads ask for it
        with ThreadPoolExecutor(threads) as pool:  # reading, scanning and counting let others run
            return list(pool.map(self._first_pass, range(len(self._sources)), self._sources))

    def _first_pass(self, index: int, source: Source) -> Result:
        if isinstance(source.origin, RefusedOrigin):
            return Result(row=failed_row(source.path, source.origin.status, source.origin.message))
        try:
            with self._opened(source) as content:
                return self._read_one(index, source, content)
        except damage_errors() as error:
            return Result(row=failed_row(source.path, InputStatus.UNREADABLE, reason(error)))

    @contextmanager
    def _opened(self, source: Source) -> Iterator[Content]:
        if isinstance(source.origin, MemberOrigin):
            yield text_of(self._walk.reader(source.origin))
        elif not isinstance(source.origin, RefusedOrigin):
            with opened(source.origin) as content:
                yield content

    def _read_one(self, index: int, source: Source, content: Content) -> Result:
        text = content.seekable
        allowed = max(self._left, self._share if text is not None and text.size <= self._share else 0)
        blocks = Blocks(reader=content.reader, max_bytes=source.max_bytes)
        is_large = text is not None and min(text.size, source.max_bytes or text.size) > allowed
        # A text that is certainly scanned from its start again is only looked at.
        held = [text.fetch(0, SAMPLE_BYTES)] if text is not None and is_large else _take(blocks, SAMPLE_BYTES)
        sample = b"".join(held)[:SAMPLE_BYTES]
        if (why := refusal(sample)) is not None:
            if why.kind is InputKind.FLIGHT_RECORDER and self._dumps is not None:
                return _dump(index, source, [] if is_large else held, blocks, self._dumps)
            return Result(row=refused_row(source.path, why, blocks.size if text is None else text.size))
        if (what := self._no_log(source, sample)) is not None:
            return Result(row=note_row(source.path, what, blocks.size if text is None else text.size))
        if is_large:
            return self._large.first_pass(index, source, sample, content, blocks, blocks)
        held += _take(blocks, allowed + 1 - blocks.size)
        count = sum(block.count(b"\n") for block in held)
        if blocks.size <= allowed and blocks.ended and self._takes(blocks.size, count):
            return _whole(index, source, sample, b"".join(held), blocks.damage)
        self._left = 0
        return self._large.first_pass(index, source, sample, content, chain(held, blocks), blocks)

    def _no_log(self, source: Source, sample: bytes) -> str | None:
        """What a file beside other inputs is instead of a log, if it is none."""
        if len(self._sources) == 1 or not _is_file(source):
            return None
        from fsdpclassify.sources.notes import no_log  # a single log need not wait for its patterns

        return no_log(source.path, sample)

    def _takes(self, size: int, lines: int) -> bool:
        """Whether so many lines may all be kept; small inputs share one allowance, in their order."""
        if not self._left:  # among large ones each has its own, for they are read in any order
            return lines * self._limits.bytes_per_line <= self._share
        if lines > self._lines_left:
            return False
        self._lines_left -= lines
        self._left = max(0, self._left - size)
        return True

    @cached_property
    def _walk(self) -> ArchiveWalk:
        from fsdpclassify.sources.archives import ArchiveWalk  # most inputs need none of what it imports

        return self._archives.enter_context(ArchiveWalk())

    @cached_property
    def _large(self) -> LargeReader:
        from fsdpclassify.sources.large import LargeReader  # a pasted log must not wait for all of this

        return LargeReader(self._anchors, self._limits)


def _dump(index: int, source: Source, held: list[bytes], blocks: Blocks, dumps: DumpReader) -> Result:
    """The row of a dump; its bytes are `held` and what is left of `blocks`."""
    data = b"".join([*held, *_take(blocks, MAX_DUMP_BYTES + 1 - blocks.size)])
    if len(data) > MAX_DUMP_BYTES:
        message = f"it is larger than {MAX_DUMP_BYTES} bytes, which no flight-recorder dump is"
        return Result(row=dump_row(source.path, len(data), InputStatus.UNREADABLE, message, None))
    status, message_or_none = dumps.take(index, source.path, source.hint_rank, data)
    return Result(row=dump_row(source.path, len(data), status, message_or_none, blocks.damage))


def _whole(index: int, source: Source, sample: bytes, data: bytes, damage: str | None) -> Result:
    count = data.count(b"\n") + (data[-1:] not in (b"", b"\n"))
    row = text_row(source.path, sample, len(data), count, damage)
    if row.status is InputStatus.BINARY:
        return Result(row=row)
    return Result(row=row, lines=LineMaker(index, source.hint_rank, source.hint_node).lines(data, 1))


def _is_file(source: Source) -> bool:
    """Whether the input lies somewhere under a name, and is no text or stream that a caller handed over."""
    if isinstance(source.origin, MemoryOrigin):
        return source.origin.recognise
    return not isinstance(source.origin, StreamOrigin | PipeOrigin)


def _known_size(source: Source) -> int | None:
    origin = source.origin
    if isinstance(origin, MemoryOrigin):
        return len(origin.data)
    if isinstance(origin, FileOrigin):
        try:
            return os.stat(origin.path).st_size if origin.size is None else origin.size
        except OSError:
            return None
    return None


def _take(blocks: Blocks, size: int) -> list[bytes]:
    """Blocks of at least `size` bytes in all, fewer at the end."""
    taken: list[bytes] = []
    while size > 0 and (block := next(blocks, None)) is not None:
        taken.append(block)
        size -= len(block)
    return taken
