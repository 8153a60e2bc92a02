"""What a finished recording shows by itself: who waited, whether there was an incident, how long it took.

Only the rendered text is read, so that nothing enters `incident.json` that the log does not say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_LOST = (
    r"Timed out waiting \d+ms for (?:recv|send)|Connection closed by peer|Connection reset by peer|Broken pipe"
    r"|Application timeout caused pair closure|Read timeout|Write timeout|No route to host|Connection timed out"
)
_START = r"connectFullMesh failed|Connect timeout|[Ww]ait timeout after|Socket Timeout|RendezvousTimeout|timed out after"
_OTHER = (
    r"failed to pass monitoredBarrier|timed out in monitoredBarrier|Detected mismatch between collectives"
    r"|data size doesn't match|op\.preamble\.length|Watchdog caught collective|Expected to have finished reduction"
)
_INCIDENT = re.compile(f"{_LOST}|{_START}|{_OTHER}|clients joined")
_WAITING = re.compile(rf"\[rank(\d+)\]:.*(?:{_LOST}|{_START}|Watchdog caught collective)")
_MONITORED = re.compile(r"\[Rank \d+\]: Rank (\d+) failed to pass monitoredBarrier")
_TIMEOUT = re.compile(r"Timed out waiting (\d+)ms|Timeout\(ms\)=(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Testimony:
    """`waiting`: ranks shown waiting or losing a peer; `timeout_s`: the limit that ran out, if printed."""

    incident: bool
    waiting: tuple[int, ...]
    timeout_s: float | None
    raised: tuple[int, ...]


def testify(files: Mapping[str, str]) -> Testimony:
    """Read all log files of one recording (path -> text)."""
    text = "\n".join(files.values())
    match = _TIMEOUT.search(text)
    return Testimony(
        incident=_INCIDENT.search(text) is not None,
        waiting=tuple(sorted({int(m[1]) for m in _WAITING.finditer(text)})),
        timeout_s=int(match[1] or match[2]) / 1000 if match else None,
        raised=tuple(sorted({int(r) for r in re.findall(r"\[rank(\d+)\]: Traceback", text)})),
    )


def decisive_lines(files: Mapping[str, str], pattern: str, limit: int = 3) -> list[str]:
    """`file:line` of the last lines that match `pattern`; lines count by newline alone."""
    if not pattern:
        return []
    found = [
        f"{name}:{number}"
        for name, text in sorted(files.items())
        for number, line in enumerate(text.split("\n"), 1)
        if re.search(pattern, line)
    ]
    return found[-limit:]
