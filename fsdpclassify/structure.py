"""Which printed lines the structural facts rest on, so that evidence can point at them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from fsdpclassify.records import RECORDED_STOPS, Event, EventKind, Incident
from fsdpclassify.roles import by_absent, came_before, is_early_failure, is_fault
from fsdpclassify.vector import LEDGER_FACTS

_MOST = 4
_RECORDED = "flight recorder: others wait for this rank, and it waits for nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Ledger facts that rest on the same lines: their columns, those events, and what they say in words."""

    name: str
    columns: tuple[int, ...]
    events: tuple[Event, ...]
    why: str


Select = Callable[[Incident], Sequence[Event]]


def grounds(incident: Incident) -> list[Ground]:
    """The groups of facts that hold in `incident` and are printed somewhere."""
    found = []
    for name, facts, select, why in _GROUPS:
        events = tuple(select(incident))[:_MOST]
        if events:
            columns = tuple(LEDGER_FACTS.index(f) for f in facts)
            found += _by_meaning(Ground(name=name, columns=columns, events=events, why=why))
    return found + _by_meaning(Ground(name="host", columns=_HOST_COLUMNS, events=_hosts(incident), why=""))[:_MOST]


def _by_meaning(ground: Ground) -> list[Ground]:
    """A ground for each meaning that events of the hosts carry, or of its own for dumps; others as they are."""
    if ground.name == "behind" and all(e.kind is EventKind.RECORDED for e in ground.events):
        # Dumps alone tell who did not come, and nothing of why.
        return [replace(ground, name="stopped", why=_RECORDED)]
    if ground.name not in ("hardware", "host"):
        return [ground]
    told: dict[str, list[Event]] = {}
    for e in ground.events:
        told.setdefault(e.detail or ground.why, []).append(e)
    return [replace(ground, events=tuple(v[:_MOST]), why=k) for k, v in told.items()]


_MEMORY = ("idle", "gpu_empty")
_HOST_COLUMNS = tuple(i for i, name in enumerate(LEDGER_FACTS) if name.startswith("host_"))


def _hosts(x: Incident) -> tuple[Event, ...]:
    return tuple(
        e
        for e in x.events
        if e.detail
        and ((e.kind is EventKind.HARDWARE and not is_fault(e)) or (e.kind is EventKind.MEMORY and e.name in _MEMORY))
    )


def _of(*kinds: EventKind) -> Select:
    return lambda x: [e for e in x.events if e.kind in kinds]


def _shapes(x: Incident) -> list[Event]:
    """One timeout line for each different (operation, size) that ranks stand in; nothing if they agree."""
    first: dict[tuple[str | None, int | None], Event] = {}
    for e in x.events:
        is_recorded = e.kind is EventKind.RECORDED and e.name == "differs"
        if e.op and (is_recorded or e.kind in (EventKind.TIMEOUT, EventKind.GLOO, EventKind.PEER_CLOSED)):
            first.setdefault((e.op, e.numel_in), e)
    return list(first.values()) if len(first) > 1 else []


def _behind(x: Incident) -> list[Event]:
    """Ranks that a log shows behind, and those for which the waiting ends by flight recorder."""
    missing = frozenset(x.missing)
    return _recorded(RECORDED_STOPS)(x) + [e for e in x.events if e.kind is EventKind.NOTIFIED and e.rank in missing]


def _absent(x: Incident) -> list[Event]:
    """What names the missing ranks: dumps, counters or a barrier; else the waits of all the others."""
    named = [*_behind(x), *(e for e in x.events if e.kind is EventKind.BARRIER)]
    waiting = frozenset(x.waiting)
    waits = [e for e in x.events if e.kind in (EventKind.TIMEOUT, EventKind.GLOO) and e.rank in waiting]
    return (named or waits) if x.missing else []


def _slower(x: Incident) -> list[Event]:
    timed = [e for e in x.events if e.kind is EventKind.STEP and e.value and came_before(e, x.detection, None)]
    return timed[-1:] if len(timed) > 2 and (timed[-1].value or 0.0) > 2 * min(e.value or 0.0 for e in timed) else []


def _recorded(names: Collection[str]) -> Callable[[Incident], list[Event]]:
    return lambda x: [e for e in x.events if e.kind is EventKind.RECORDED and e.name in names]


