"""Who is waited for: from each rank that stands in a call to those that have not come to it, until nobody waits.

A rank that is behind in one group because it waits in another is not guilty. Where the edges end in a rank that
has nothing in flight, or whose device has not done what its peers completed, that rank stopped. Where they end
only in ranks without a dump, those are named if they are few: absence is evidence, and weaker. Where they go in
a circle, or all ranks have come and nothing moves, no rank is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fsdpclassify.recorder.dumps import Dump, Work
from fsdpclassify.recorder.mismatches import Mismatch, find_mismatches
from fsdpclassify.recorder.standing import Cast

#: Ranks without a dump are named only if they are at most one in so many of those that are known.
_FEW = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """What one rank stands in, and which GLOBAL ranks have not come there: `behind` left a dump, `absent` did not.

    `ahead` are ranks that completed the same call: for them it was complete, and only this rank does not move.
    """

    rank: int
    work: Work
    behind: tuple[int, ...] = ()
    absent: tuple[int, ...] = ()
    ahead: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """The outcome. `idle`, `stalled` and `absent` together started it; `waits` has one entry a rank in flight."""

    cast: Cast
    waits: Mapping[int, Wait]
    idle: tuple[int, ...] = ()
    stalled: tuple[int, ...] = ()
    absent: tuple[int, ...] = ()
    mismatches: tuple[Mismatch, ...] = ()

    @property
    def initiating(self) -> tuple[int, ...]:
        """Global ranks that started it, ascending; () if the dumps cannot tell."""
        odd = {rank for mismatch in self.mismatches for rank in mismatch.odd}
        return tuple(sorted({*self.idle, *self.stalled, *self.absent} or odd))

    @property
    def is_incident(self) -> bool:
        """Whether ranks disagree about a call, one is in flight and a rank is missing, or one ran out of time."""
        waits = self.waits.values()
        return bool(self.initiating or self.mismatches) or any(
            w.behind or w.absent or w.ahead or w.work.is_retired for w in waits
        )


def find_front(dumps: Mapping[int, Dump]) -> Front:
    """The wavefront over the dumps of `dumps` (by GLOBAL rank)."""
    cast = Cast(dumps)
    mismatches = find_mismatches(cast)
    waits = {r: _wait(cast, r, s.oldest) for r, s in cast.standing.items() if s.oldest is not None}
    stalled = tuple(r for r, wait in waits.items() if wait.ahead)
    idle = tuple(sorted({r for wait in waits.values() for r in wait.behind if r not in waits}))
    front = Front(cast=cast, waits=waits, idle=idle, stalled=stalled, mismatches=mismatches)
    if idle or stalled or mismatches:
        return front
    return Front(cast=cast, waits=waits, absent=_absent(front))


def _wait(cast: Cast, rank: int, work: Work) -> Wait:
    ahead = _outrun_by(cast, rank)
    if ahead:
        return Wait(rank=rank, work=ahead[0], ahead=ahead[1])
    if work.is_p2p and work.operation.peer is None:
        return Wait(rank=rank, work=work, behind=_resting(cast, rank, work))
    others = _peer(cast, work) if work.is_p2p else _others(cast, rank, work)
    away = [r for r in others if r not in cast.standing or not _has_come(cast, rank, r, work)]
    # A dump that was cut off before it tells is as good as none.
    absent = [r for r in away if r not in cast.standing or cast.may_lack(r, work.group)]
    behind = [r for r in away if r in cast.standing and not cast.may_lack(r, work.group)]
    return Wait(rank=rank, work=work, behind=tuple(behind), absent=tuple(absent))


def _outrun_by(cast: Cast, rank: int) -> tuple[Work, tuple[int, ...]] | None:
    """The first call in flight that peers have completed although no rank can before all came, and those peers."""
    for work in cast.standing[rank].in_flight:
        if work.is_p2p or not work.operation.is_symmetric or not cast.is_past_somewhere(work):
            continue
        ahead = [r for r in _others(cast, rank, work) if r in cast.standing and _is_past(cast, r, work)]
        if ahead:
            return work, tuple(ahead)
    return None


def _is_past(cast: Cast, rank: int, work: Work) -> bool:
    completed = cast.completed(rank, work.group)
    return completed is not None and completed >= work.seq


def _others(cast: Cast, rank: int, work: Work) -> tuple[int, ...]:
    group = cast.members.get(work.group)
    return tuple(r for r in sorted(set(group.ranks)) if r != rank) if group is not None else ()


def _resting(cast: Cast, rank: int, work: Work) -> tuple[int, ...]:
    """Of a batch of p2p calls without names of peers: the ranks of the group that have nothing in flight."""
    others = _others(cast, rank, work)
    known = (r for r in others if r in cast.standing and not cast.may_lack(r, work.group))
    return tuple(r for r in known if cast.standing[r].oldest is None)


def _peer(cast: Cast, work: Work) -> tuple[int, ...]:
    peer = work.operation.peer
    found = cast.global_rank(work, peer) if peer is not None else None
    return () if found is None else (found,)


def _has_come(cast: Cast, rank: int, other: int, work: Work) -> bool:
    """Whether `other` stands in the same call as `rank`, or is past it."""
    oldest = cast.standing[other].oldest
    if work.is_p2p:
        return oldest is not None and oldest.is_p2p and oldest.group == work.group and rank in _peer(cast, oldest)
    if _is_past(cast, other, work):
        return True
    return oldest is not None and oldest.group == work.group and oldest.seq == work.seq and not oldest.is_p2p


def _absent(front: Front) -> tuple[int, ...]:
    """Ranks without a dump in which the waiting ends, if nobody else explains it and they are few.

    One whose nearest peers stand in calls without it kept pace with them, and is left out.
    """
    ends = {r for wait in front.waits.values() if not wait.behind for r in wait.absent}
    known = len(front.cast.standing) + len(ends)
    if len(ends) > max(1, known // _FEW) or known < _FEW:
        return ()
    kept = {r for r in ends if not _kept_pace(front, r)}
    return tuple(sorted(kept or ends))


def _kept_pace(front: Front, absent: int) -> bool:
    """Whether in the smallest group that it shares with waiting ranks all of them stand in calls without it."""
    groups = [g for g in front.cast.members.values() if absent in g.ranks and len(g.ranks) > 1]
    for group in sorted(groups, key=lambda g: len(g.ranks)):
        peers = [front.waits[r] for r in group.ranks if r in front.waits]
        if peers:
            return all(absent not in wait.absent for wait in peers)
    return False
