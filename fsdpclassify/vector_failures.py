"""Ledger facts about what went wrong and when: errors, exits and signals before the wait was given up, or after."""

from __future__ import annotations

import re
from collections.abc import Callable

from fsdpclassify.records import Event, EventKind, Incident
from fsdpclassify.roles import by_absent, came_before, is_clocked, is_early_failure, is_fault

_CLOSE = 0.1
_REACTION_S = 5.0
_GAP_SLACK_S, _GAP_SHARE = 15.0, 0.3


def _early(x: Incident) -> list[Event]:
    return [e for e in x.events if is_early_failure(e, x.detection, x.onset)]


def early_of(*kinds: EventKind) -> Callable[[Incident], float]:
    """A fact: whether an event of `kinds` came before the wait was given up, on a rank that does not wait."""

    def fact(x: Incident) -> float:
        return float(any(e.kind in kinds and by_absent(e, x) for e in _early(x)))

    return fact


#: Words of exceptions by which a rank is thrown out of the common work: the calls differ, or the transport failed.
_COMMON = re.compile(
    r"reduction in the prior|mismatch|unused param|find_unused|collective|(?:across|all|other|between) (?:\w+ )?ranks"
    r"|process group|all_?gather|all_?reduce|reduce_?scatter|broadcast|barrier|NCCL|nccl|gloo|onnect|imed? ?out",
)


def early_error_of_its_own(x: Incident) -> float:
    """Whether a rank that does not wait raised an error that says nothing of the other ranks: its own code failed."""
    errors = (e for e in _early(x) if e.kind is EventKind.ERROR and by_absent(e, x))
    return float(any(not _COMMON.search(e.line.body) for e in errors))


def early_on_waiting(x: Incident) -> float:
    """Whether a rank that waits had raised an error before."""
    waiting = frozenset(x.waiting)
    return float(any(e.rank in waiting for e in _early(x) if e.kind is EventKind.ERROR))


def late_error(x: Incident) -> float:
    """Whether an error came after the wait was given up."""
    return float(any(e.kind is EventKind.ERROR and not came_before(e, x.detection, x.onset) for e in x.events))


def late_error_elsewhere(x: Incident) -> float:
    """The same, on a rank that does not wait."""
    waiting = frozenset(x.waiting)
    return float(
        any(
            e.kind is EventKind.ERROR
            and e.rank is not None
            and e.rank not in waiting
            and not came_before(e, x.detection, x.onset)
            for e in x.events
        )
    )


def failure_gap_is_timeout(x: Incident) -> float:
    """Whether some failure or termination lies one timeout before the detection."""
    timeout = x.collective.timeout_s if x.collective else None
    if not timeout or x.detection.time is None:
        return 0.0
    kinds = (EventKind.ERROR, EventKind.EXIT, EventKind.SIGNAL, EventKind.KILL, EventKind.HARDWARE)
    own = [
        e
        for e in x.events
        if e.kind in kinds and by_absent(e, x) and is_clocked(e) and (e.kind is not EventKind.HARDWARE or is_fault(e))
    ]
    gaps = [x.detection.time - e.time for e in own if e.time is not None]
    slack = max(_CLOSE * timeout, min(_GAP_SLACK_S, _GAP_SHARE * timeout))
    return float(any(abs(g - timeout) <= slack for g in gaps))


def terminated_early(x: Incident) -> float:
    """Whether a launcher ended processes well before the detection: at the detection it only reacts to it."""
    return float(any(e.name == "peer_terminated" and _well_before(e, x.detection) for e in x.events))


def _well_before(e: Event, detection: Event) -> bool:
    if is_clocked(e) and is_clocked(detection) and e.time is not None and detection.time is not None:
        return e.time < detection.time - _REACTION_S
    return e.line.source == detection.line.source and e.line.number < detection.line.number


def early_oom(x: Incident) -> float:
    """Whether a device ran out of memory before."""
    return float(any(e.kind is EventKind.ERROR and e.name == "OutOfMemoryError" for e in _early(x)))
