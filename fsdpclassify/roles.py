"""Who waited, who failed first, who did not come: from events, by clock, never from absence in a cut log."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from fsdpclassify.records import RECORDED_STOPS, RECORDED_WAITS, Event, EventKind, Incident

_WAITS = frozenset(
    {
        EventKind.TIMEOUT,
        EventKind.HEARTBEAT,
        EventKind.BARRIER,
        EventKind.STORE,
        EventKind.GLOO,
        EventKind.NCCL_ERROR,
        EventKind.PEER_CLOSED,
        EventKind.MISMATCH,
        EventKind.STACK_WAIT,
        EventKind.PHRASE,
        EventKind.WATCHDOG_ABORT,
    }
)
#: An error this long after the onset can still be the reason of the wait (design: clocks agree within 5 s).
_SLACK_S = 5.0
_ABORT, _TERM = -6, -15
_OFF_THE_BUS = 79
#: Hosts have multiples of this many GPUs.
_NODE = 4
#: At most one in this many speaking ranks may be quiet for their silence to mean something.
_FEW = 3


def waiting_ranks(events: Iterable[Event]) -> tuple[int, ...]:
    """Global ranks shown standing in, or thrown out of, a collective or its set-up."""
    found: set[int] = set()
    for e in events:
        if e.kind in _WAITS and e.rank is not None:
            found.add(e.rank)
        elif e.kind is EventKind.RECORDED and e.name in RECORDED_WAITS and e.rank is not None:
            found.add(e.rank)
        elif e.kind is EventKind.DUMPING and e.rank is not None:
            found.add(e.rank)
        elif e.kind is EventKind.NOTIFIED and e.peer is not None:
            found.add(e.peer)
        elif e.kind is EventKind.JOINED and e.name == "joined":
            found.update(e.ranks)
    found |= _silent_after_init(events)
    return tuple(sorted(found or _aborted(events)))


def _aborted(events: Iterable[Event]) -> set[int]:
    """Where no watchdog line tells its rank: those that the launcher's report shows ended by the watchdog's abort."""
    listed = list(events)
    if not any(e.kind in (EventKind.TIMEOUT, EventKind.WATCHDOG_ABORT) for e in listed):
        return set()
    return {e.rank for e in listed if e.name == "report" and e.code == _ABORT and e.rank is not None}


def _silent_after_init(events: Iterable[Event]) -> set[int]:
    """In a stated hang right after communicator set-up, the ranks whose set-up is shown complete are waiting."""
    listed = list(events)
    ready = [e for e in listed if e.kind in (EventKind.WORLD, EventKind.STATED_HANG) and e.name == "Init COMPLETE"]
    if not ready or not any(e.kind is EventKind.STATED_HANG for e in listed):
        return set()
    if any(e.kind is EventKind.STEP and _may_follow(e, ready) for e in listed):
        return set()
    return {e.rank for e in ready if e.rank is not None}


def _may_follow(step: Event, ready: Sequence[Event]) -> bool:
    """Whether a step may have come after the set-up: all but one in front of every set-up line of its own file."""
    own = [e.line.number for e in ready if e.line.source == step.line.source]
    return not own or step.line.number > min(own)


#: Names of device events that take ranks or their transport away; all other names are about how a host is.
FAULTS = frozenset({"gpu", "iommu", "link", "pcie", "panic"})


def is_fault(event: Event) -> bool:
    """Whether a device event is a failure, and not a slow host, a topology or something that was corrected."""
    return event.name in FAULTS


def is_early_failure(event: Event, detection: Event, onset: float | None) -> bool:
    """Whether an error, exit or signal came before the wait was given up, and is not part of the teardown."""
    if event.kind not in (EventKind.ERROR, EventKind.EXIT, EventKind.SIGNAL, EventKind.KILL, EventKind.HARDWARE):
        return False
    if event.kind is EventKind.HARDWARE and not is_fault(event):
        return False
    if event.code in (_ABORT, _TERM) and event.kind is EventKind.EXIT:
        return False
    if _is_noticed_death(event, detection):
        return True
    if event.kind is EventKind.SIGNAL and (
        event.detail == "Aborted" or event.name in ("SIGABRT", "SIGTERM", "peer_terminated")
    ):
        return False
    return came_before(event, detection, onset)


def by_absent(event: Event, incident: Incident) -> bool:
    """Whether a rank that is not shown waiting may have printed it; where all wait, an unnamed printer waits too."""
    if event.rank is not None:
        return event.rank not in incident.waiting
    return incident.world_size is None or len(incident.waiting) < incident.world_size


def _is_noticed_death(event: Event, detection: Event) -> bool:
    """A process killed by a signal, noticed by its launcher up to a few seconds after its peers lost it."""
    killed = event.kind is EventKind.EXIT and event.code is not None and event.code < 0
    if not killed or detection.kind is not EventKind.PEER_CLOSED or event.time is None or detection.time is None:
        return False
    return is_clocked(event) and abs(event.time - detection.time) <= _SLACK_S


def came_before(event: Event, detection: Event, onset: float | None) -> bool:
    """By clock when both lines are stamped, by position within one file, and open (True) between unstamped files."""
    if is_clocked(event) and is_clocked(detection) and event.time is not None and detection.time is not None:
        limit = detection.time if onset is None else min(detection.time, onset + _SLACK_S)
        same = (event.line.source, event.line.part) == (detection.line.source, detection.line.part)
        if same and event.time == detection.time:
            return event.line.number < detection.line.number
        return event.time <= limit
    if (event.line.source, event.line.part) == (detection.line.source, detection.line.part):
        return event.line.number < detection.line.number
    return not _inherited_later(event, detection)


def _inherited_later(event: Event, detection: Event) -> bool:
    """Whether an unstamped line of another file follows a stamp that is later than the detection already."""
    if event.line.stamped or not is_clocked(detection) or event.line.time is None or detection.time is None:
        return False
    return event.line.time > detection.time + _SLACK_S


def is_clocked(event: Event) -> bool:
    """Whether the time is that of the event: printed on its line, in a launcher's report, or estimated from one."""
    return event.line.stamped or event.name == "report" or event.estimated


