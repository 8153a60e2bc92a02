"""The values of this stage: what may be read (`Source`), what to look for, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

from fsdpclassify.records import InputRow, InputStatus, RawLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A rare text worth finding in a large log; `detection` marks those that show an incident.

    `pattern` is a case-sensitive regular expression over bytes, in the dialect that `re` and
    hyperscan share. It must not match a newline, and should end in fixed text: a pattern that
    ends in a repetition has several ends, and engines differ in which of them they report.
    """

    name: str
    pattern: bytes
    detection: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOrigin:
    """A regular file, or `size` bytes of it from `offset` (a member of a plain tar)."""

    path: str
    offset: int = 0
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOrigin:
    """Member number `index` of a compressed tar, which can only be read from front to back."""

    path: str
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOrigin:
    """A stream that can be read once: standard input."""

    stream: BinaryIO


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeOrigin:
    """A pipe that has a path, as a shell gives one to `<(command)`: opened when it is read, once."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOrigin:
    """Log text handed over by a caller, or a small archive member that is already unpacked."""

    data: bytes
    recognise: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedOrigin:
    """Something that was named but cannot be read; it becomes a row and nothing else."""

    status: InputStatus
    message: str


Origin = FileOrigin | MemberOrigin | StreamOrigin | PipeOrigin | MemoryOrigin | RefusedOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One input: `path` is the label shown in reports, `origin` where its bytes come from.

    `max_bytes` caps what is read of it after decompression; the hints come from named path rules.
    """

    path: str
    origin: Origin
    max_bytes: int | None = None
    hint_rank: int | None = None
    hint_node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Lines `first` to `last` (both included) of input `source` were counted but not kept."""

    source: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was read: one row an input, the kept lines in input and file order, and the gaps."""

    inputs: tuple[InputRow, ...]
    lines: list[RawLine]
    gaps: tuple[Gap, ...] = ()
