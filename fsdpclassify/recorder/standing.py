"""Where each rank stands in each group: what it has in flight, what it enqueued and what it completed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fsdpclassify.recorder.counters import counted_works
from fsdpclassify.recorder.dumps import Dump, Group, Work

_MOST_RANKS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One rank: its dump, and its calls that have not ended, oldest first."""

    rank: int
    dump: Dump
    in_flight: tuple[Work, ...]

    @property
    def oldest(self) -> Work | None:
        """The call it stands in: on a device nothing that was enqueued later can matter before it ends."""
        return self.in_flight[0] if self.in_flight else None

    def holding(self, group: str, seq: int) -> Work | None:
        """Its collective number `seq` of `group` if that is in flight."""
        return next((w for w in self.in_flight if w.group == group and w.seq == seq and not w.is_p2p), None)


class Cast:
    """All ranks with dumps, and what they tell about each other's groups."""

    def __init__(self, dumps: Mapping[int, Dump]) -> None:
        self._mixed = {name for dump in dumps.values() for name in _mixed(dump)}
        self._last: dict[int, dict[str, tuple[int, int]]] = {r: self._counters(dump) for r, dump in dumps.items()}
        self._furthest: dict[str, int] = {}
        for counters in self._last.values():
            for name, (_, completed) in counters.items():
                self._furthest[name] = max(completed, self._furthest.get(name, -1))
        self.members = _members(dumps)
        counted = counted_works(dumps)
        self.standing = {r: self._standing(r, dump, counted.get(r, ())) for r, dump in sorted(dumps.items())}

    def enqueued(self, rank: int, group: str) -> int | None:
        """The last collective of `group` that `rank` is known to have enqueued; None if nothing is known."""
        return self._last[rank][group][0] if group in self._last[rank] else None

    def completed(self, rank: int, group: str) -> int | None:
        """The last collective of `group` that `rank` is known to have completed; None if nothing is known."""
        return self._last[rank][group][1] if group in self._last[rank] else None

    def may_lack(self, rank: int, group: str) -> bool:
        """Whether newer calls of `rank` in `group` may be lost: its dump was cut off, and no counters tell of them."""
        dump = self.standing[rank].dump
        known = dump.groups.get(group)
        return dump.is_cut and (known is None or known.status is None or group in self._mixed)

    def is_past_somewhere(self, work: Work) -> bool:
        """Whether any rank is known to have completed the collective `work`."""
        return self._furthest.get(work.group, -1) >= work.seq

    def shown_completed(self, rank: int, group: str) -> int | None:
        """As `completed`, but None where -1 may only mean that completed calls were not written or overwritten."""
        found, known = self.completed(rank, group), self.standing[rank].dump.groups.get(group)
        is_counted = known is not None and known.status is not None and group not in self._mixed
        return found if found != -1 or is_counted else None

    def global_rank(self, work: Work, group_rank: int) -> int | None:
        """The GLOBAL rank of a group rank; in a group that no dump describes they are the same for the default one."""
        members = self.members.get(work.group)
        if members is not None and members.ranks:
            return members.ranks[group_rank] if group_rank < len(members.ranks) else None
        return group_rank if work.group == "0" else None

    def _counters(self, dump: Dump) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for name, group in dump.groups.items():
            works = [w for w in dump.works if w.group == name and not w.is_p2p]
            enqueued = max((w.seq for w in works), default=-1)
            completed = max((w.seq for w in works if w.is_done), default=-1)
            if group.status is not None and name not in self._mixed:
                enqueued = max(enqueued, group.status.enqueued)
                completed = max(completed, group.status.completed)
            if works or (group.status is not None and name not in self._mixed):
                found[name] = enqueued, completed
        return found

    def _standing(self, rank: int, dump: Dump, counted: Sequence[Work]) -> Standing:
        flying = [w for w in [*_apart(dump.works), *counted] if not w.is_done and not self._is_past(rank, w)]
        return Standing(rank=rank, dump=dump, in_flight=tuple(sorted(flying, key=lambda w: w.created)))

    def _is_past(self, rank: int, work: Work) -> bool:
        """Whether a later collective of the group has completed: they run in order, whatever this record says."""
        completed = self.completed(rank, work.group)
        return not work.is_p2p and completed is not None and work.seq <= completed


def _key(work: Work) -> tuple[str, bool, int]:
    return work.group, work.is_p2p, work.seq


def _apart(works: Sequence[Work]) -> list[Work]:
    """Works that are independent of each other: the calls of one batch share its number, and only the entry that
    closes the batch tells whether they are done. Collectives are then that one entry; sends keep their own while the
    batch is in flight, for they name the peers.
    """
    batches = {_key(w): w for w in works if w.operation.name == "COALESCED"}
    named = {_key(w) for w in works if w.is_p2p and w.operation.peer is not None}
    found = []
    for work in works:
        batch = batches.get(_key(work), work)
        if batch is work:
            is_told = work.operation.name == "COALESCED" and not work.is_done and _key(work) in named
        else:
            is_told = batch.is_done or not work.is_p2p
        if not is_told:
            found.append(work)
    return found


def _mixed(dump: Dump) -> set[str]:
    """Groups whose process group counted p2p calls with the same counters, so that these say nothing of collectives.

    Either a p2p call was recorded there, or the counter is not the number of the newest collective.
    """
    found = {w.group for w in dump.works if w.is_p2p}
    newest: dict[str, int] = {}
    for work in () if dump.is_cut else dump.works:
        newest[work.group] = max(work.seq, newest.get(work.group, -1))
    for name, seq in newest.items():
        status = dump.groups[name].status
        if status is not None and status.enqueued != seq:
            found.add(name)
    return found


def _members(dumps: Mapping[int, Dump]) -> dict[str, Group]:
    """For each group the fullest description; one that no dump describes has those ranks that recorded calls in it."""
    found: dict[str, Group] = {}
    callers: dict[str, set[int]] = defaultdict(set)
    for rank, dump in dumps.items():
        for name, group in dump.groups.items():
            callers[name].add(rank)
            if name not in found or len(group.ranks) > len(found[name].ranks):
                found[name] = group
    return {
        name: group if group.ranks else Group(name=name, desc=group.desc, ranks=_numbered(name, callers[name], dumps))
        for name, group in found.items()
    }


def _numbered(name: str, callers: set[int], dumps: Mapping[int, Dump]) -> tuple[int, ...]:
    """The default group has every rank, also those below the highest that left no dump."""
    is_default = name == "0" and max(dumps) < _MOST_RANKS
    return tuple(range(max(dumps) + 1)) if is_default else tuple(sorted(callers))
