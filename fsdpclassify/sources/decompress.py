"""Readers that unpack compressed bytes on the fly, within bounds of ratio, size and memory."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any, Protocol

#: Above `FREE_BYTES` of output, more than `MAX_RATIO` times the packed bytes read is an attack.
MAX_RATIO = 1500
FREE_BYTES = 64 * 1024 * 1024
HEAD_BYTES = 512
MAX_UNPACKED_BYTES = 64 * 1024**3
_MAX_MEMORY = 128 * 1024 * 1024
_PACKED_BLOCK = 64 * 1024


class BombError(OSError):
    """A compressed input unpacks to more than the bounds allow."""


class Reader(Protocol):
    """The one thing that this stage asks of a byte source."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, as few as one call yields; `b""` only at the end."""


class Peekable:
    """Another reader whose first bytes may be looked at before they are read.

    An error met while looking is raised when the bytes before it have been read, not earlier.
    """

    def __init__(self, raw: Reader) -> None:
        self._raw = raw
        self._head = b""
        self._error: BaseException | None = None

    def peek(self, size: int) -> bytes:
        """The next `size` bytes, fewer at the end or before damage."""
        while len(self._head) < size and self._error is None:
            try:
                more = self._raw.read(size - len(self._head))
            except damage_errors() as error:
                self._error = error
                break
            if not more:
                break
            self._head += more
        return self._head[:size]

    def read(self, size: int, /) -> bytes:
        """The next bytes, those looked at first."""
        if self._head:
            data, self._head = self._head[:size], self._head[size:]
            return data
        if self._error is not None:
            raise self._error
        return self._raw.read(size)


