"""Events -> incidents: what was detected, when the wait began, and which attempt it belongs to.

An incident is an episode in which a rank of a training run is shown waiting in, or thrown out of, a
collective because of a peer or the transport. Logs whose only distributed job is an inference
server hold none, whatever they print.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from fsdpclassify.absent_node import absent_node
from fsdpclassify.bearing import bearing
from fsdpclassify.clocks import clock_offsets, corrected
from fsdpclassify.ledger import build_ledger, world_size
from fsdpclassify.meaning import meaning_of
from fsdpclassify.order import Order
from fsdpclassify.records import (
    DETECTIONS,
    RECORDED_WAITS,
    Collective,
    Event,
    EventKind,
    Incident,
    InputKind,
    Line,
)
from fsdpclassify.roles import came_before, failed_ranks, is_clocked, missing_ranks, recorded_stops, waiting_ranks
from fsdpclassify.speakers import speakers

#: Progress this many seconds after a detection belongs to a new episode, not to lines printed late.
_SETTLE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """The detections of one incident and all events of its attempt."""

    detections: tuple[Event, ...]
    events: tuple[Event, ...]
    restart: Event | None = None


def find_incidents(
    lines: Sequence[Line], events: Sequence[Event], *, kinds: Sequence[InputKind | None], hung: bool, dated: bool
) -> list[Incident]:
    """Incidents in time order (input order without clocks); `kinds` tells for each source what it is."""
    offsets = clock_offsets(lines, events)
    lines, events = corrected(lines, events, offsets)
    order = Order(lines, kinds)
    detections = sorted(_estimated(_detections(lines, events, kinds), events), key=order.key)
    if not detections and hung:
        detections = _stated_hang(lines, kinds)
    episodes = _episodes(detections, events, order)
    found = [_assemble(e, lines, dated, offsets, kinds) for e in episodes]
    return [_bounded(x, i, episodes) for i, x in enumerate(found)]


def _bounded(incident: Incident, index: int, episodes: Sequence[Episode]) -> Incident:
    """The incident with the lines of each file that lie between the neighbouring episodes."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    restart = episodes[index].restart
    if restart is not None:
        first[restart.line.source] = restart.line.number
    for other in episodes[:index]:
        for e in other.detections:
            first[e.line.source] = max(first.get(e.line.source, 0), e.line.number + 1)
    for other in episodes[index + 1 :]:
        for e in other.detections:
            last[e.line.source] = min(last.get(e.line.source, 1 << 60), e.line.number - 1)
    return replace(incident, first_line=first, last_line=last)


def _detections(lines: Sequence[Line], events: Sequence[Event], kinds: Sequence[InputKind | None]) -> list[Event]:
    served = _serving_sources(events)
    crashed = {e.line.source for e in events if e.kind is EventKind.ERROR and e.name == "cuda_error"}
    found = []
    for event in events:
        if event.line.source in served or (
            kinds[event.line.source] is InputKind.SYSTEM and event.kind is not EventKind.STACK_WAIT
        ):
            continue
        if event.kind is EventKind.WATCHDOG_ABORT and event.line.source in crashed:
            continue
        if is_detection(event):
            found.append(event)
    found = _without_interrupted(found, events)
    printed = [e for e in found if e.kind is not EventKind.RECORDED and e.name != "flight_record"]
    # What dumps show belongs to the wait that a log prints, and stands alone where none does.
    return printed or found or _silent_device_wait(lines, events, kinds)


#: What ranks print that lose their peers because somebody ended them all.
_LOSSES = frozenset({EventKind.NCCL_ERROR, EventKind.PEER_CLOSED, EventKind.WATCHDOG_ABORT, EventKind.STORE})


def _without_interrupted(found: list[Event], events: Sequence[Event]) -> list[Event]:
    """No detections where a time limit or a keyboard ended the whole run and ranks then merely lost their peers."""
    ends = [
        e for e in events if e.name == "time_limit" or (e.kind is EventKind.ERROR and e.name == "KeyboardInterrupt")
    ]
    if not ends or any(e.kind not in _LOSSES for e in found):
        return found
    return [] if all(any(came_before(end, e, None) for end in ends) for e in found) else found


