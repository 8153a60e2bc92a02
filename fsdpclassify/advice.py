"""What to tell the user beside the verdict: rivals, the remedy of the cause, and what to record next time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fsdpclassify.catalogue import Catalogue, Cause
from fsdpclassify.records import Alternative, EventKind, Incident, Remedy

_RIVALS = 2
_RANKS = 8
_LEAST = 0.05


def alternatives(
    probabilities: Mapping[str, float], label: str, cause: int | None, catalogue: Catalogue
) -> tuple[Alternative, ...]:
    """The next labels in order of probability, each with what would separate it from the first."""
    ranked = sorted((p, name) for name, p in probabilities.items() if name != label)[::-1]
    own = catalogue.causes[cause] if cause is not None else None
    return tuple(
        Alternative(label=name, probability=p, separate_by=_separation(own, name, catalogue))
        for p, name in ranked[:_RIVALS]
        if p >= _LEAST
    )


def _separation(own: Cause | None, rival: str, catalogue: Catalogue) -> str | None:
    """What tells the verdict's cause from a look-alike of that label; else where the rival label begins."""
    if own is not None and rival in own.look_alike:
        return own.separate_by
    return catalogue.boundaries.get(rival)


def remedy_for(label: str, cause: int | None, catalogue: Catalogue) -> Remedy:
    """The catalogue's remedy of a cause, else the general one of its label; empty for a label without one."""
    if cause is not None:
        return catalogue.causes[cause].remedy
    return catalogue.remedies.get(label, Remedy())


def _some(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:_RANKS])) + (", …" if len(ranks) > _RANKS else "")
    return f"rank {shown}"


def collect_next(incident: Incident, *, sure: bool) -> tuple[str, ...]:
    """What to record next time; for an undetermined incident never empty, only what this input lacks."""
    wishes = []
    kinds = {e.kind for e in incident.events}
    unheard = [row.rank for row in incident.ledger if row.unheard]
    if unheard:
        it, its = ("it", "its log is") if len(unheard) == 1 else ("they", "their logs are")
        wishes.append(
            f"what {_some(unheard)} printed: nothing here is known to be from there, so {it} did not come or {its} not"
            " here (torchrun --log-dir DIR --redirects 3 --tee 3 keeps every rank's)"
        )
    elif incident.world_size is None or len(incident.waiting) < incident.world_size:
        wishes.append(
            "the logs of every rank, not only of those that print the timeout"
            " (torchrun --log-dir DIR --redirects 3 --tee 3)"
        )
    if not kinds & {EventKind.NOTIFIED, EventKind.DUMPING, EventKind.RECORDED}:
        wishes.append(
            "flight-recorder dumps: TORCH_FR_BUFFER_SIZE=2000 (TORCH_NCCL_TRACE_BUFFER_SIZE before torch 2.8)"
            " and TORCH_NCCL_DUMP_ON_TIMEOUT=1"
        )
    without = [row.rank for row in incident.ledger if not row.dump]
    if EventKind.RECORDED in kinds and without:
        wishes.append(f"the flight-recorder dumps of all ranks: {_some(without)} left none or was not given")
    if EventKind.STACK_WAIT not in kinds:
        wishes.append(
            "while it hangs: py-spy dump --pid PID on every rank; one whose stack is in no collective is late"
        )
    if incident.detection.time is None or not incident.detection.line.stamped:
        wishes.append("a log with time stamps on every line")
    if EventKind.TRANSPORT in kinds or EventKind.NCCL_ERROR in kinds:
        wishes.append("NCCL_DEBUG=INFO from every rank, and the kernel log of the nodes (dmesg -T)")
    if EventKind.STEP not in kinds and EventKind.PROGRESS not in kinds:
        wishes.append("a line per step and phase (data, forward, save, evaluation) with the rank and the time it took")
    return tuple(wishes[:2] if sure else wishes)
