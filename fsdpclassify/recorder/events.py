"""What dumps show -> events with a readable line each, as if the rank had printed it.

The names of the events tell the part that a rank plays: one that is `waiting` stands in the call at the front of the
wave, `elsewhere` in another one, `differs` in a call that its peers issued differently; `idle` and `stalled` ranks
started it, so did one with `no_dump`; `counters` and `dump` are facts for the ledger alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from fsdpclassify.recorder.collecting import Recorded
from fsdpclassify.recorder.dumps import Work
from fsdpclassify.recorder.mismatches import Mismatch
from fsdpclassify.recorder.sentences import Sentences
from fsdpclassify.recorder.wavefront import Front, Wait
from fsdpclassify.records import Event, EventKind, Line


def events_of(recorded: Recorded, shift: float | None) -> list[Event]:
    """The events of all dumps; times are moved by `shift` seconds, or left out where it is None."""
    maker = _Maker(recorded, shift)
    found = [*maker.world(), *maker.ledger()]
    return found + list(maker.incident()) if recorded.front.is_incident else found


def _in_one_call(waits: Sequence[Wait]) -> list[Wait]:
    """Those of `waits` (at least one) that stand in the call in which most of them do, a collective if there is one."""
    calls = Counter((not w.work.is_p2p, w.work.group, w.work.seq) for w in waits)
    _, group, seq = max(calls, key=lambda call: (call[0], calls[call]))
    return [w for w in waits if (w.work.group, w.work.seq) == (group, seq)]


def _front_calls(front: Front) -> frozenset[tuple[str, int]]:
    """The call in which most ranks wait for those who started it; all calls in flight if nobody is named.

    Counters of different groups are never compared, and a collective says more than a send: one call stands for all.
    """
    started = set(front.initiating)
    waits = [w for w in front.waits.values() if not w.ahead]
    direct = [w for w in waits if started & {*w.behind, *w.absent}]
    chosen = _in_one_call(direct) if direct else [w for w in waits if not w.behind] or waits
    return frozenset((w.work.group, w.work.seq) for w in chosen)


class _Maker:
    """One call of `events_of`."""

    def __init__(self, recorded: Recorded, shift: float | None) -> None:
        self._front: Front = recorded.front
        self._cast = recorded.front.cast
        self._sources = recorded.sources
        self._shift = shift
        self._say = Sentences(recorded.front, shift or 0.0)
        works = [w.work for w in recorded.front.waits.values() if w.work.created]
        ends = [work.created + (work.timeout_s or 0.0) for work in works]
        #: Facts that have no time of their own belong to the wait that the dumps were written for.
        self._time = max(ends) + shift if ends and shift is not None else None

    def world(self) -> Iterator[Event]:
        """The size of the default group, where a dump lists its ranks."""
        for rank, standing in self._cast.standing.items():
            for group in standing.dump.groups.values():
                if group.ranks and (group.desc == "default_pg" or group.name == "0"):
                    line = self._line(rank, f"the default group has {len(group.ranks)} ranks", self._time)
                    yield Event(
                        kind=EventKind.WORLD, line=line, time=self._time, name="declared", total=len(group.ranks)
                    )
                    return

    def ledger(self) -> Iterator[Event]:
        """One event a rank that says there is a dump, and the counters of the groups that matter to it."""
        concerned = {wait.work.group for wait in self._front.waits.values()}
        for rank, standing in self._cast.standing.items():
            yield self._fact(rank, "dump", self._say.dump(rank))
            for name in sorted({w.group for w in standing.in_flight} | (concerned & set(standing.dump.groups))):
                enqueued, completed = self._counts(rank, name)
                if enqueued is not None:
                    yield self._fact(rank, "counters", self._say.counters(rank, name), name, enqueued, completed)

    def incident(self) -> Iterator[Event]:
        """Who waits, who is waited for, and where calls differ."""
        for mismatch in self._front.mismatches:
            yield from self._mismatch(mismatch)
        front = _front_calls(self._front)
        differing = {rank for m in self._front.mismatches for side in m.sides for rank in side}
        waits = [self._wait(r, wait, front) for r, wait in self._front.waits.items() if r not in differing]
        # The first of them names the call that the incident is about.
        yield from sorted(waits, key=lambda e: e.name != "waiting")
        for rank in self._front.idle:
            yield self._idle(rank)
        for rank in self._front.absent:
            yield self._no_dump(rank)

    def _mismatch(self, mismatch: Mismatch) -> Iterator[Event]:
        for side in mismatch.sides:
            for rank in side:
                work = self._cast.standing[rank].holding(mismatch.group, mismatch.seq)
                if work is not None:
                    yield self._work(rank, work, "differs", self._say.differs(rank, work, mismatch))
        first = mismatch.sides[0][0]
        line = self._line(first, self._say.mismatch(mismatch), self._time)
        yield Event(
            kind=EventKind.MISMATCH,
            line=line,
            time=self._time,
            seq=mismatch.seq,
            name="flight_record",
            ranks=mismatch.odd,
            detail=line.body,
        )

    def _wait(self, rank: int, wait: Wait, front: Collection[tuple[str, int]]) -> Event:
        if wait.ahead:
            return self._work(rank, wait.work, "stalled", self._say.stalled(rank, wait))
        name = "waiting" if (wait.work.group, wait.work.seq) in front else "elsewhere"
        return self._work(rank, wait.work, name, self._say.waits(rank, wait))

    def _work(self, rank: int, work: Work, name: str, text: str) -> Event:
        time = None if self._shift is None or not work.created else work.created + self._shift
        is_compared = not work.operation.is_uneven
        enqueued, completed = (work.seq, None) if work.is_p2p else self._counts(rank, work.group)
        return Event(
            kind=EventKind.RECORDED,
            line=self._line(rank, text, None if time is None else time + (work.timeout_s or 0.0)),
            rank=rank,
            time=None if time is None else time + (work.timeout_s or 0.0),
            op=work.operation.name or None,
            seq=work.seq,
            numel_in=work.numel_in if is_compared else None,
            numel_out=work.numel_out if is_compared else None,
            timeout_s=work.timeout_s,
            elapsed_s=work.timeout_s,
            group=self._cast.members[work.group].label,
            enqueued=enqueued,
            completed=completed,
            name=name,
        )

    def _idle(self, rank: int) -> Event:
        waits = _in_one_call([w for w in self._front.waits.values() if rank in w.behind])
        group = waits[0].work.group
        enqueued, completed = self._counts(rank, group)
        return self._fact(rank, "idle", self._say.idle(rank, waits), group, enqueued, completed)

    def _counts(self, rank: int, group: str) -> tuple[int | None, int | None]:
        return self._cast.enqueued(rank, group), self._cast.shown_completed(rank, group)

    def _no_dump(self, rank: int) -> Event:
        waits = _in_one_call([w for w in self._front.waits.values() if rank in w.absent])
        line = self._line(waits[0].rank, self._say.no_dump(rank, waits), self._time)
        return Event(kind=EventKind.RECORDED, line=line, rank=rank, time=self._time, name="no_dump")

    def _fact(
        self,
        rank: int,
        name: str,
        text: str,
        group: str | None = None,
        enqueued: int | None = None,
        completed: int | None = None,
    ) -> Event:
        label = None if group is None else self._cast.members[group].label
        return Event(
            kind=EventKind.RECORDED,
            line=self._line(rank, text, self._time),
            rank=rank,
            time=self._time,
            group=label,
            enqueued=enqueued,
            completed=completed,
            name=name,
        )

    def _line(self, rank: int, text: str, time: float | None = None) -> Line:
        """A line of the dump of `rank`; dumps have no lines of their own, so that all of them are its first."""
        return Line(
            source=self._sources[rank],
            number=1,
            text=text,
            body=text,
            rank=rank,
            time=time,
            stamped=time is not None,
            unprefixed=False,
        )
