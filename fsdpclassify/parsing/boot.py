"""The clock of kernel lines that only say how many seconds the machine had been up.

`[81233.104412] …` is put on the wall clock where the input itself holds the difference: a line of the same
node with both stamps, or the end of one process, told by the kernel and by the run's launcher. Otherwise such
a file has no clock, and stamps inside its messages (a clock being set, an audit record) are not taken for one.
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence

from fsdpclassify.parsing.clock import Stamp
from fsdpclassify.parsing.peeling import Peeled

_BOOT = re.compile(r"^\s{0,4}\[ {0,8}(?P<up>\d{1,9}\.\d{6})\]")
_BOTH = re.compile(r"\bkernel: \[ {0,8}(?P<up>\d{1,9}\.\d{6})\]")
_KILL = re.compile(r"[Kk]illed process (?P<pid>\d{1,9})\b|oom-kill:.{0,600},pid=(?P<pid2>\d{1,9}),")
_END = re.compile(r"exit ?code {0,6}: {0,4}-9\b.{0,60}\(pid: (?P<pid>\d{1,9})\)")

Times = list[float | None]


def with_boot_clock(items: Sequence[Peeled], times: Times) -> Times:
    """`times` of `items` with those of boot-relative files set, or taken away where nothing ties them down."""
    up = {
        i: float(m["up"])
        for i, item in enumerate(items)
        if item.text[:5].lstrip()[:1] == "[" and (m := _BOOT.match(item.text))
    }
    sources = {items[i].source for i in up}
    if not sources:
        return times
    known = _Anchors(items, times, up)
    found = list(times)
    for i, seconds in up.items():
        offset = known.offset(items[i])
        found[i] = None if offset is None else offset + seconds
        items[i].stamp = None if offset is None else Stamp(seconds=offset + seconds)
    return found


class _Anchors:
    """Wall clock minus seconds since the boot, by node and by file."""

    def __init__(self, items: Sequence[Peeled], times: Times, up: dict[int, float]) -> None:
        self._by_node: dict[str | None, list[float]] = defaultdict(list)
        for i, item in enumerate(items):
            at = times[i]
            if at is not None and i not in up and "kernel: [" in item.text and (m := _BOTH.search(item.text[:400])):
                self._by_node[item.node].append(at - float(m["up"]))
        self._by_source = _shared_kills(items, times, up) if len(up) else {}

    def offset(self, item: Peeled) -> float | None:
        """Seconds to add for the file of `item`; None where nothing in the input tells them."""
        node = item.node
        if node is None and len(self._by_node) == 1:
            node = next(iter(self._by_node))
        if node in self._by_node:
            return statistics.median(self._by_node[node])
        return self._by_source.get(item.source)


def _shared_kills(items: Sequence[Peeled], times: Times, up: dict[int, float]) -> dict[int, float]:
    """By file the smallest difference for one process: a launcher notices an end a little later than it comes."""
    killed = {(match["pid"] or match["pid2"]): i for i in reversed(up) if (match := _KILL.search(items[i].text[:2000]))}
    found: dict[int, float] = {}
    for pid, at in _ends(items, times, up) if killed else ():
        if pid in killed:
            source, offset = items[killed[pid]].source, at - up[killed[pid]]
            found[source] = min(offset, found.get(source, offset))
    return found


def _ends(items: Sequence[Peeled], times: Times, up: dict[int, float]) -> Iterator[tuple[str, float]]:
    """Processes that a launcher saw killed, with its time: on the line, or that of its report above it."""
    last: dict[int, float] = {}
    for i, item in enumerate(items):
        at = times[i]
        if i in up:
            continue
        if at is not None:
            last[item.source] = at
        if "(pid: " in item.text and item.source in last and (match := _END.search(item.text[:2000])):
            yield match["pid"], last[item.source]
