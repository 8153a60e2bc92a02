"""What an event says, in a few words for the time line of `inspect`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fsdpclassify.records import Event, EventKind
from fsdpclassify.report.wording import duration, ranks_in_words

#: Kinds whose printed line says more than our words for it.
QUOTED = frozenset(
    {
        EventKind.ERROR, EventKind.EXIT, EventKind.SIGNAL, EventKind.KILL, EventKind.HARDWARE, EventKind.TRANSPORT,
        EventKind.NCCL_ERROR, EventKind.PEER_CLOSED, EventKind.MISMATCH, EventKind.PHRASE, EventKind.STORE,
        EventKind.STACK_WAIT, EventKind.WATCHDOG_ABORT, EventKind.STATED_HANG, EventKind.MEMORY, EventKind.BARRIER,
        EventKind.RECORDED,
    }
)  # fmt: skip


_LONG_S = 30.0


def phrase(event: Event, *, lowest: int | None = None) -> str:
    """One clause about `event`; of several steps it is the last one, and `lowest` the least of their numbers."""
    if event.kind in (EventKind.STEP, EventKind.PROGRESS):
        return _step(event, lowest)
    words = _WORDS.get(event.kind)
    said = words(event) if words is not None else ""
    return said or ": ".join(p for p in (event.name, event.detail) if p)


def _step(event: Event, lowest: int | None) -> str:
    total = "" if event.total is None else f" of {event.total}"
    span = f"steps {lowest} to {event.step}" if lowest is not None and lowest != event.step else f"step {event.step}"
    pace = "" if event.value is None else f", {duration(round(event.value, 3))} each"
    name = f"{event.name}: " if event.kind is EventKind.PROGRESS and event.name else ""
    spent = f", {duration(event.elapsed_s)} so far" if event.elapsed_s else ""
    return f"{name}{span}{total}{pace}{spent}"


def _call(event: Event) -> str:
    size = "" if event.numel_in is None else f" ({event.numel_in} element{'s' * (event.numel_in != 1)})"
    seq = "" if event.seq is None else f" seq {event.seq}"
    return f"{event.op or 'a collective'}{seq}{size}"


def _gave_up(event: Event) -> str:
    waited = event.elapsed_s or event.timeout_s
    return f"gave up {_call(event)}" + (f" after {duration(_rounded(waited))}" if waited else "")


def _rounded(seconds: float) -> float:
    """Without the milliseconds that a poll of the watchdog adds to a timeout."""
    return float(round(seconds)) if seconds >= _LONG_S else round(seconds, 3)


def _counters(event: Event) -> str:
    group = f"group {event.group}: " if event.group else ""
    pairs = (("enqueued", event.enqueued), ("completed", event.completed), ("stuck at", event.seq))
    return group + ", ".join(f"{name} {value}" for name, value in pairs if value is not None)


def _told(event: Event) -> str:
    by = f" by rank {event.peer}" if event.peer is not None else ""
    counters = _counters(event)
    return f"was told of a timeout{by}" + (f"; {counters}" if event.enqueued is not None else "")


def _joined(event: Event) -> str:
    how = {"lagging": "never came to", "joined": "joined, did not finish", "state": "last state:"}
    return f"{ranks_in_words(event.ranks)} {how.get(event.name or '', 'are listed for')} {_call(event)}"


def _barrier(event: Event) -> str:
    return f"{ranks_in_words(event.ranks)} did not pass the barrier" if event.ranks else _gave_up(event)


def _ended(event: Event) -> str:
    code = "" if event.code is None else f"exit code {event.code}"
    local = "" if event.local_rank is None or event.rank is not None else f"local rank {event.local_rank}"
    return ", ".join(part for part in (code, local, event.name) if part)


def _signal(event: Event) -> str:
    if event.name == "peer_terminated":
        return f"the launcher ends one of its processes with {event.detail or 'a signal'}"
    return event.detail or event.name or ""


def _fixed(text: str, _: Event) -> str:
    return text


_WORDS: dict[EventKind, Callable[[Event], str]] = {
    EventKind.TIMEOUT: _gave_up,
    EventKind.GLOO: _gave_up,
    EventKind.STATUS: _counters,
    EventKind.NOTIFIED: _told,
    EventKind.DUMPING: partial(_fixed, "told the others of its timeout"),
    EventKind.HEARTBEAT: partial(_fixed, "its watchdog itself made no progress"),
    EventKind.JOINED: _joined,
    EventKind.BARRIER: _barrier,
    EventKind.EXIT: _ended,
    EventKind.SIGNAL: _signal,
    EventKind.STACK_WAIT: partial(_fixed, "stands in a collective"),
    EventKind.FINISHED: partial(_fixed, "the run says that it is done"),
    EventKind.STATED_HANG: partial(_fixed, "the run is said to hang here"),
}
