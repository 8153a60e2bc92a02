"""What a finished recording shows by itself: who waited, whether there was an incident, how long it took.

Only the rendered text is read, so that nothing enters `incident.json` that the log does not say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_LOST = (
    r"Timed out waiting \d+ms for (?:recv|send)|Connection closed by peer|Connection reset by peer|Broken pipe"
    r"|Application timeout caused pair closure|Read timeout|Write timeout|No route to host|Connection timed out"
    r"|Software caused connection abort|connect: Network is unreachable"
)
_START = (
    r"connectFullMesh failed|Connect timeout|[Ww]ait timeout after|Socket Timeout|RendezvousTimeout"
    r"|timed out after \d+ms"
)
_OTHER = (
    r"failed to pass monitoredBarrier|timed out in monitoredBarrier|Detected mismatch between collectives"
    r"|data size doesn't match|op\.preamble\.length|Watchdog caught collective|Expected to have finished reduction"
)
_INCIDENT = re.compile(f"{_LOST}|{_START}|{_OTHER}|clients joined")
_WAITING = re.compile(rf"\[rank(\d+)\]:.*(?:{_LOST}|{_START}|Watchdog caught collective)")
#: A rank that a check of its own collective threw out: it was in there with the others.
_THROWN = re.compile(
    r"\[rank(\d+)\]:.*Detected mismatch between collectives|\[(?:rank|default)(\d+)\]: *what\(\):.*preamble"
)
#: The parent of spawned processes repeats the traceback of the first that failed, without a prefix.
_SPAWNED = re.compile(r"^-- Process (\d+) terminated with the following error:$", re.MULTILINE)
#: A rank that has no group yet raises without a prefix of its own: a label or the name of its file says who it is.
_LABELLED = re.compile(rf"^(\d+): .*(?:{_START}|clients joined|Failed to recv, got 0 bytes)", re.MULTILINE)
_LABELLED_ABORT = re.compile(r"^(\d+): +what\(\):.*preamble", re.MULTILINE)
_OWN_FILE = re.compile(r"^train-(\d+)\.log$")
_IN_TREE = re.compile(r"^attempt_\d+/(\d+)/stderr\.log$")
_FRAME = re.compile(r"\[rank(\d+)\]:   File \"[^\"]+\", line \d+, in (\w+)")
_WORK = re.compile(r"\[rank(\d+)\]:.*Watchdog caught .*(OpType=\w+, NumelIn=\d+)")
_UNCONNECTED = re.compile(r"\[default(\d+)\]:.*(?:connectFullMesh failed|connect: Network is unreachable)")
_SAID = re.compile(r"\[default(\d+)\]:.*\[rank (\d+)\]")
#: Errors by which a log says that the ranks' sequences of collectives differ.
_CHECKED = re.compile(r"Detected mismatch between collectives|Expected to have finished reduction|preamble\.length")
_REDUCER = re.compile(r"\[rank(\d+)\]:.*Expected to have finished reduction")
_TIMEOUT = re.compile(r"Timed out waiting (\d+)ms|Timeout\(ms\)=(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """`waiting`: ranks shown waiting, losing a peer or thrown out of a collective; `timeout_s`: the limit that ran out.

    `raised`: ranks with a traceback. `checked`: a check of the ranks' collectives speaks. `reducer`: ranks that
    DDP accuses of a step without all its gradients. `odd`: the one rank that stands in another call than the rest.
    """

    incident: bool
    waiting: tuple[int, ...]
    timeout_s: float | None
    raised: tuple[int, ...]
    checked: bool
    reducer: tuple[int, ...]
    odd: tuple[int, ...]


def attest(files: Mapping[str, str]) -> Shown:
    """Read all log files of one recording (path -> text)."""
    text = "\n".join(files.values())
    match = _TIMEOUT.search(text)
    return Shown(
        incident=_INCIDENT.search(text) is not None,
        waiting=tuple(
            sorted({int(m[1]) for m in _WAITING.finditer(text)} | _thrown(files) | _unconnected(files) | _alone(files))
        ),
        timeout_s=int(match[1] or match[2]) / 1000 if match else None,
        raised=_ranks(re.findall(r"\[rank(\d+)\]: Traceback", text)),
        checked=_CHECKED.search(text) is not None,
        reducer=_ranks(_REDUCER.findall(text)),
        odd=_odd(text),
    )


def _ranks(found: Iterable[str | int]) -> tuple[int, ...]:
    return tuple(sorted({int(r) for r in found}))


def _odd(text: str) -> tuple[int, ...]:
    """The rank whose innermost call (or timed-out operation) differs from that of all others, which agree."""
    calls = {int(rank): call for rank, call in _FRAME.findall(text) if call != "wrapper"}
    calls = calls or {int(rank): work for rank, work in _WORK.findall(text)}
    counts = Counter(calls.values())
    if len(counts) != 2 or sorted(counts.values())[0] != 1 or len(calls) < 3:
        return ()
    rare = min(counts, key=lambda call: counts[call])
    return tuple(rank for rank, call in calls.items() if call == rare)


def _thrown(files: Mapping[str, str]) -> set[int]:
    found = {int(m[1] or m[2]) for text in files.values() for m in _THROWN.finditer(text)}
    for name, text in files.items():
        # The message of a C++ abort has no prefix of its own; in a folder of one node the path names the rank.
        if (own := _IN_TREE.match(name) or _OWN_FILE.match(name)) and re.search(r"what\(\):.*preamble", text):
            found.add(int(own[1]))
        found |= {int(m[1]) for m in _LABELLED_ABORT.finditer(text)}
    return found


def _alone(files: Mapping[str, str]) -> set[int]:
    """Ranks whose wait is told by a parent, or before they have a group."""
    found: set[int] = set()
    for name, text in files.items():
        found |= {int(m[1]) for m in _LABELLED.finditer(text)}
        found |= {int(m[1]) for m in _SPAWNED.finditer(text) if re.search(f"{_LOST}|{_START}", text[m.end() :])}
        if (own := _OWN_FILE.match(name)) and re.search(f"{_START}|clients joined|Failed to recv, got 0 bytes", text):
            found.add(int(own[1]))
    return found


def _unconnected(files: Mapping[str, str]) -> set[int]:
    """Ranks that never got their group. They have no rank in front yet: the launcher's number must stand for it.

    That number is local: on two nodes it counts only where the same file shows which rank it is.
    """
    found: set[int] = set()
    for name, text in files.items():
        alone = not name.startswith("node")
        shown = {local: rank for local, rank in _SAID.findall(text)}
        for local in _UNCONNECTED.findall(text):
            if alone or local in shown:
                found.add(int(shown.get(local, local)))
    return found


#: What stands in a traceback's last line, a launcher's report or an abort; weaker than a wait that is named.
_ENDED = re.compile(r"exitcode *: -?\d+|\b[A-Za-z]+Error\b: |what\(\):|Fatal Python error|Signal \d+")


def telling_line(files: Mapping[str, str]) -> str:
    """The first line that names a wait, a lost peer or a mismatch, else the first that names an end; "" if none does.

    The launcher's console comes before the streams of single ranks, as a reader opens them.
    """
    order = sorted(files, key=lambda name: ("/" in name, name))
    lines = [line.strip() for name in order for line in files[name].split("\n")]
    return next((line for p in (_INCIDENT, _ENDED) for line in lines if p.search(line)), "")


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
