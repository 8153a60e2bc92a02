"""Opens an origin as a stream of UTF-8 text bytes, whatever it is packed or encoded in."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Protocol

from fsdpclassify.sources.decompress import HEAD_BYTES, Peekable, Reader, unpack
from fsdpclassify.sources.interface import FileOrigin, MemoryOrigin, PipeOrigin, StreamOrigin

_MARK_BYTES = 4
_PLAIN = frozenset(b"\t\n\r" + bytes(range(32, 127)))
_ENCODINGS = (  # the longer marks first: UTF-32 begins like UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Seekable(Protocol):
    """Text that can be read again in any order."""

    @property
    def size(self) -> int:
        """Bytes in all."""

    def fetch(self, start: int, end: int) -> bytes:
        """Bytes `start` to `end`, fewer past the end or if the text was cut meanwhile."""

    def blocks(self, start: int, end: int, size: int) -> Iterator[bytes | memoryview]:
        """The same in blocks of `size` bytes at most, each good until the next is asked for."""


@dataclass(frozen=True, slots=True)
class FileText:
    """Text on disk that begins `skip` bytes into the file."""

    descriptor: int
    skip: int
    size: int

    def fetch(self, start: int, end: int) -> bytes:
        """See `Seekable`."""
        length = min(end, self.size) - start
        return os.pread(self.descriptor, length, self.skip + start) if length > 0 else b""

    def blocks(self, start: int, end: int, size: int) -> Iterator[bytes | memoryview]:
        """See `Seekable`; all blocks share one buffer, for new memory costs more than reading into it."""
        buffer = memoryview(bytearray(size))
        while (wanted := min(size, min(end, self.size) - start)) > 0:
            length = os.preadv(self.descriptor, [buffer[:wanted]], self.skip + start)
            if not length:
                return
            yield buffer[:length]
            start += length


@dataclass(frozen=True, slots=True)
class MemoryText:
    """Text in memory."""

    data: bytes
    size: int

    def fetch(self, start: int, end: int) -> bytes:
        """See `Seekable`."""
        return self.data[start:end]

    def blocks(self, start: int, end: int, size: int) -> Iterator[bytes | memoryview]:
        """See `Seekable`."""
        return (self.data[at : min(at + size, end)] for at in range(start, min(end, self.size), size))


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """An opened text: `reader` gives it once from the front, `seekable` (if any) again."""

    reader: Reader
    seekable: Seekable | None = None


class Bounded:
    """At most `size` bytes of another reader."""

    def __init__(self, raw: Reader, size: int) -> None:
        self._raw = raw
        self._left = size

    def read(self, size: int, /) -> bytes:
        """The next bytes; `b""` at the end of the other reader or after `size` bytes in all."""
        data = self._raw.read(min(size, self._left)) if self._left else b""
        self._left -= len(data)
        return data


class Recoded:
    """Another encoding read as UTF-8; what cannot be decoded becomes U+FFFD."""

    def __init__(self, raw: Reader, encoding: str) -> None:
        self._raw = raw
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._rest = b""
        self._done = False

    def read(self, size: int, /) -> bytes:
        """The next bytes of UTF-8 text."""
        while not self._rest and not self._done:
            data = self._raw.read(size)
            self._done = not data
            self._rest = self._decoder.decode(data, final=self._done).encode("utf-8", "replace")
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


class Descriptor:
    """Reads a file unbuffered."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, size: int, /) -> bytes:
        """The next bytes of the file."""
        return os.read(self._descriptor, size)


@contextmanager
def opened(origin: FileOrigin | StreamOrigin | PipeOrigin | MemoryOrigin) -> Iterator[Content]:
    """The text of `origin`; raises `OSError` if it cannot be opened, or what its unpacker raises."""
    if isinstance(origin, MemoryOrigin):
        yield _in_memory(origin)
    elif isinstance(origin, StreamOrigin):
        yield text_of(origin.stream)
    elif isinstance(origin, PipeOrigin):
        with open(origin.path, "rb", buffering=0) as stream:
            yield text_of(stream)
    else:
        with regular_file(origin.path) as descriptor:
            yield _on_disk(descriptor, origin)


def head_of(path: str) -> bytes:
    """The first bytes of the regular file at `path`, enough to recognise what it is packed in."""
    with regular_file(path) as descriptor:
        return os.read(descriptor, HEAD_BYTES)


@contextmanager
def regular_file(path: str) -> Iterator[int]:
    """A descriptor of the regular file at `path`; never waits on a FIFO that took its place."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is no longer a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def text_of(raw: Reader) -> Content:
    """The text in `raw`, read once: unpacked if its first bytes say so, recoded if a mark does."""
    return Content(reader=_recognised(raw)[0])


def _recognised(raw: Reader) -> tuple[Reader, int | None]:
    """A reader of the text in `raw`, and where in `raw` the text lies as it is (None: nowhere)."""
    start = Peekable(raw)
    unpacked = unpack(start)
    if unpacked is not None:
        return _decoded(Peekable(unpacked))[0], None
    return _decoded(start)


def _decoded(raw: Peekable) -> tuple[Reader, int | None]:
    head = raw.peek(_MARK_BYTES)
    if head.startswith(codecs.BOM_UTF8):
        return raw, len(raw.read(len(codecs.BOM_UTF8)))
    for mark, encoding in _ENCODINGS:
        if head.startswith(mark):
            is_wrong = len(mark) == 2 and _is_single_bytes(raw.peek(HEAD_BYTES)[2:])
            raw.read(len(mark))
            return (raw, len(mark)) if is_wrong else (Recoded(raw, encoding), None)
    return raw, 0


def _is_single_bytes(sample: bytes) -> bool:
    """Whether `sample` is text of one byte a character, although a UTF-16 mark stands before it.

    UTF-16 of any log holds NUL bytes, those of its blanks and newlines; other text holds none.
    """
    plain = sum(byte in _PLAIN for byte in sample)
    return b"\x00" not in sample and plain * 4 > len(sample) * 3


def _in_memory(origin: MemoryOrigin) -> Content:
    raw = BytesIO(origin.data)
    reader, skip = _recognised(raw) if origin.recognise else _decoded(Peekable(raw))
    if skip is None:
        return Content(reader=reader)
    text = origin.data[skip:]
    return Content(reader=reader, seekable=MemoryText(text, len(text)))


def _on_disk(descriptor: int, origin: FileOrigin) -> Content:
    whole = os.fstat(descriptor).st_size
    os.lseek(descriptor, origin.offset, os.SEEK_SET)
    if not whole:  # files that the kernel makes up on reading say that they are empty
        return text_of(Descriptor(descriptor))
    size = min(max(0, whole - origin.offset), whole if origin.size is None else origin.size)
    reader, skip = _recognised(Bounded(Descriptor(descriptor), size))
    if skip is None:
        return Content(reader=reader)
    return Content(reader=reader, seekable=FileText(descriptor, origin.offset + skip, size - skip))