class CountingFile(io.RawIOBase):
    """Passes reads through and counts them, so that the ratio of an unpacker can be judged."""

    def __init__(self, raw: Reader) -> None:
        self._raw = raw
        self.count = 0

    def readable(self) -> bool:
        """Always: this is an input."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - buffers have no name before Python 3.12
        """Fill `buffer` as far as one read goes."""
        data = self._raw.read(len(buffer))
        buffer[: len(data)] = data
        self.count += len(data)
        return len(data)


class BoundedReader:
    """Reads from an unpacker and stops it by `BombError` once it passes the bounds."""

    def __init__(self, unpacked: Reader, packed: CountingFile) -> None:
        self._unpacked = unpacked
        self._packed = packed
        self._count = 0

    def read(self, size: int, /) -> bytes:
        """The next bytes; raises `BombError` beyond the bounds, and what the unpacker raises."""
        data = self._unpacked.read(size)
        self._count += len(data)
        if self._count > FREE_BYTES and self._count > MAX_RATIO * self._packed.count:
            raise BombError(f"it unpacks to more than {MAX_RATIO} times its size; the rest was not read")
        if self._count > MAX_UNPACKED_BYTES:
            raise BombError(f"it unpacks to more than {MAX_UNPACKED_BYTES} bytes; the rest was not read")
        return data


class _Stepwise:
    """Reads through the decompressor objects of `lzma`, `bz2` or `isal`, over concatenated streams.

    A call that meets damage, or a checksum that is wrong, gives nothing of what it had unpacked: so they are
    fed a little at a time, and the last of the input byte by byte.
    """

    _FED_BYTES = 2048

    def __init__(self, packed: CountingFile, make: Callable[[], Any]) -> None:
        self._packed = packed
        self._make = make
        self._state: Any = make()
        self._pending = b""
        self._at = 0
        self._begun = False
        self._fault: BaseException | None = None

    def read(self, size: int, /) -> bytes:
        """The next unpacked bytes; what damage raises, or `EOFError` at an end inside a stream, comes after them."""
        parts: list[bytes] = []
        length = 0
        while length < size and self._fault is None:
            try:
                part = self._step(size - length)
            except damage_errors() as error:
                self._fault = error
                break
            if part is None:
                break
            parts.append(part)
            length += len(part)
        if self._fault is not None and not length:
            raise self._fault
        return b"".join(parts)

    def _step(self, size: int) -> bytes | None:
        """At most `size` bytes, maybe none; None at the end."""
        if self._state.eof and not self._next_stream():
            return None
        fed = self._feed() if self._state.needs_input else b""
        if not fed and self._state.needs_input:
            if self._begun:
                raise EOFError("it ends in the middle of the compressed data")
            return None
        self._begun = True
        data: bytes = self._state.decompress(fed, size)
        return data

    def _feed(self) -> bytes:
        """The next packed bytes, `b""` at their end."""
        while len(self._pending) - self._at <= self._FED_BYTES and (more := self._packed.read(_PACKED_BLOCK)):
            self._pending, self._at = self._pending[self._at :] + more, 0
        start = self._at
        self._at += self._FED_BYTES if len(self._pending) - start > self._FED_BYTES else 1
        return self._pending[start : self._at]

    def _next_stream(self) -> bool:
        """Go on with the stream behind the one that ended; padding behind the last one is no stream."""
        rest = (self._state.unused_data + self._pending[self._at :]).lstrip(b"\x00")
        while not rest and (more := self._packed.read(_PACKED_BLOCK)):
            rest = more.lstrip(b"\x00")
        self._pending, self._at = rest, 0
        self._state, self._begun = self._make(), False
        return bool(rest)


class _OneRead:
    """`read1` of a file object under the name `read`: keeps what came before an error."""

    def __init__(self, file: Any) -> None:  # noqa: ANN401 - `Reader` has no `read1`
        self.read: Callable[[int], bytes] = file.read1


def _gzip(packed: CountingFile) -> Reader:
    try:
        from isal import igzip_lib
    except ImportError:
        import gzip

        return _OneRead(gzip.GzipFile(fileobj=io.BufferedReader(packed, _PACKED_BLOCK)))
    # Not the library's file object: of a stream that was cut off it hands out nothing at all.
    make: Callable[..., Any] = igzip_lib.IgzipDecompressor
    return _Stepwise(packed, lambda: make(flag=igzip_lib.DECOMP_GZIP))


class _Zstd:
    """Reads zstandard frames, one after another.

    The library's own stream reader does not tell a frame that was cut off from one that ended, and
    its decompression objects do not bound their output: so they are fed a little at a time.
    """

    _FED_BYTES = 2048  # a block of 4 bytes may unpack to 128 KiB
    _GIVEN_BYTES = 128 * 1024

    def __init__(self, packed: CountingFile, make: Callable[[], Any]) -> None:
        self._packed = packed
        self._make = make
        self._state: Any = make()
        self._pending = memoryview(b"")
        self._begun = False

    def read(self, size: int, /) -> bytes:
        """The next unpacked bytes; `EOFError` if the input ends inside a frame."""
        parts: list[bytes] = []
        length = 0
        while length < min(size, self._GIVEN_BYTES) and self._fill(length):
            part = self._state.decompress(self._pending[: self._FED_BYTES])
            rest = self._state.unused_data if self._state.eof else b""
            self._pending = self._pending[min(len(self._pending), self._FED_BYTES) - len(rest) :]
            self._begun = not self._state.eof
            if self._state.eof:
                self._state = self._make()
            parts.append(part)
            length += len(part)
        return b"".join(parts)

    def _fill(self, length: int) -> bool:
        """Whether there are packed bytes to go on with; the end inside a frame waits for `length` 0."""
        if not self._pending:
            self._pending = memoryview(self._packed.read(_PACKED_BLOCK) or b"")
        if not self._pending and self._begun and not length:
            raise EOFError("it ends in the middle of the compressed data")
        return bool(self._pending)


def _zstd(packed: CountingFile) -> Reader:
    try:
        import zstandard
    except ImportError as error:
        raise OSError("zstandard is not installed: pip install zstandard") from error
    return _Zstd(packed, zstandard.ZstdDecompressor(max_window_size=_MAX_MEMORY).decompressobj)


def _xz(packed: CountingFile) -> Reader:
    import lzma

    return _Stepwise(packed, lambda: lzma.LZMADecompressor(memlimit=_MAX_MEMORY))


def _bz2(packed: CountingFile) -> Reader:
    import bz2

    return _Stepwise(packed, bz2.BZ2Decompressor)


#: Magic bytes at the start of a file -> what unpacks it.
UNPACKERS: dict[bytes, Callable[[CountingFile], Reader]] = {
    b"\x1f\x8b\x08": _gzip,
    b"\x28\xb5\x2f\xfd": _zstd,
    b"\xfd7zXZ\x00": _xz,
    b"BZh": _bz2,
}


def is_tar(head: bytes) -> bool:
    """Whether `head` (at least 262 bytes of a file) begins a tar archive."""
    return head[257:262] == b"ustar"


def unpacker_for(head: bytes) -> Callable[[CountingFile], Reader] | None:
    """The unpacker for content that begins with `head` (at least 6 bytes of it), if it is packed."""
    for magic, unpacker in UNPACKERS.items():
        if head.startswith(magic):
            return unpacker
    return None


def unpack(raw: Peekable) -> Reader | None:
    """A bounded reader of what is packed in `raw`; None if its first bytes are those of no packer."""
    unpacker = unpacker_for(raw.peek(HEAD_BYTES))
    if unpacker is None:
        return None
    packed = CountingFile(raw)
    return BoundedReader(unpacker(packed), packed)


#: Errors of modules that are only imported once something is packed in their way.
_LAZY_ERRORS = (
    ("zlib", "error"),
    ("isal.igzip_lib", "IsalError"),
    ("lzma", "LZMAError"),
    ("zstandard", "ZstdError"),
)


def damage_errors() -> tuple[type[BaseException], ...]:
    """What unpackers raise on damaged data; the part before the damage was already handed out."""
    loaded = [(sys.modules.get(module), name) for module, name in _LAZY_ERRORS]
    return (OSError, EOFError, ValueError, *(getattr(module, name) for module, name in loaded if module))
