"""Members of tar archives, plain or compressed; nothing is ever extracted to disk."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Literal, cast

from fsdpclassify.records import InputStatus
from fsdpclassify.sources.decompress import (
    HEAD_BYTES,
    BombError,
    Peekable,
    Reader,
    damage_errors,
    is_tar,
    unpack,
)
from fsdpclassify.sources.interface import FileOrigin, MemberOrigin, MemoryOrigin, Origin, RefusedOrigin
from fsdpclassify.sources.opening import Descriptor, regular_file

_BLOCK = 64 * 1024
_MAX_HEADER_BYTES = 1024 * 1024
MAX_MEMBERS = 65_536
#: A compressed archive that unpacks to no more than this is unpacked once, into memory.
SMALL_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One file of an archive: its name there (None: the archive itself) and where its bytes are."""

    name: str | None
    origin: Origin


class _CappedInfo(tarfile.TarInfo):
    """A header whose extensions (long names, attributes) may not ask for much memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> tarfile.TarInfo:  # type: ignore[override]
        info = super().frombuf(buf, encoding, errors)
        if info.size > _MAX_HEADER_BYTES and info.type in b"xgLKX":
            raise tarfile.ReadError("a header in it is too large")
        return info


def members(path: str) -> list[Member] | None:
    """The regular files in the archive at `path`, in its order; None if it is no archive.

    Damage ends the list with one refused member without a name. `OSError` if `path` is unreadable.
    """
    with regular_file(path) as descriptor:
        raw = Peekable(Descriptor(descriptor))
        if is_tar(raw.peek(HEAD_BYTES)):
            return _plain_members(path)
        try:
            unpacked = unpack(raw)
        except OSError:
            return None  # it is read, and reported, as the file that it is
        if unpacked is None or not is_tar(Peekable(unpacked).peek(HEAD_BYTES)):
            return None
    return _packed_members(path)


def _plain_members(path: str) -> list[Member]:
    found: list[Member] = []
    try:
        with open(path, "rb") as file, _tar(file, "r:") as archive:
            for info in _regular(archive):
                origin = FileOrigin(path=path, offset=info.offset_data, size=info.size)
                found.append(Member(name=info.name, origin=_REFUSE_SPARSE if info.issparse() else origin))
    except _errors() as error:
        found.append(_damaged(error))
    return found


def _packed_members(path: str) -> list[Member]:
    found: list[Member] = []
    left = SMALL_BYTES
    walk = ArchiveWalk()
    damage: list[Member] = []
    with walk:
        try:
            for _, info, reader in walk.begin(path):
                left -= info.size
                data = _all_of(reader) if left >= 0 else b""
                origin: Origin = MemoryOrigin(data=data, recognise=True) if left >= 0 else _REFUSE_SPARSE
                found.append(Member(name=info.name, origin=origin))
        except _errors() as error:
            damage.append(_damaged(error))
    if left < 0:
        found = [
            Member(name=member.name, origin=MemberOrigin(path=path, index=index)) for index, member in enumerate(found)
        ]
    return found + damage


class ArchiveWalk:
    """Reads compressed archives from front to back, one archive open at a time.

    `reader` may be asked for members in any order; asking in the order of the archive is fast.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._path: str | None = None
        self._walk: Iterator[tuple[int, tarfile.TarInfo, Reader]] = iter(())
        self._at = -1

    def __enter__(self) -> ArchiveWalk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the archive that is open."""
        self._stack.close()
        self._path = None

    def reader(self, origin: MemberOrigin) -> Reader:
        """The bytes of a member; `OSError` if the archive changed, or what its unpacker raises."""
        if origin.path != self._path or origin.index <= self._at:
            self._walk = self.begin(origin.path)
        for index, _, reader in self._walk:
            self._at = index
            if index == origin.index:
                return reader
        raise OSError("the archive changed while it was read")

    def begin(self, path: str) -> Iterator[tuple[int, tarfile.TarInfo, Reader]]:
        """The members of the archive at `path`; each reader is good until the next is asked for."""
        self.close()
        unpacked = unpack(Peekable(Descriptor(self._stack.enter_context(regular_file(path)))))
        if unpacked is None:
            raise OSError("the archive changed while it was read")
        archive = self._stack.enter_context(_tar(cast("IO[bytes]", unpacked), "r|"))
        self._path, self._at = path, -1
        plain = (info for info in _regular(archive) if not info.issparse())
        return ((index, info, _extracted(archive, info)) for index, info in enumerate(plain))


def _tar(file: IO[bytes], mode: Literal["r:", "r|"]) -> tarfile.TarFile:
    if mode == "r:":
        return tarfile.open(fileobj=file, mode=mode, tarinfo=_CappedInfo)
    return tarfile.open(fileobj=file, mode=mode, tarinfo=_CappedInfo, bufsize=_BLOCK)


def _regular(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Regular files only: links, devices and folders hold no text of their own."""
    for count, info in enumerate(archive):
        if count >= MAX_MEMBERS:
            raise tarfile.ReadError(f"it has more than {MAX_MEMBERS} members")
        if info.isreg():
            yield info


def _extracted(archive: tarfile.TarFile, info: tarfile.TarInfo) -> Reader:
    file = archive.extractfile(info)
    if file is None:
        raise tarfile.ReadError("a member has no content")
    return file


def _all_of(reader: Reader) -> bytes:
    parts = []
    while part := reader.read(_BLOCK):
        parts.append(part)
    return b"".join(parts)


def _errors() -> tuple[type[BaseException], ...]:
    return (tarfile.TarError, *damage_errors())


def _damaged(error: BaseException) -> Member:
    what = str(error) if isinstance(error, BombError | OSError) else f"the archive is damaged ({error})"
    return Member(
        name=None,
        origin=RefusedOrigin(status=InputStatus.TRUNCATED, message=f"{what}; later members were not read"),
    )


_REFUSE_SPARSE = RefusedOrigin(status=InputStatus.UNREADABLE, message="sparse archive members are not read")
