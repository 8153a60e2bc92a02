"""Files that were concatenated: `cat rank*.log` puts one rank's whole log behind another's.

Within an interleaved file the order of lines tells what came first; between concatenated logs it tells nothing.
A file counts as concatenated where the clock jumps back to a rank that had not spoken in it before, and no rank
comes back in a later part. Interleaved hosts with clocks apart jump back too, but their ranks return.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from fsdpclassify.records import Line

#: Clocks of hosts that write into one file, and the delays of its writers, are taken to lie within this.
_APART_S = 5.0


@dataclass(slots=True)
class _File:
    """What was seen of one file: the part that is open, its latest stamp, and the part of each rank."""

    part: int = 0
    latest: float | None = None
    ranks: dict[int, int] = field(default_factory=dict)
    mixed: bool = False
    run: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)


def with_parts(lines: list[Line]) -> list[Line]:
    """`lines` with `part` set in concatenated files; the same list where there are none. Lines are in file order."""
    if not _jumps_back(lines):
        return lines
    files: dict[int, _File] = {}
    for index, line in enumerate(lines):
        if line.rank is not None:
            _note(files.setdefault(line.source, _File()), index, line)
    starts = {at for file in files.values() if not file.mixed for at in file.starts}
    return _numbered(lines, starts) if starts else lines


def _jumps_back(lines: Sequence[Line]) -> bool:
    """Whether the clock of any file does: a quick look before the thorough one."""
    source, latest = -1, float("-inf")
    for line in lines:
        time = line.time
        if time is None:
            continue
        if line.source != source:
            source, latest = line.source, time
        elif time > latest:
            latest = time
        elif time < latest - _APART_S:
            return True
    return False


def _note(file: _File, index: int, line: Line) -> None:
    """Open a new part at the first line of a new rank's run if its first stamp lies before the stamps seen so far."""
    assert line.rank is not None
    if file.run and file.run[0] != line.rank:
        file.run.clear()
    if not file.run:
        file.run.extend((line.rank, index))
    known = file.ranks.get(line.rank)
    if known is not None and known != file.part:
        file.mixed = True
    if not line.stamped or line.time is None:
        return
    if known is None and file.latest is not None and line.time < file.latest - _APART_S:
        file.part += 1
        file.latest = None
        file.starts.append(file.run[1])
    file.ranks.setdefault(line.rank, file.part)
    file.latest = line.time if file.latest is None else max(file.latest, line.time)


def _numbered(lines: Sequence[Line], starts: set[int]) -> list[Line]:
    numbered: list[Line] = []
    part, source = 0, -1
    for index, line in enumerate(lines):
        if line.source != source:
            part, source = 0, line.source
        part += index in starts
        numbered.append(replace(line, part=part) if part else line)
    return numbered
