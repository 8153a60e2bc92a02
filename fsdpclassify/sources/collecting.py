"""Finds the inputs: files, folders, archives, patterns and standard input become `Source`s."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

from fsdpclassify.records import InputStatus
from fsdpclassify.sources.blocks import reason
from fsdpclassify.sources.decompress import is_tar, unpacker_for
from fsdpclassify.sources.hints import hint_nodes, hint_ranks
from fsdpclassify.sources.interface import (
    FileOrigin,
    MemoryOrigin,
    PipeOrigin,
    RefusedOrigin,
    Source,
    StreamOrigin,
)
from fsdpclassify.sources.opening import head_of

if TYPE_CHECKING:
    from fsdpclassify.sources.archives import Member

Identity = tuple[int, int]

STDIN = "-"
#: The description of a labelled incident states the answer, so it is never read as a log.
DESCRIPTION = "incident.json"

_MAGIC_CHARACTERS = re.compile(r"[*?\[]")
_STREAM_PATHS = re.compile(r"/dev/(?:fd/\d+|stdin)|/proc/self/fd/\d+")
_KERNEL_FOLDERS = ("/proc/", "/sys/")
_MAX_DEPTH = 64
_NAMES = (
    (stat.S_ISFIFO, "it is a FIFO"),
    (stat.S_ISSOCK, "it is a socket"),
    (stat.S_ISCHR, "it is a device"),
    (stat.S_ISBLK, "it is a device"),
)


def collect(
    paths: Sequence[os.PathLike[str] | str],
    *,
    stdin: BinaryIO | None = None,
    max_bytes: int | None = None,
) -> list[Source]:
    """The inputs that `paths` name, in the order given; nothing is read but a few first bytes.

    A path is a file, a folder (walked in sorted order, hidden names left out), an archive, a
    pattern that the shell did not expand, or `-` for `stdin`. What cannot be read is a source
    too, so that it gets a row; no input makes this raise. `max_bytes` caps each input.
    """
    found = [source for path in paths for source in _from_path(os.fspath(path), stdin)]
    return _with_hints([replace(source, max_bytes=max_bytes) for source in found])


def from_text(texts: Iterable[str | bytes]) -> list[Source]:
    """Log text held in memory as sources: `<text>`, `<text 2>` and so on."""
    return [
        Source(
            path="<text>" if number == 1 else f"<text {number}>",
            origin=MemoryOrigin(data=_as_bytes(text)),
        )
        for number, text in enumerate(texts, 1)
    ]


def _as_bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8", "replace") if isinstance(text, str) else bytes(text)


def _with_hints(sources: list[Source]) -> list[Source]:
    labels = [source.path for source in sources]
    ranks, nodes = hint_ranks(labels), hint_nodes(labels)
    return [
        replace(source, hint_rank=ranks.get(index), hint_node=nodes.get(index)) for index, source in enumerate(sources)
    ]


def _from_path(path: str, stdin: BinaryIO | None) -> Iterator[Source]:
    if path == STDIN:
        yield _from_stdin(stdin)
    elif _STREAM_PATHS.fullmatch(path):
        yield Source(path=path, origin=PipeOrigin(path=path))  # the shell's `<(command)`
    elif os.path.isdir(path):
        yield from _from_folder(path)
    elif _MAGIC_CHARACTERS.search(path) and not os.path.lexists(path):
        yield from _from_pattern(path)
    else:
        yield from _from_file(path, path)


def _from_stdin(stdin: BinaryIO | None) -> Source:
    if stdin is None:
        return _refused(STDIN, "there is no standard input")
    return Source(path=STDIN, origin=StreamOrigin(stream=stdin))


def _from_pattern(pattern: str) -> Iterator[Source]:
    import glob

    matches = sorted(glob.glob(pattern, recursive=True))
    if not matches:
        yield _refused(pattern, "not found: nothing matches the pattern")
    for match in matches:
        yield from _from_folder(match) if os.path.isdir(match) else _from_file(match, match)


def _from_folder(folder: str) -> Iterator[Source]:
    empty = True
    for source in _walk(folder, "", {_identity(folder)} - {None}, os.path.realpath(folder)):
        empty = False
        yield source
    if empty:
        yield Source(
            path=folder,
            origin=RefusedOrigin(status=InputStatus.EMPTY, message="the folder holds no files to read"),
        )


def _walk(folder: str, prefix: str, seen: set[Identity | None], root: str) -> Iterator[Source]:
    """Files below `folder`; `seen` keeps a link loop, or a second link to a file, from counting.

    Links that lead out of `root`, the real path of the folder that was asked for, are refused.
    """
    if prefix.count("/") >= _MAX_DEPTH:
        yield _refused(prefix.rstrip("/"), f"folders are nested more than {_MAX_DEPTH} deep")
        return
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield _refused(prefix.rstrip("/") or folder, reason(error))
        return
    own = {_identity(entry.path) for entry in entries if not entry.is_symlink()}
    for entry in entries:
        identity, label = _identity(entry.path), prefix + entry.name
        if entry.name.startswith(".") or entry.name == DESCRIPTION or identity in seen:
            continue
        if entry.is_symlink() and identity in own and identity is not None:
            continue  # `latest -> run7` beside `run7`
        if entry.is_symlink() and not _lies_in(entry.path, root):
            yield _refused(label, "it is a link out of the folder; name its target to read it")
            continue
        if identity is not None:  # one that cannot be read gets a row that says why
            seen.add(identity)
        if os.path.isdir(entry.path):
            yield from _walk(entry.path, f"{label}/", seen, root)
        else:
            yield from _from_file(entry.path, label)


def _lies_in(path: str, root: str) -> bool:
    """Whether the target of the link at `path` lies below the real path `root`."""
    return os.path.realpath(path).startswith(os.path.join(root, ""))


def _is_made_up(path: str, state: os.stat_result) -> bool:
    """Whether the kernel makes this file up on reading: some of those wait, or never end."""
    if getattr(state, "st_blocks", 0):
        return False  # it takes room on a disk; real paths of thousands of files cost too much
    return os.path.realpath(path).startswith(_KERNEL_FOLDERS)


def _identity(path: str) -> Identity | None:
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_dev, state.st_ino


def _from_file(path: str, label: str) -> Iterator[Source]:
    try:
        state = os.stat(path)
        mode = state.st_mode
        if not stat.S_ISREG(mode):
            what = next((text for test, text in _NAMES if test(mode)), "it is no regular file")
            yield _refused(label, what)
            return
        if os.path.basename(path) == DESCRIPTION:
            yield _refused(label, "the description of a labelled incident is never read as a log")
            return
        if _is_made_up(path, state):
            yield _refused(label, "it is a file of the kernel, no log")
            return
        found = _members(path)
    except (OSError, ValueError) as error:
        yield _refused(label, reason(error))
        return
    if found is None:
        yield Source(path=_printable(label), origin=FileOrigin(path=path))
        return
    for member in found:
        name = label if member.name is None else f"{label}!{member.name}"
        yield Source(path=_printable(name), origin=member.origin)
    if not found:
        yield Source(
            path=_printable(label),
            origin=RefusedOrigin(status=InputStatus.EMPTY, message="the archive holds no files"),
        )


def _members(path: str) -> list[Member] | None:
    head = head_of(path)
    if not is_tar(head) and unpacker_for(head) is None:
        return None
    from fsdpclassify.sources.archives import members  # most inputs need none of what it imports

    return members(path)


def _refused(label: str, message: str) -> Source:
    origin = RefusedOrigin(status=InputStatus.UNREADABLE, message=message)
    return Source(path=_printable(label), origin=origin)


def _printable(label: str) -> str:
    """A label that any output can encode: what is no UTF-8 in a name becomes an escape."""
    return label.encode("utf-8", "backslashreplace").decode("utf-8")