def failed_ranks(
    events: Sequence[Event], detection: Event, onset: float | None, waiting: Sequence[int]
) -> tuple[int, ...]:
    """Ranks with an early failure of their own that are not themselves shown waiting and took no step after it."""
    shown = frozenset(waiting)
    steps = _last_steps(events)
    return tuple(
        sorted(
            {
                e.rank
                for e in events
                if e.rank is not None
                and e.rank not in shown
                and is_early_failure(e, detection, onset)
                and is_ordered(e, detection)
                and not _lived_on(e, steps)
            }
        )
    )


def _last_steps(events: Iterable[Event]) -> dict[int, float]:
    """For each rank the time printed on its last step line."""
    last: dict[int, float] = {}
    for e in events:
        if e.kind is EventKind.STEP and e.rank is not None and e.time is not None and e.line.stamped:
            last[e.rank] = max(e.time, last.get(e.rank, e.time))
    return last


def _lived_on(event: Event, steps: Mapping[int, float]) -> bool:
    """Whether the rank finished a step after an error: it survived it. Unstamped lines may just be flushed late."""
    if event.kind is not EventKind.ERROR or not event.line.stamped or event.time is None or event.rank is None:
        return False
    return steps.get(event.rank, event.time) > event.time


def is_ordered(event: Event, detection: Event) -> bool:
    """Whether a device event is known to lie before the detection, and not only not known to lie after it.

    A run that worked on a GPU did so before the GPU fell off its bus: there is no way back without a boot.
    """
    if event.kind is not EventKind.HARDWARE or event.code == _OFF_THE_BUS:
        return True
    return event.line.source == detection.line.source or (is_clocked(event) and is_clocked(detection))


