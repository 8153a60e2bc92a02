"""`torch.multiprocessing.spawn`: the parent prints a child's traceback under a line that says whose it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from fsdpclassify.records import Event, Line

#: Printed by the exception that the parent raises; the number is the index of the process, on one node its rank.
_WHOSE = re.compile(r"^-- Process (\d{1,5}) terminated with the following error:$")
#: A traceback of a deep model is longer than this seldom, and ends before other output in any case.
_REACH = 400


def with_spawned(events: Sequence[Event], lines: Sequence[Line]) -> list[Event]:
    """Events of unnamed lines below such a line get its rank, up to the next line that names a printer."""
    owners = _owners(lines)
    if not owners:
        return list(events)
    return [replace(e, rank=owners[id(e.line)]) if e.rank is None and id(e.line) in owners else e for e in events]


def _owners(lines: Sequence[Line]) -> dict[int, int]:
    """The rank of each line that belongs to such a traceback, by the line's identity."""
    owners: dict[int, int] = {}
    current: dict[int, tuple[int, int]] = {}
    for line in lines:
        found = _WHOSE.match(line.body) if line.body.startswith("-- Process") else None
        if found:
            current[line.source] = (int(found[1]), line.number)
        elif line.source in current:
            rank, begun = current[line.source]
            if line.rank is not None or line.number > begun + _REACH:
                del current[line.source]
            else:
                owners[id(line)] = rank
    return owners