def _early(*kinds: EventKind) -> Select:
    def select(x: Incident) -> list[Event]:
        early = (e for e in x.events if e.kind in kinds and is_early_failure(e, x.detection, x.onset))
        return [e for e in early if by_absent(e, x)]

    return select


def _late(x: Incident) -> list[Event]:
    return [e for e in x.events if e.kind is EventKind.ERROR and not came_before(e, x.detection, x.onset)]


def _last_bar(x: Incident) -> list[Event]:
    bars = [e for e in x.events if e.kind is EventKind.PROGRESS and came_before(e, x.detection, None)]
    return bars[-1:]


def _hardware(x: Incident) -> list[Event]:
    return [e for e in x.events if e.kind is EventKind.HARDWARE and is_fault(e)]


def _never(x: Incident) -> list[Event]:
    return [e for e in x.events if e.kind is EventKind.STATUS and e.completed == -1]


def _first(select: Select) -> Select:
    return lambda x: list(select(x))[:1]


_GROUPS: tuple[tuple[str, tuple[str, ...], Select, str], ...] = (
    (
        "shapes",
        ("same_seq_other_op", "same_seq_other_size", "ops_differ", "tiny_against_large", "size_values", "seq_gap"),
        _shapes,
        "ranks stand in different calls: other operations or sizes",
    ),
    (
        "behind",
        ("one_behind",),
        _behind,
        "this rank was only told of the timeout and is behind the others",
    ),
    (
        "absent",
        ("missing_any", "missing_one", "missing_zero", "missing_node"),
        _first(_absent),
        "all others wait like this one, the missing ranks do not (or their logs are not here)",
    ),
    ("pace", ("pace_growth", "step_trend"), _slower, "the last steps took ever longer"),
    (
        "recorded_wait",
        ("has_timeout", "queue_depth"),
        _first(_recorded(("waiting",))),
        "flight recorder: the call in flight that not all ranks joined",
    ),
    ("mismatch", ("has_mismatch",), _of(EventKind.MISMATCH), "the ranks' calls were compared and differ"),
    (
        "early_error",
        ("early_error", "early_error_own", "early_oom", "failed_any", "failure_gap_is_timeout"),
        _early(EventKind.ERROR),
        "an error before the wait was given up, on a rank not shown waiting",
    ),
    ("early_exit", ("early_exit",), _early(EventKind.EXIT), "a process ended before the timeout was detected"),
    (
        "early_signal",
        ("early_signal", "terminated_early"),
        _early(EventKind.SIGNAL),
        "processes were signalled before the timeout was detected",
    ),
    (
        "early_kill",
        ("early_kill",),
        _early(EventKind.KILL),
        "a process was killed for memory before the timeout was detected",
    ),
    (
        "hardware",
        ("early_hardware", "hardware_gpu", "hardware_iommu", "hardware_link"),
        _hardware,
        "a device fault on the run's hosts",
    ),
    (
        "transport",
        ("has_transport_error", "transport_count", "status_12", "transport_first"),
        _first(_of(EventKind.TRANSPORT)),
        "the transport reports that bytes do not arrive",
    ),
    (
        "nccl_error",
        ("has_nccl_error",),
        _first(_of(EventKind.NCCL_ERROR)),
        "the communication library gave up with an error",
    ),
    (
        "peer_closed",
        ("has_peer_closed", "peer_closed_first"),
        _first(_of(EventKind.PEER_CLOSED)),
        "a peer closed its connection",
    ),
    (
        "barrier",
        ("has_monitored_barrier",),
        _first(_of(EventKind.BARRIER)),
        "the barrier names the rank that did not come",
    ),
    ("store", ("has_store_timeout",), _first(_of(EventKind.STORE)), "a wait on the key-value store ran out"),
    ("bar", ("bar_near_limit", "bar_done"), _last_bar, "the last progress before the detection"),
    ("finished", ("finished_before",), _of(EventKind.FINISHED), "the run had finished its work"),
    ("heartbeat", ("has_heartbeat",), _first(_of(EventKind.HEARTBEAT)), "the watchdog itself was stuck"),
    (
        "never",
        ("never_completed", "first_collectives", "init_stage"),
        _first(_never),
        "no collective of this group ever completed",
    ),
    ("late_error", ("late_error", "late_error_elsewhere"), _late, "an error printed only after the timeout"),
)