def missing_ranks(
    events: Sequence[Event], waiting: Sequence[int], world: int | None, speakers: Collection[int] = ()
) -> tuple[int, ...]:
    """Ranks that the log itself shows not to have come: named by a barrier or report, behind in the counters, the
    single one of a known world that is not among the waiting, or the few of all `speakers` that show no wait. Only
    where every rank speaks does the silence of one say something: else its log, or a part of it, was left out.
    """
    stopped, named = recorded_stops(events)
    if stopped:
        return tuple(sorted(stopped))
    for e in events:
        if e.kind is EventKind.BARRIER or (e.kind is EventKind.JOINED and e.name == "lagging"):
            named.update(e.ranks)
        if e.kind is EventKind.STORE and e.peer is not None:
            named.add(e.peer)
    named |= _behind(events)
    named -= set(waiting)
    if not named and world is not None and world >= 3 and len(waiting) == world - 1:
        named = set(range(world)) - set(waiting)
    named = named or _gap(set(waiting), world)
    whole = world in (None, len(speakers)) and set(speakers) == set(range(len(speakers)))
    return tuple(sorted(named or (_quiet_speakers(events, set(waiting), set(speakers)) if whole else ())))


def unheard_ranks(events: Iterable[Event], missing: Collection[int], speaking: Collection[int]) -> tuple[int, ...]:
    """Those of `missing` for which nothing speaks but that nothing in the input is by them or about them."""
    heard = set(speaking)
    for e in events:
        if e.rank is not None and (e.kind is not EventKind.RECORDED or e.name != "no_dump"):
            heard.add(e.rank)
        if e.kind in (EventKind.BARRIER, EventKind.EXIT) or (e.kind is EventKind.JOINED and e.name == "lagging"):
            heard.update(e.ranks)
        if e.kind is EventKind.STORE and e.peer is not None:
            heard.add(e.peer)
        if e.kind in _OF_A_MAIN_PROCESS and e.rank is None:
            heard.add(0)  # what names no rank is mostly printed by the first one
    return tuple(sorted(set(missing) - heard))


_OF_A_MAIN_PROCESS = frozenset({EventKind.STEP, EventKind.PROGRESS, EventKind.PHASE})


def _gap(waiting: set[int], world: int | None) -> set[int]:
    """The one rank that is absent from waiting ranks which else fill whole nodes of `_NODE` ranks from rank 0 on.

    A report cut anywhere would have lost several. That the last rank exists at all is shown by the world's size, or
    by seven others that make up all but it of the commonest host.
    """
    size = -(-(max(waiting, default=0) + 1) // _NODE) * _NODE
    if len(waiting) != size - 1 or world not in (None, size):  # before anything as long as a hostile number is made
        return set()
    absent = set(range(size)) - waiting
    return absent if world == size or size > _NODE or max(absent) < max(waiting) else set()


def recorded_stops(events: Sequence[Event]) -> tuple[set[int], set[int]]:
    """Ranks for which the waiting ends, by flight recorder: those whose own dump shows it, and those without one."""
    stops = [e for e in events if e.kind is EventKind.RECORDED and e.name in RECORDED_STOPS]
    without = {e.rank for e in stops if e.rank is not None and e.name == "no_dump"}
    return {e.rank for e in stops if e.rank is not None} - without, without


def _quiet_speakers(events: Sequence[Event], waiting: set[int], speakers: set[int]) -> set[int]:
    """Ranks whose own log is there and shows neither a wait nor a notice of one, if they are few beside the waiting."""
    noticed = {e.rank for e in events if e.kind is EventKind.NOTIFIED and e.rank is not None}
    quiet = speakers - waiting - noticed
    few = len(quiet) <= max(1, len(speakers) // _FEW)
    return quiet if few and waiting and waiting <= speakers else set()


def _behind(events: Sequence[Event]) -> set[int]:
    """Notified ranks whose counter of a group lies below what the waiting ranks enqueued on the same group."""
    stuck: dict[str, Counter[int]] = defaultdict(Counter)
    for e in events:
        if e.kind in (EventKind.STATUS, EventKind.DUMPING) and e.group and e.enqueued is not None:
            stuck[e.group][e.enqueued] += 1
    behind = set()
    for e in events:
        if (
            e.kind is EventKind.NOTIFIED
            and e.rank is not None
            and e.group
            and e.enqueued is not None
            and stuck[e.group]
        ):
            if e.enqueued < min(stuck[e.group]):
                behind.add(e.rank)
    return behind
