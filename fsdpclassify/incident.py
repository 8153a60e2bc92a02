"""Events -> incidents: what was detected, when the wait began, and which attempt it belongs to.

An incident is an episode in which a rank of a training run is shown waiting in, or thrown out of, a
collective because of a peer or the transport. Logs whose only distributed job is an inference
server hold none, whatever they print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fsdpclassify.absent_node import absent_node
from fsdpclassify.aftermath import without_aftermath
from fsdpclassify.attempts import Episode, episodes
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
from fsdpclassify.roles import (
    came_before,
    failed_ranks,
    is_clocked,
    missing_ranks,
    recorded_stops,
    unheard_ranks,
    waiting_ranks,
)
from fsdpclassify.speakers import Heard


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
    heard = Heard.of(lines)
    return [_assemble(e, heard, dated, offsets, kinds) for e in episodes(detections, events, lines, order)]


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
    if not noticed or any(e.kind is EventKind.ATTEMPT and e.name != "resumed" for e in events):
        return list(detections)
    time = max(noticed.values())
    return [d if d.line.stamped else _not_before(replace(d, time=time, estimated=True), d.line) for d in detections]


def _not_before(estimated: Event, line: Line) -> Event:
    """A line was not printed before the last stamp above it in its own file, whatever another node's launcher saw."""
    if line.time is None or estimated.time is None or line.time <= estimated.time:
        return estimated
    return replace(estimated, time=line.time)


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
    progressed = any(
        e.kind in (EventKind.STEP, EventKind.PROGRESS) and e.line.source == last.source and e.line.number > last.number
        for e in events
    )
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


def _assemble(
    episode: Episode,
    heard: Heard,
    dated: bool,
    offsets: Mapping[str, float],
    kinds: Sequence[InputKind | None],
) -> Incident:
    detection = _leading(episode.detections)
    onset = _onset(episode.detections)
    world = world_size(episode.events)
    episode = replace(episode, events=bearing(episode.events, heard.witnesses, detection, onset, world))
    waiting = waiting_ranks(episode.events)
    telling = without_aftermath(episode.events, episode.lines, detection, onset, waiting)
    episode = replace(episode, events=telling)
    failed = failed_ranks(episode.events, detection, onset, waiting)
    # A rank that failed explains the wait; silence of others then says nothing.
    missing = missing_ranks(episode.events, waiting, world, () if failed else heard.speakers)
    if not failed and not recorded_stops(episode.events)[0]:
        node = absent_node(heard.witnesses, episode.events, waiting, world, kinds)
        missing = node if set(missing) <= set(node) else missing
    else:
        node = ()
    ranks = {line.rank for line in heard.witnesses if line.rank is not None}
    unheard = unheard_ranks(episode.events, set(missing) - set(node), ranks)
    return Incident(
        detection=detection,
        events=episode.events,
        lines=episode.lines,
        collective=_collective(episode, detection, onset, dated),
        onset=onset,
        world_size=world,
        waiting=waiting,
        failed=failed,
        missing=missing,
        ledger=build_ledger(
            episode.events,
            heard.witnesses,
            waiting=waiting,
            failed=failed,
            missing=missing,
            offsets=offsets,
            unheard=unheard,
        ),
        nodes=tuple(sorted({e.line.node for e in episode.events if e.line.node and e.name != "elsewhere"})),
        first_line=episode.first_line,
        last_line=episode.last_line,
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
        onset=_to_the_second(onset, detection),
        detected=detection.time,
        dated=dated and is_clocked(detection),
    )


def _to_the_second(onset: float | None, detection: Event) -> float | None:
    """The onset no finer than the stamp that it was reckoned from: the fraction of `ran for` is not that of a clock."""
    whole = onset is not None and detection.time is not None and detection.time.is_integer()
    return float(round(onset)) if whole and onset is not None else onset


def _group(first: Event, events: Sequence[Event]) -> str | None:
    """The group of the timed-out work; before torch 2.14 only the rank's status line names it."""
    if first.group:
        return first.group
    for e in events:
        if e.kind is EventKind.STATUS and e.rank == first.rank and e.seq == first.seq and e.group:
            return e.group
    return None
