"""Errors that tell how a wait ended, and nothing of why it began: printed after it was given up, by a rank that lived.

Ranks that give up close their connections, and whoever comes late finds nobody. What it raises then is its own error
and no reason of the wait. But a rank that failed first may print its traceback late, when its clean-up has waited
for the others: then its own cause stands there, and nothing was heard of it all the while.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from fsdpclassify.records import Event, EventKind, Line
from fsdpclassify.roles import came_before, is_clocked

#: The other end is gone, whatever raises it; not where the other end is a server of files or pages.
_PEER_GONE = re.compile(
    r"[Cc]onnection (?:was )?(?:reset|refused|closed|aborted)\b|[Bb]roken pipe|[Ss]ocket (?:was |is )?closed"
    r"|ransport endpoint is not connected|client socket has (?:timed out|failed)|Connection(?:Refused|Aborted)Error"
)
_SERVER = re.compile(r"https?:|HTTP|[Uu]rllib|[Rr]equests?\b|S3|s3:|gs:|boto|redis|[Ww]andb|[Mm]lflow|/(?:mnt|data)/")
_ENDED = frozenset({"KeyboardInterrupt"})
#: A rank that still prints in this last part of the wait was at work in it.
_LAST_PART = 0.5


def without_aftermath(
    events: Sequence[Event], lines: Iterable[Line], detection: Event, onset: float | None, waiting: Sequence[int]
) -> tuple[Event, ...]:
    """`events` without the errors of ranks that do not wait if they are part of the end of the wait."""
    shown = frozenset(waiting)
    late = [
        e for e in events if e.kind is EventKind.ERROR and e.rank not in shown and not came_before(e, detection, onset)
    ]
    if not late:
        return tuple(events)
    last = _last_words(lines, {e.rank for e in late if e.rank is not None}, detection)
    left_out = {id(e) for e in late if _is_echo(e) or _was_at_work(e, last, detection, onset)}
    return tuple(e for e in events if id(e) not in left_out)


def _is_echo(event: Event) -> bool:
    """Whether the error says that its peers are gone, or that somebody ended the run by hand."""
    said = f"{event.name}: {event.detail or ''}"
    return event.name in _ENDED or (_PEER_GONE.search(said) is not None and not _SERVER.search(said))


def _last_words(lines: Iterable[Line], ranks: set[int], detection: Event) -> dict[int, float]:
    """For each of `ranks` the last time that it printed before the detection."""
    last: dict[int, float] = {}
    end = detection.time
    if not ranks or end is None or not is_clocked(detection):
        return last
    for line in lines:
        if line.rank in ranks and line.stamped and line.time is not None and line.time < end:
            last[line.rank] = max(line.time, last.get(line.rank, line.time))
    return last


def _was_at_work(event: Event, last: Mapping[int, float], detection: Event, onset: float | None) -> bool:
    """Whether the rank printed far into the wait: it had not failed before that, and failed only when it came."""
    at = last.get(event.rank) if event.rank is not None else None
    if at is None or onset is None or detection.time is None:
        return False
    return at > onset + _LAST_PART * (detection.time - onset)
