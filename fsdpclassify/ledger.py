"""The ledger: one row a rank, with what the input shows about it. Group counters are never mixed between groups."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from fsdpclassify.records import Event, EventKind, GroupCounters, LedgerRow, Line, Role

_STEP_KINDS = (EventKind.STEP, EventKind.PROGRESS)


def world_size(events: Sequence[Event]) -> int | None:
    """The number of ranks if the input states it or implies it beyond doubt; None otherwise."""
    highest = max((e.rank for e in events if e.rank is not None), default=-1)
    for candidate in _world_candidates(events):
        if candidate > highest and candidate >= 1:
            return candidate
    return None


def _world_candidates(events: Sequence[Event]) -> Iterable[int]:
    declared = Counter(e.total for e in events if e.kind is EventKind.WORLD and e.name == "declared" and e.total)
    yield from (n for n, _ in declared.most_common())
    comms = [e.total for e in events if e.kind is EventKind.WORLD and e.name != "declared" and e.total]
    if comms:
        yield max(comms)
    yield from (e.total for e in events if e.kind is EventKind.STORE and e.name == "clients" and e.total)
    yield from _gathered(events)
    yield from (
        len(e.ranks)
        for e in events
        if e.kind is EventKind.JOINED and e.ranks == tuple(range(len(e.ranks))) and len(e.ranks) > 1
    )


def _gathered(events: Sequence[Event]) -> Iterable[int]:
    """NumelOut / NumelIn of an all-gather is its group's size, the inverse a reduce-scatter's; of the default group."""
    groups = {(e.rank, e.seq): e.group for e in events if e.kind is EventKind.STATUS and e.group}
    ranks = {e.rank for e in events if e.kind is EventKind.TIMEOUT and e.rank is not None}
    for e in events:
        if e.kind is not EventKind.TIMEOUT or not e.numel_in or not e.numel_out:
            continue
        if "ALLGATHER" in (e.op or ""):
            size, rest = divmod(e.numel_out, e.numel_in)
        elif "REDUCE_SCATTER" in (e.op or ""):
            size, rest = divmod(e.numel_in, e.numel_out)
        else:
            continue
        group = e.group or groups.get((e.rank, e.seq)) or ""
        every = len(ranks) == size and ranks == set(range(size))
        if rest == 0 and (group.startswith("0") or "default" in group or every):
            yield size


def build_ledger(
    events: Sequence[Event],
    lines: Sequence[Line],
    *,
    waiting: Sequence[int],
    failed: Sequence[int],
    missing: Sequence[int],
    offsets: Mapping[str, float] | None = None,
    unheard: Collection[int] = (),
) -> tuple[LedgerRow, ...]:
    """One row for every global rank that the input shows, ascending; `offsets` are those of the hosts' clocks."""
    by_rank: dict[int, list[Event]] = defaultdict(list)
    for e in events:
        if e.rank is not None:
            by_rank[e.rank].append(e)
    ends: dict[int, float] = {}
    nodes: dict[int, str] = {}
    for line in lines:
        if line.rank is not None:
            if line.time is not None and line.stamped:
                ends[line.rank] = max(line.time, ends.get(line.rank, line.time))
            if line.node:
                nodes.setdefault(line.rank, line.node)
    for e in events:
        if e.kind is EventKind.EXIT and e.name == "srun" and e.rank is not None and e.detail:
            nodes.setdefault(e.rank, e.detail.split(":", 1)[0])  # srun: error: NODE: tasks 4-7: Killed
    spoke = {line.rank for line in lines if line.rank is not None}
    ranks = sorted({*by_rank, *spoke, *waiting, *failed, *missing})
    roles = _Roles(set(waiting), set(failed), set(missing))
    rows = (_row(r, by_rank[r], roles, nodes.get(r), ends.get(r)) for r in ranks)
    hosts = offsets or {}
    return tuple(replace(r, clock_offset_s=hosts.get(r.node or ""), unheard=r.rank in unheard) for r in rows)


class _Roles:
    def __init__(self, waiting: set[int], failed: set[int], missing: set[int]) -> None:
        self._sets = ((Role.FAILED, failed), (Role.WAITING, waiting), (Role.MISSING, missing))

    def of(self, rank: int, events: Sequence[Event]) -> Role:
        for role, members in self._sets:
            if rank in members:
                return role
        if any(e.kind is EventKind.NOTIFIED for e in events):
            return Role.NOTIFIED
        if any(e.kind in (EventKind.SIGNAL, EventKind.EXIT) for e in events):
            return Role.COLLATERAL
        return Role.UNKNOWN


def _row(rank: int, events: Sequence[Event], roles: _Roles, node: str | None, end: float | None) -> LedgerRow:
    groups = _groups(events)
    stuck = groups[-1] if groups else None
    times = [e.value for e in events if e.kind in _STEP_KINDS and e.value]
    errors = [e for e in events if e.kind is EventKind.ERROR]
    codes = [e.code for e in events if e.kind is EventKind.EXIT and e.code is not None]
    return LedgerRow(
        rank=rank,
        node=node,
        role=roles.of(rank, events),
        last_step=max((e.step for e in events if e.kind in _STEP_KINDS and e.step is not None), default=None),
        step_time_s=round(statistics.median(times), 6) if times else None,
        step_trend=trend(times),
        enqueued=stuck.enqueued if stuck else None,
        completed=stuck.completed if stuck else None,
        groups=groups,
        first_error=_first_error(errors),
        exit_code=codes[0] if codes else None,
        dump=any(
            e.kind in (EventKind.DUMPING, EventKind.NOTIFIED) or (e.kind is EventKind.RECORDED and e.name != "no_dump")
            for e in events
        ),
        log_end=end,
    )


def _first_error(errors: Sequence[Event]) -> str | None:
    if not errors:
        return None
    first = errors[0]
    return f"{first.name}: {first.detail}"[:200] if first.detail else first.name


def trend(times: Sequence[float]) -> float | None:
    """Median of the last three step times over the median of all: 1 is steady; None below six values."""
    if len(times) < 6:
        return None
    base = statistics.median(times)
    return round(statistics.median(times[-3:]) / base, 4) if base > 0 else None


def _groups(events: Sequence[Event]) -> tuple[GroupCounters, ...]:
    """The last counters for each group, the group of a timed-out work last; its op comes from the timeout line."""
    counters: dict[str, GroupCounters] = {}
    works = {e.seq: e for e in events if e.kind is EventKind.TIMEOUT}
    for e in events:
        if e.enqueued is None and e.completed is None:
            continue
        work = works.get(e.seq) if e.kind is EventKind.STATUS else None
        if e.kind is EventKind.RECORDED and e.op:
            work = e
        key = e.group or "?"
        if key in counters and counters[key].op is not None and work is None:
            continue
        counters[key] = GroupCounters(
            group=key,
            enqueued=e.enqueued,
            completed=e.completed,
            op=work.op if work else None,
            seq=e.seq,
            numel_in=work.numel_in if work else None,
            numel_out=work.numel_out if work else None,
        )
    return tuple(sorted(counters.values(), key=lambda g: (g.op is not None, g.seq is not None)))