def _estimated(detections: Sequence[Event], events: Sequence[Event]) -> list[Event]:
    """Unstamped detections with the time at which the launcher saw the first of its processes end.

    A Python traceback prints no time; torchrun notices the exit within a tenth of a second. Of several launchers
    the last to notice is taken, since one may have stopped early for a reason of its own; with restarts in the
    input nothing is estimated.
    """
    noticed: dict[int, float] = {}
    for e in events:
        if is_clocked(e) and e.time is not None and e.name in _NOTICES:
            noticed[e.line.source] = min(e.time, noticed.get(e.line.source, e.time))
    if not noticed or any(e.kind is EventKind.ATTEMPT for e in events):
        return list(detections)
    time = max(noticed.values())
    return [d if d.line.stamped else replace(d, time=time, estimated=True) for d in detections]


#: Events in which a launcher reacts to the end of one of its processes.
_NOTICES = frozenset({"elastic", "peer_terminated"})


def is_detection(event: Event) -> bool:
    """Whether this event alone shows a rank waiting or losing its peer."""
    if event.kind is EventKind.NOTIFIED or event.kind is EventKind.DUMPING:
        return event.detail == "states_timeout"
    if event.kind is EventKind.RECORDED:
        return event.name in RECORDED_WAITS or event.name == "stalled"
    if event.kind is EventKind.TRANSPORT and event.name == "async_event":
        return False  # a port or queue pair reports a fault: no rank is shown waiting yet
    return event.kind in DETECTIONS


def _serving_sources(events: Sequence[Event]) -> set[int]:
    """Sources of an inference server's job.

    Those that show a server and no training. Where no file shows training and a server's own file shows a
    rank waiting, the server is the distributed job, and the files of its other ranks are its own as well.
    """
    servers = {e.line.source for e in events if e.kind is EventKind.SERVER}
    training = {e.line.source for e in events if e.kind is EventKind.TRAINER}
    if servers and not training and any(e.line.source in servers and is_detection(e) for e in events):
        return {e.line.source for e in events}
    return servers - training


def _silent_device_wait(
    lines: Sequence[Line], events: Sequence[Event], kinds: Sequence[InputKind | None]
) -> list[Event]:
    """DMA faults of the GPUs beside a run whose log ends right after communicator set-up.

    Peer-to-peer copies that the IOMMU rejects never complete and print nothing: the system log is
    the only witness, and with a run log that stops there it shows ranks standing in a collective.
    """
    faults = [e for e in events if e.kind is EventKind.HARDWARE and e.name == "iommu"]
    ready = [e for e in events if e.kind is EventKind.RANK_MAP and e.name == "init_complete"]
    if not faults or not ready:
        return []
    last = ready[-1].line
    after = [line for line in lines if line.source == last.source and line.number > last.number]
    progressed = any(e.kind in (EventKind.STEP, EventKind.PROGRESS) and e.line in after for e in events)
    if progressed or kinds[last.source] is InputKind.SYSTEM:
        return []
    return [replace(ready[-1], kind=EventKind.STATED_HANG, name="device_wait")]


def _stated_hang(lines: Sequence[Line], kinds: Sequence[InputKind | None]) -> list[Event]:
    logs = [line for line in lines if kinds[line.source] is not InputKind.SYSTEM and line.body]
    if not logs:
        return []
    last = max(logs, key=lambda line: line.time if line.time is not None else 0.0)
    last = logs[-1] if last.time is None else last
    return [Event(kind=EventKind.STATED_HANG, line=last, rank=None, time=last.time, name="stated")]


def _episodes(detections: Sequence[Event], events: Sequence[Event], order: Order) -> list[Episode]:
    marks = _Marks(events, order)
    groups: list[list[Event]] = []
    for event in detections:
        if groups and not marks.progress_between(groups[-1][-1], event):
            groups[-1].append(event)
        else:
            groups.append([event])
    return [_episode(g, i, groups, events, order) for i, g in enumerate(groups)]


