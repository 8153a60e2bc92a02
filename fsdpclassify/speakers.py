"""Which ranks have their own output in the input, so that a wait of theirs would be there too if they had waited."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from fsdpclassify.records import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """Who speaks in the whole input, found once for all its incidents.

    `witnesses` has one line for each rank on each node in each file, the last one with a stamp.
    """

    speakers: frozenset[int]
    witnesses: tuple[Line, ...]

    @classmethod
    def of(cls, lines: Sequence[Line]) -> Heard:
        """What `lines` show."""
        found: dict[tuple[int, int | None, str | None], Line] = {}
        for line in lines:
            key = (line.source, line.rank, line.node)
            known = found.get(key)
            if known is None or (line.stamped and _is_later(line, known)):
                found[key] = line
        return cls(speakers=frozenset(speakers(lines)), witnesses=tuple(found.values()))


def _is_later(line: Line, known: Line) -> bool:
    if not known.stamped or known.time is None:
        return True
    return line.time is not None and line.time > known.time


def speakers(lines: Sequence[Line]) -> set[int]:
    """Ranks that print under a prefix, in a file of their own, or name themselves beside other ranks.

    Rank 0 alone naming itself in unprefixed text is a main process's logger: its watchdog may write elsewhere.
    """
    kept = [line for line in lines if not _is_deduplicated(line)]
    printers: dict[int, set[int | None]] = defaultdict(set)
    for line in kept:
        if line.body:
            printers[line.source].add(line.rank)
    told = {line.rank for line in kept if line.unprefixed and line.rank is not None}
    spoke = {
        line.rank
        for line in kept
        if line.rank is not None and (not line.unprefixed or printers[line.source] == {line.rank})
    }
    return spoke if told <= {0} else spoke | told


def _is_deduplicated(line: Line) -> bool:
    """Whether Ray's driver printed the line: it swallows what other workers have printed, so silence is no sign."""
    return line.pid is not None and line.text.startswith("(")
