"""Incident -> the ledger vector (`ledger [m]` of the model): what the structure says without any wording.

The order of `LEDGER_FACTS` is the model's input order: a change raises `FEATURE_VERSION`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from fsdpclassify.records import RECORDED_WAITS, Event, EventKind, Incident, Role
from fsdpclassify.vector_absent import ABSENT_FACTS, absent_facts
from fsdpclassify.vector_failures import (
    early_error_of_its_own,
    early_of,
    early_on_waiting,
    early_oom,
    failure_gap_is_timeout,
    late_error,
    late_error_elsewhere,
    terminated_early,
)
from fsdpclassify.vector_steps import (
    bar_near_limit,
    behind_in_steps,
    ended_bar,
    finished,
    pace_growth,
    step_spread,
    step_trend,
    steps,
)

_OPS = ("_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE", "ALLREDUCE", "BROADCAST", "ALLGATHER", "COALESCED", "ALLTOALL_BASE")
_KINDS = (
    EventKind.TIMEOUT, EventKind.NOTIFIED, EventKind.HEARTBEAT, EventKind.BARRIER, EventKind.STORE, EventKind.GLOO,
    EventKind.PEER_CLOSED, EventKind.MISMATCH, EventKind.TRANSPORT, EventKind.NCCL_ERROR, EventKind.WATCHDOG_ABORT,
    EventKind.STACK_WAIT, EventKind.PHRASE, EventKind.STATED_HANG, EventKind.JOINED,
)  # fmt: skip
#: Events that name the call a rank stood in.
_WAITS = (EventKind.TIMEOUT, EventKind.GLOO, EventKind.PEER_CLOSED)
#: What is wrong with a host that is alive: its column, and the names that parsing gives such events.
_HOSTS: dict[str, tuple[str, ...]] = {
    "slow": ("thermal", "lockup", "asleep"),
    "storage": ("storage", "nvme", "hung_task"),
    "memory": ("host_memory",),
    "port": ("port", "counter"),
}


def _has(x: Incident, kind: EventKind, name: str | None = None) -> float:
    return float(any(e.kind is kind and (name is None or e.name == name) for e in x.events))


def _works(x: Incident) -> list[Event]:
    return [e for e in x.events if (e.kind in _WAITS or _is_front(e)) and (e.op or e.seq is not None)]


def _is_front(e: Event) -> bool:
    """Whether a dump shows the rank in the call that those who started it did not join, or in which calls differ."""
    return e.kind is EventKind.RECORDED and e.name in ("waiting", "differs")


def _timed_out(x: Incident) -> float:
    """A call in flight in a dump counts like one that a watchdog prints."""
    return float(
        any(
            e.kind is EventKind.TIMEOUT or (e.kind is EventKind.RECORDED and e.name in RECORDED_WAITS) for e in x.events
        )
    )


def _counters(x: Incident) -> list[Event]:
    return [e for e in x.events if e.kind is EventKind.STATUS or _is_front(e)]


def _main_op(x: Incident) -> str | None:
    kinds = (*_WAITS, EventKind.MISMATCH, EventKind.JOINED)
    ops = Counter(e.op for e in x.events if e.op and (e.kind in kinds or _is_front(e)))
    return ops.most_common(1)[0][0] if ops else None


def _numel_one(x: Incident) -> float:
    works = _works(x)
    return float(
        bool(works) and all(e.numel_in == 1 for e in works if e.numel_in is not None) and works[0].numel_in == 1
    )


def _seq_log(x: Incident) -> float:
    seqs = [e.seq for e in _works(x) if e.seq is not None]
    return math.log1p(max(seqs)) / 15.0 if seqs else 0.0


def _first_collectives(x: Incident) -> float:
    seqs = [e.seq for e in _works(x) if e.seq is not None]
    return float(bool(seqs) and max(seqs) <= 5)


def _never_completed(x: Incident) -> float:
    return float(any(e.completed == -1 for e in _counters(x)))


def _by_rank_at_seq(x: Incident) -> dict[int, dict[int, Event]]:
    at: dict[int, dict[int, Event]] = defaultdict(dict)
    for e in _works(x):
        if e.seq is not None and e.rank is not None:
            at[e.seq].setdefault(e.rank, e)
    return at


def _same_seq_other_op(x: Incident) -> float:
    return float(any(len({e.op for e in ranks.values() if e.op}) > 1 for ranks in _by_rank_at_seq(x).values()))


def _same_seq_other_size(x: Incident) -> float:
    """Ranks at the same number of the same operation with different sizes; 0 when a group prefix shows other groups."""
    for ranks in _by_rank_at_seq(x).values():
        sizes: dict[str, set[int]] = defaultdict(set)
        for e in ranks.values():
            if e.op and e.numel_in is not None:
                sizes[e.op].add(e.numel_in)
        if any(len(s) > 1 for s in sizes.values()):
            return 1.0
    return 0.0


def _first_work_by_rank(x: Incident) -> dict[int, Event]:
    first: dict[int, Event] = {}
    for e in _works(x):
        if e.rank is not None:
            first.setdefault(e.rank, e)
    return first


def _ops_differ(x: Incident) -> float:
    return float(len({e.op for e in _first_work_by_rank(x).values() if e.op}) > 1)


def _tiny_against_large(x: Incident) -> float:
    sizes = [e.numel_in for e in _first_work_by_rank(x).values() if e.numel_in is not None]
    return float(bool(sizes) and min(sizes) <= 16 and max(sizes) >= 4096)


def _size_values(x: Incident) -> float:
    sizes = {e.numel_in for e in _first_work_by_rank(x).values() if e.numel_in is not None}
    return min(len(sizes) / 4.0, 1.0)


def _seq_gap(x: Incident) -> float:
    op = _main_op(x)
    seqs = [e.seq for e in _first_work_by_rank(x).values() if e.seq is not None and e.op == op]
    return min((max(seqs) - min(seqs)) / 4.0, 1.0) if len(seqs) > 1 else 0.0


def _one_behind(x: Incident) -> float:
    return float(
        any(r.role is Role.MISSING and r.completed is not None and r.completed == r.enqueued for r in x.ledger)
    )


def _queue_depth(x: Incident) -> float:
    depth = [e.enqueued - e.completed for e in _counters(x) if e.enqueued is not None and e.completed is not None]
    return min(math.log1p(max(depth)) / 7.0, 1.0) if depth and max(depth) > 0 else 0.0


def _waiting_share(x: Incident) -> float:
    return len(x.waiting) / x.world_size if x.world_size else 0.0


def _all_wait(x: Incident) -> float:
    return float(x.world_size is not None and len(x.waiting) == x.world_size)


def _ran_over(x: Incident) -> float:
    over = [e.elapsed_s / e.timeout_s for e in _works(x) if e.elapsed_s and e.timeout_s]
    return min(max(over) - 1.0, 1.0) if over else 0.0


def _timeout_log(x: Incident) -> float:
    timeout = x.collective.timeout_s if x.collective else None
    return math.log1p(timeout) / 10.0 if timeout else 0.0


def _count_log(kind: EventKind) -> Callable[[Incident], float]:
    return lambda x: min(math.log1p(sum(e.kind is kind for e in x.events)) / 5.0, 1.0)


def _status_12(x: Incident) -> float:
    return float(any(e.kind is EventKind.TRANSPORT and e.name == "ib_completion" and e.code == 12 for e in x.events))


def _transport_first(x: Incident) -> float:
    return float(x.detection.kind is EventKind.TRANSPORT)


def _peer_closed_first(x: Incident) -> float:
    return float(x.detection.kind is EventKind.PEER_CLOSED)


def _joined_all(x: Incident) -> float:
    lists = [e.ranks for e in x.events if e.kind is EventKind.JOINED and e.name == "joined"]
    return float(bool(lists) and max(len(r) for r in lists) == (x.world_size or -1) and not x.missing)


def _few_lines(x: Incident) -> float:
    before = sum(
        1 for line in x.lines if line.source == x.detection.line.source and line.number < x.detection.line.number
    )
    return min(math.log1p(before) / 7.0, 1.0)


def _sources(x: Incident) -> float:
    return min(len({line.source for line in x.lines}) / 4.0, 1.0)


def _hardware(name: str) -> Callable[[Incident], float]:
    return lambda x: _has(x, EventKind.HARDWARE, name)


def _named(kind: EventKind, names: Collection[str]) -> Callable[[Incident], float]:
    return lambda x: float(any(e.kind is kind and e.name in names for e in x.events))


def _is(op: str) -> Callable[[Incident], float]:
    return lambda x: float(_main_op(x) == op)


def _kind(kind: EventKind) -> Callable[[Incident], float]:
    return lambda x: _has(x, kind)


def _steppers(*, apart: bool) -> Callable[[Incident], float]:
    """Whether of several ranks that print steps some wait and some do not (`apart`), or all wait."""

    def fact(x: Incident) -> float:
        seen = {e.rank for e in x.events if e.kind is EventKind.STEP and e.rank is not None}
        waits = seen & set(x.waiting)
        return float(len(seen) > 1 and bool(waits) and (waits != seen) is apart)

    return fact


_FACTS: dict[str, Callable[[Incident], float]] = {
    **{f"has_{k.value}": _timed_out if k is EventKind.TIMEOUT else _kind(k) for k in _KINDS},
    **{f"op_{op.strip('_').lower()}": _is(op) for op in _OPS},
    "numel_is_one": _numel_one,
    "seq_log": _seq_log,
    "first_collectives": _first_collectives,
    "never_completed": _never_completed,
    "recorded_idle": lambda x: _has(x, EventKind.RECORDED, "idle"),
    "recorded_no_dump": lambda x: _has(x, EventKind.RECORDED, "no_dump"),
    "recorded_stalled": lambda x: _has(x, EventKind.RECORDED, "stalled"),
    "same_seq_other_op": _same_seq_other_op,
    "same_seq_other_size": _same_seq_other_size,
    "ops_differ": _ops_differ,
    "tiny_against_large": _tiny_against_large,
    "size_values": _size_values,
    "seq_gap": _seq_gap,
    "one_behind": _one_behind,
    "queue_depth": _queue_depth,
    "waiting_share": _waiting_share,
    "all_wait": _all_wait,
    "waiting_log": lambda x: min(math.log1p(len(x.waiting)) / 6.0, 1.0),
    "missing_any": lambda x: float(bool(x.missing)),
    "missing_one": lambda x: float(len(x.missing) == 1),
    "missing_zero": lambda x: float(x.missing == (0,)),
    "missing_node": lambda x: float(len(x.missing) > 1),
    "failed_any": lambda x: float(bool(x.failed)),
    "world_known": lambda x: float(x.world_size is not None),
    "early_error": early_of(EventKind.ERROR),
    "early_error_own": early_error_of_its_own,
    "early_exit": early_of(EventKind.EXIT),
    "early_signal": early_of(EventKind.SIGNAL),
    "early_kill": early_of(EventKind.KILL),
    "early_hardware": early_of(EventKind.HARDWARE),
    "early_error_on_waiting": early_on_waiting,
    "early_oom": early_oom,
    "late_error": late_error,
    "late_error_elsewhere": late_error_elsewhere,
    "failure_gap_is_timeout": failure_gap_is_timeout,
    "terminated_early": terminated_early,
    "finished_before": finished,
    "bar_done": ended_bar,
    "bar_near_limit": bar_near_limit,
    "steps_seen": lambda x: float(bool(steps(x))),
    "steppers_all_wait": _steppers(apart=False),
    "steppers_apart": _steppers(apart=True),
    "step_trend": step_trend,
    "step_spread": step_spread,
    "pace_growth": pace_growth,
    "behind_in_steps": behind_in_steps,
    "ran_over": _ran_over,
    "timeout_log": _timeout_log,
    "transport_count": _count_log(EventKind.TRANSPORT),
    "status_12": _status_12,
    "transport_first": _transport_first,
    "peer_closed_first": _peer_closed_first,
    "joined_all": _joined_all,
    "hardware_iommu": _hardware("iommu"),
    "hardware_gpu": _hardware("gpu"),
    "hardware_link": _hardware("link"),
    **{f"host_{name}": _named(EventKind.HARDWARE, names) for name, names in _HOSTS.items()},
    "gpu_empty": lambda x: _has(x, EventKind.MEMORY, "gpu_empty"),
    "init_stage": lambda x: float(
        _has(x, EventKind.STORE, "unique_id") or _first_collectives(x) or _never_completed(x)
    ),
    "lines_before": _few_lines,
    "sources": _sources,
}
LEDGER_FACTS: tuple[str, ...] = (*_FACTS, *ABSENT_FACTS)
#: Nearly all events of a long log are steps, and only these facts look at them: the others need not go past them.
_FROM_STEPS = frozenset(
    {"bar_done", "bar_near_limit", "steps_seen", "pace_growth", "steppers_all_wait", "steppers_apart"}
)
_STEPS = (EventKind.STEP, EventKind.PROGRESS)


def ledger_vector(incident: Incident) -> list[float]:
    """The facts of one incident in the order of `LEDGER_FACTS`; every value lies in about [0, 1]."""
    others = replace(incident, events=tuple(e for e in incident.events if e.kind not in _STEPS))
    own = [fact(incident if name in _FROM_STEPS else others) for name, fact in _FACTS.items()]
    return own + absent_facts(incident)


def named(values: Sequence[float]) -> dict[str, float]:
    """The vector with its names, for tables and tests."""
    return dict(zip(LEDGER_FACTS, values, strict=True))