def _episode(
    group: Sequence[Event], index: int, groups: Sequence[Sequence[Event]], events: Sequence[Event], order: Order
) -> Episode:
    found = _events_of(group, index, groups, events, order)
    restart = _last_restart(found, group[0], order)
    if restart is not None:
        found = [e for e in found if e.kind in _LASTING or not order.is_before(e, restart)]
    return Episode(detections=tuple(group), events=tuple(found), restart=restart)


#: What one attempt says of the run holds for the next.
_LASTING = frozenset({EventKind.WORLD, EventKind.RANK_MAP, EventKind.TRAINER, EventKind.SERVER})


def _last_restart(events: Sequence[Event], detection: Event, order: Order) -> Event | None:
    """The last restart before the wait that the new attempt lived through: it finished a step in between."""
    marks = [e for e in events if e.kind is EventKind.ATTEMPT and order.is_before(e, detection)]
    for mark in reversed(marks):
        if any(e.kind is EventKind.STEP and order.is_before(mark, e) and order.is_before(e, detection) for e in events):
            return mark
    return None


class _Marks:
    """Steps, bars and restarts in order, with the furthest step up to each: looked up for every pair of detections."""

    def __init__(self, events: Sequence[Event], order: Order) -> None:
        self._order = order
        kinds = (EventKind.STEP, EventKind.PROGRESS, EventKind.ATTEMPT)
        found = sorted(((order.key(e), e) for e in events if e.kind in kinds), key=lambda m: m[0])
        self._keys = [key for key, _ in found]
        self._events = [e for _, e in found]
        self._best = list(accumulate((e.step if e.step is not None else -1 for e in self._events), max))
        self._first: dict[tuple[int, int], int] = {}
        for e in events:
            if e.line.rank is not None:
                self._first.setdefault((e.line.source, e.line.rank), e.line.number)

    def progress_between(self, last: Event, event: Event) -> bool:
        """Whether some rank shows a new step, or the launcher a restart, between two detections."""
        lo, hi = self._order.key(last), self._order.key(event)
        first = bisect_right(self._keys, lo)
        best = self._best[first - 1] if first else -1
        between = range(first, bisect_left(self._keys, hi))
        settled = lo[0] if _began_after(event, last) else lo[0] + _SETTLE_S
        return any(self._is_progress(self._events[i], self._keys[i], last, settled, best) for i in between)

    def _follows(self, e: Event, last: Event) -> bool:
        """Whether `e` was printed after `last`: in one file, by a rank that had spoken in it before `last`.

        A rank whose first line comes later may have been put there by `cat`, whenever it ran.
        """
        if e.line.source != last.line.source:
            return False
        return e.line.rank is None or self._first[(e.line.source, e.line.rank)] <= last.line.number

    def _is_progress(self, e: Event, key: tuple[float, int], last: Event, settled: float, best: int) -> bool:
        by_clock = self._order.by_clock
        if not by_clock and not self._follows(e, last):
            return False  # without clocks, only the order within one interleaved file means anything
        late = by_clock and key[0] < settled
        if e.kind is EventKind.ATTEMPT:
            return not (late and e.name == "start_up")
        return e.kind is EventKind.STEP and e.step is not None and e.step > best and not late


def _began_after(event: Event, earlier: Event) -> bool:
    """Whether the wait that `event` gives up began only after `earlier`: what stands between is no late flush."""
    if event.time is None or earlier.time is None or not event.elapsed_s:
        return False
    if not (event.line.stamped and earlier.line.stamped):
        return False  # times taken over from other lines are too old by an unknown amount
    return event.time - event.elapsed_s >= earlier.time


def _events_of(
    group: Sequence[Event], index: int, groups: Sequence[Sequence[Event]], events: Sequence[Event], order: Order
) -> list[Event]:
    """All events of the attempt: after the previous episode's last detection, before the next one's first."""
    lo = order.key(groups[index - 1][-1]) if index else (float("-inf"), -1)
    hi = order.key(groups[index + 1][0]) if index + 1 < len(groups) else (float("inf"), 1 << 60)
    stated = [e for e in group if e.kind is EventKind.STATED_HANG]
    printed = [e for e in events if not order.is_recorded(e) and (lo < order.key(e) < hi or order.is_timeless(e))]
    return printed + [e for e in events if order.is_recorded(e) and _nearest(e, groups, order) == index] + stated


