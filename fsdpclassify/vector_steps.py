"""Ledger facts that steps and progress bars show: how far the run had come, and how fast."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict

from fsdpclassify.records import Event, EventKind, Incident
from fsdpclassify.roles import came_before

_PACES = 3


def finished(x: Incident) -> float:
    """Whether the run says before the detection that it is done."""
    return float(any(e.kind is EventKind.FINISHED and came_before(e, x.detection, None) for e in x.events))


def ended_bar(x: Incident) -> float:
    """Share done of the last progress bar before the detection; 0 without one."""
    bars = [e for e in x.events if e.kind is EventKind.PROGRESS and came_before(e, x.detection, None)]
    return float(bars[-1].detail or 0) / 100.0 if bars and (bars[-1].detail or "").isdigit() else 0.0


def bars(x: Incident) -> list[Event]:
    """Progress bars that print the time spent."""
    return [e for e in x.events if e.kind is EventKind.PROGRESS and e.elapsed_s]


def bar_near_limit(x: Incident) -> float:
    """Whether a bar had been running for about as long as the limit."""
    timeout = x.collective.timeout_s if x.collective else None
    return float(bool(timeout) and any(0.8 <= (e.elapsed_s or 0) / (timeout or 1) <= 1.3 for e in bars(x)))


def steps(x: Incident) -> list[Event]:
    """Steps and bars with a number above 0."""
    return [e for e in x.events if e.kind in (EventKind.STEP, EventKind.PROGRESS) and e.step]


def step_trend(x: Incident) -> float:
    """The steepest trend of a rank, from steady (0.2) to five times slower (1); 0 without one."""
    trends = [r.step_trend for r in x.ledger if r.step_trend is not None]
    return min(max(trends), 5.0) / 5.0 if trends else 0.0


def step_spread(x: Incident) -> float:
    """How far the slowest rank lies above the median step time, over 5."""
    times = [r.step_time_s for r in x.ledger if r.step_time_s]
    if len(times) < 3 or statistics.median(times) <= 0:
        return 0.0
    return min(max(times) / statistics.median(times) - 1.0, 5.0) / 5.0


def pace_growth(x: Incident) -> float:
    """By how many doublings, over 4, the last printed step time lies above the shortest, whoever prints it."""
    paces: dict[int | None, list[float]] = defaultdict(list)
    for e in x.events:
        if e.kind is EventKind.STEP and e.value:
            paces[e.rank].append(e.value)
    growths = [v[-1] / min(v) for v in paces.values() if len(v) >= _PACES]
    return min(math.log2(max(growths)) / 4.0, 1.0) if growths else 0.0


def behind_in_steps(x: Incident) -> float:
    """Whether of three or more ranks some are behind in steps."""
    steps = [r.last_step for r in x.ledger if r.last_step is not None]
    return float(len(steps) > 2 and max(steps) - min(steps) >= 1)
