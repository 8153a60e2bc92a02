"""What dumps show, in words: the texts that evidence and `inspect` cite."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from fsdpclassify.recorder.dumps import Work
from fsdpclassify.recorder.mismatches import Mismatch
from fsdpclassify.recorder.wavefront import Front, Wait

_LATEST = 253402300799.0


def clock(seconds: float) -> str:
    """An ISO time to the millisecond; `?` for what no calendar holds."""
    if not 0.0 < seconds < _LATEST:
        return "?"
    return datetime.fromtimestamp(seconds, tz=UTC).replace(tzinfo=None).isoformat(timespec="milliseconds")


def ranks_as_text(ranks: Sequence[int]) -> str:
    """`rank 3`, or `ranks 0-2, 5`."""
    ordered = sorted(set(ranks))
    runs: list[list[int]] = []
    for rank in ordered:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    text = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
    return f"rank {text}" if len(ordered) == 1 else f"ranks {text}"


class Sentences:
    """Sentences about one wavefront; times are shown `shift` seconds later than the dumps have them."""

    def __init__(self, front: Front, shift: float) -> None:
        self._front = front
        self._cast = front.cast
        self._shift = shift

    def call(self, work: Work) -> str:
        """A call with its number and group."""
        kind = "p2p seq" if work.is_p2p else "seq"
        size = "" if work.numel_in is None else f" of {work.numel_in} elements"
        label = self._cast.members[work.group].label
        return f"{work.operation.name or 'a call'}{size}, {kind} {work.seq} of group {label}"

    def dump(self, rank: int) -> str:
        """That the rank has a dump, and what is in flight there."""
        standing = self._cast.standing[rank]
        count = len(standing.in_flight)
        flying = f"{count} of them in flight" if count else "none of them in flight"
        return f"flight recorder of rank {rank}: {len(standing.dump.works)} calls recorded, {flying}"

    def counters(self, rank: int, group: str) -> str:
        """Counters of one group."""
        enqueued, completed = self._cast.enqueued(rank, group), self._cast.completed(rank, group)
        label = self._cast.members[group].label
        return f"rank {rank} in group {label}: last enqueued {enqueued}, last completed {completed}"

    def waits(self, rank: int, wait: Wait) -> str:
        """Where a rank stands and who has not come."""
        have = "has" if len(wait.behind) == 1 else "have"
        reasons = [f"{ranks_as_text(wait.behind)} {have} not come"] if wait.behind else []
        reasons += [f"no dump of {ranks_as_text(wait.absent)}"] if wait.absent else []
        known = not wait.work.is_p2p or wait.work.operation.peer is not None
        rest = "all its ranks have come" if known else "its peers are not recorded"
        return f"{self._stands(rank, wait.work)}; {'; '.join(reasons) or rest}"

    def stalled(self, rank: int, wait: Wait) -> str:
        """A rank that alone does not complete what all had joined."""
        return f"{self._stands(rank, wait.work)}, while {ranks_as_text(wait.ahead)} completed it: its device stopped"

    def idle(self, rank: int, waits: Sequence[Wait]) -> str:
        """A rank with nothing in flight that others wait for, and the last thing it recorded."""
        others = ranks_as_text([w.rank for w in waits])
        wait = "waits" if len(waits) == 1 else "wait"
        text = f"rank {rank} has nothing in flight while {others} {wait} for it in {self.call(waits[0].work)}"
        enqueued = self._cast.enqueued(rank, waits[0].work.group)
        text += "" if enqueued is None or waits[0].work.is_p2p else f"; there it enqueued only up to {enqueued}"
        works = self._cast.standing[rank].dump.works
        return text if not works else f"{text}; its last call was {self.call(works[-1])}{self._where(works[-1])}"

    def no_dump(self, rank: int, waits: Sequence[Wait]) -> str:
        """A rank that left no dump and that others wait for."""
        wait = "waits" if len(waits) == 1 else "wait"
        others = ranks_as_text([w.rank for w in waits])
        left = "left a dump that was cut off" if rank in self._cast.standing else "left no dump"
        return f"rank {rank} {left}; {others} {wait} for it in {self.call(waits[0].work)}"

    def differs(self, rank: int, work: Work, mismatch: Mismatch) -> str:
        """A rank's own call where calls differ."""
        others = [r for side in mismatch.sides for r in side if rank not in side]
        return f"{self._stands(rank, work)}; {ranks_as_text(others)} issued another call under this number"

    def mismatch(self, mismatch: Mismatch) -> str:
        """All sides of one mismatch."""
        sides = []
        for side in mismatch.sides:
            work = self._cast.standing[side[0]].holding(mismatch.group, mismatch.seq)
            if work is not None:
                size = "" if work.numel_in is None else f" of {work.numel_in} elements"
                types = f" ({work.types[0]})" if work.types else ""
                sides.append(f"{ranks_as_text(side)} issued {work.operation.name}{size}{types}{self._where(work)}")
        label = self._cast.members[mismatch.group].label
        return f"at seq {mismatch.seq} of group {label} {', '.join(sides)}"

    def _stands(self, rank: int, work: Work) -> str:
        since = f" at {clock(work.created + self._shift)}" if work.created else ""
        state = "started" if work.is_started else "scheduled"
        late = ", timed out" if work.is_retired else ""
        return f"rank {rank} stands in {self.call(work)}: {state}{since}, never completed{late}{self._where(work)}"

    def _where(self, work: Work) -> str:
        return f", issued at {work.frame}" if work.frame else ""