def _nearest(event: Event, groups: Sequence[Sequence[Event]], order: Order) -> int:
    """The episode whose detections lie nearest to what a dump shows; without clocks the last one."""
    if event.time is None or not order.by_clock:
        return len(groups) - 1
    time = event.time
    apart = [min((abs(d.time - time) for d in group if d.time is not None), default=math.inf) for group in groups]
    return apart.index(min(apart))


def _assemble(
    episode: Episode,
    lines: Sequence[Line],
    dated: bool,
    offsets: Mapping[str, float],
    kinds: Sequence[InputKind | None],
) -> Incident:
    detection = _leading(episode.detections)
    onset = _onset(episode.detections)
    world = world_size(episode.events)
    episode = replace(episode, events=bearing(episode.events, lines, detection, onset, world))
    waiting = waiting_ranks(episode.events)
    failed = failed_ranks(episode.events, detection, onset, waiting)
    speaking = speakers(lines)
    # A rank that failed explains the wait; silence of others then says nothing.
    missing = missing_ranks(episode.events, waiting, world, () if failed else speaking)
    if not failed and not recorded_stops(episode.events)[0]:
        node = absent_node(lines, episode.events, waiting, world, kinds)
        missing = node if set(missing) <= set(node) else missing
    return Incident(
        detection=detection,
        events=episode.events,
        lines=tuple(lines),
        collective=_collective(episode, detection, onset, dated),
        onset=onset,
        world_size=world,
        waiting=waiting,
        failed=failed,
        missing=missing,
        ledger=build_ledger(episode.events, lines, waiting=waiting, failed=failed, missing=missing, offsets=offsets),
        nodes=tuple(sorted({e.line.node for e in episode.events if e.line.node and e.name != "elsewhere"})),
    )


def _leading(detections: Sequence[Event]) -> Event:
    """The first detection; among those that cannot be ordered, a timeout before a connection closed by a peer.

    A rank that gives up closes its connections, and its peers report that in the same second.
    """
    first = detections[0]
    if first.kind is not EventKind.PEER_CLOSED or first.line.stamped:
        return first
    same = [d for d in detections if not d.line.stamped and d.time == first.time]
    return next((d for d in same if d.kind in _TIMEOUTS), first)


_TIMEOUTS = frozenset({EventKind.TIMEOUT, EventKind.GLOO, EventKind.STORE, EventKind.BARRIER})


def _onset(detections: Sequence[Event]) -> float | None:
    """When the wait began: the earliest `log time - ran for` among the stamped detections."""
    starts = [e.time - (e.elapsed_s or 0.0) for e in detections if e.time is not None and is_clocked(e) and e.elapsed_s]
    return min(starts) if starts else None


def _collective(episode: Episode, detection: Event, onset: float | None, dated: bool) -> Collective | None:
    timed = [e for e in episode.detections if e.op or e.seq is not None] or [
        e
        for e in episode.events
        if e.kind in (EventKind.STATUS, EventKind.JOINED, EventKind.RECORDED) and (e.op or e.seq is not None)
    ]
    first = timed[0] if timed else detection
    timeout = next((e.timeout_s for e in episode.detections if e.timeout_s), None) or next(
        (e.elapsed_s for e in episode.detections if e.kind is EventKind.GLOO and e.elapsed_s), None
    )
    if not timed and timeout is None and detection.time is None:
        return None
    return Collective(
        op=first.op,
        meaning=meaning_of(first.op, first.numel_in),
        group=_group(first, episode.events),
        seq=first.seq,
        timeout_s=timeout,
        onset=onset,
        detected=detection.time,
        dated=dated and is_clocked(detection),
    )


def _group(first: Event, events: Sequence[Event]) -> str | None:
    """The group of the timed-out work; before torch 2.14 only the rank's status line names it."""
    if first.group:
        return first.group
    for e in events:
        if e.kind is EventKind.STATUS and e.rank == first.rank and e.seq == first.seq and e.group:
            return e.group
    return None
