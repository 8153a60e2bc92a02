"""Ledger facts about the ranks that do not wait: with what their output ends, and whether they live on.

Lines that name no rank are taken for those of the main process where rank 0 is not shown waiting (design: bars and
rank-zero loggers print none). What such a rank printed last says what it was about when the others began to wait.
"""

from __future__ import annotations

from collections.abc import Sequence

from fsdpclassify.records import EventKind, Incident, Line
from fsdpclassify.roles import is_clocked

#: Shares of the timeout before the detection between which a line is printed during the wait.
_DURING = (0.05, 0.8)
#: What reaches a log in the second of the detection may have been printed before it.
_AFTER_S = 1.0
#: Shares of the timeout between which a silence began with the wait.
_SILENT = (0.8, 1.5)
#: A bar is mostly that of the training loop; whether another one stands still for long, `bar_near_limit` says.
_ENDS = {"step": {EventKind.STEP, EventKind.PROGRESS}, "error": {EventKind.ERROR}}

#: In the order of `absent_facts`.
ABSENT_FACTS: tuple[str, ...] = (
    *(f"absent_ends_in_{name}" for name in (*_ENDS, "other")),
    "absent_speaks_during",
    "absent_speaks_after",
    "absent_silent_since_onset",
)


def absent_facts(x: Incident) -> list[float]:
    """The facts in the order of `ABSENT_FACTS`, each 0 or 1."""
    lines = _lines(x)
    return [*_ends(x, lines), _speaks_during(x, lines), _speaks_after(x, lines), _silent_since_onset(x, lines)]


def _lines(x: Incident) -> list[Line]:
    """What ranks that do not wait print."""
    waiting = frozenset(x.waiting)
    main = 0 not in waiting
    return [
        line
        for line in x.lines
        if (line.rank not in waiting if line.rank is not None else main and line.unprefixed) and line.body.strip()
    ]


def _ends(x: Incident, lines: Sequence[Line]) -> list[float]:
    """Of which kind their last line before the detection is, in its file; `other`: parsing knows nothing."""
    border = x.detection.line
    before = (line for line in lines if line.source == border.source and line.number < border.number)
    last = max(before, key=lambda line: line.number, default=None)
    if last is None:
        return [0.0] * (len(_ENDS) + 1)
    at = (last.source, last.number)
    found = {e.kind for e in x.events if (e.line.source, e.line.number) == at}
    return [*(float(bool(kinds & found)) for kinds in _ENDS.values()), float(not found)]


def _detected(x: Incident) -> float | None:
    return x.detection.time if is_clocked(x.detection) else None


def _shares(x: Incident, lines: Sequence[Line]) -> list[float]:
    """How long before the detection each is printed, as a share of the timeout; [] without a clock or a timeout."""
    detected, timeout = _detected(x), x.collective.timeout_s if x.collective else None
    if detected is None or not timeout:
        return []
    return [(detected - line.time) / timeout for line in lines if line.time is not None and line.stamped]


def _speaks_during(x: Incident, lines: Sequence[Line]) -> float:
    return float(any(_DURING[0] < share < _DURING[1] for share in _shares(x, lines)))


def _speaks_after(x: Incident, lines: Sequence[Line]) -> float:
    detected = _detected(x)
    if detected is None:
        return 0.0
    return float(any(line.stamped and line.time is not None and line.time > detected + _AFTER_S for line in lines))


def _silent_since_onset(x: Incident, lines: Sequence[Line]) -> float:
    """Whether they last printed about one timeout before the detection."""
    before = [share for share in _shares(x, lines) if share > 0]
    return float(bool(before) and _SILENT[0] <= min(before) <= _SILENT[1])
