"""Which ranks have their own output in the input, so that a wait of theirs would be there too if they had waited."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from fsdpclassify.records import Line


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
