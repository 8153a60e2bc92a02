"""Whom an event of the host is about: joined to a global rank by process id or by device, else left to its node.

Process ids and devices mean something on one node only (and inside a container a program sees other ids than the
kernel: those join nothing). Nodes are compared by their short name; where one
side has none, or an address in place of a name, a number must stand for one rank in the whole input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from fsdpclassify.parsing.processes import TRAINS
from fsdpclassify.records import Event, EventKind, Line

_HOST_KINDS = frozenset({EventKind.HARDWARE, EventKind.KILL, EventKind.MEMORY})
#: Events about one GPU; a refused transfer or a lost link concerns both of its ends.
_OF_A_GPU = frozenset({"gpu", "ecc", "thermal", "recovery", "cleanup", "pcie", "pcie_recovered", "nvlink"})
_ADDRESS = re.compile(r"^[\d.]+$|[:/]")
_PID = re.compile(
    r"\bpid='?(?P<a>\d{1,9})\b|[Kk]ill(?:ed)? process (?P<b>\d{1,9})\b|task [^\s:]{1,40}:(?P<c>\d{1,9}) blocked"
    r"|stuck for \d{1,6}s! \[[^\s:\]]{1,40}:(?P<d>\d{1,9})\]|task \d{1,6} \((?P<e>\d{1,9})\) Out Of Memory"
    r"|\bprocess (?P<f>\d{1,9}) (?:uid|stands) "
)
_COMMAND = re.compile(r"[Kk]ill(?:ed)? process \d{1,9} \((?P<a>[^)]{1,40})\)|,task=(?P<b>[^,]{1,40}),pid=")
_BUS = re.compile(
    r"\b(?P<domain>[0-9A-Fa-f]{4,8}:)?(?P<bus>[0-9A-Fa-f]{2}):(?P<dev>[0-9A-Fa-f]{2})(?:\.(?P<fn>[0-7]))?\b"
)
_NCCL = re.compile(r"\bcudaDev (?P<cuda>\d{1,3})(?: nvmlDev (?P<nvml>\d{1,3}))? busId (?P<bus>[0-9a-f]{1,12})\b")
_REPORT_PID = re.compile(r"\(pid: (\d{1,9})\)")
_PYTHON_LOG = re.compile(r"\[rank\d{1,6}\]:[EWIFV]\d{4} \d\d:\d\d:\d\d\.\d{1,9} (\d{1,9}) \S{1,160}:\d{1,6}\] ")

#: A number -> node -> the ranks that the run shows at that number of that node.
Places = dict[int, dict[str | None, set[int]]]


def with_hosts(events: Sequence[Event], lines: Sequence[Line]) -> list[Event]:
    """`events` with ranks for those of the host that the input joins to one; other programs' deaths are no kills."""
    if not any(e.kind in _HOST_KINDS for e in events):
        return list(events)
    run = _Run.of(events, lines)
    return [run.joined(e) if e.kind in _HOST_KINDS else e for e in events]


@dataclass(slots=True)
class _Run:
    """Which ranks the run's own lines show at which process, bus and device number of a node."""

    pids: Places = field(default_factory=dict)
    buses: Places = field(default_factory=dict)
    devices: Places = field(default_factory=dict)
    nodes: set[str] = field(default_factory=set)
    ranks: set[int] = field(default_factory=set)
    sizes: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, events: Sequence[Event], lines: Sequence[Line]) -> _Run:
        run = cls()
        for line in lines:
            if line.rank is not None:
                run._read(line)
        for e in events:
            if e.kind is EventKind.EXIT and e.rank is not None and (match := _REPORT_PID.search(e.line.text)):
                _put(run.pids, int(match[1]), short_node(e.line.node), e.rank)
            if e.kind is EventKind.WORLD and e.total:
                run.sizes.add(e.total)
            if e.rank is not None and e.kind not in _HOST_KINDS:
                run.ranks.add(e.rank)
        return run

    def _read(self, line: Line) -> None:
        assert line.rank is not None
        node = short_node(line.node)
        self.ranks.add(line.rank)
        if node is not None:
            self.nodes.add(node)
        if line.pid is not None:
            _put(self.pids, line.pid, node, line.rank)
        elif (match := _PYTHON_LOG.match(line.text)) is not None:
            _put(self.pids, int(match[1]), node, line.rank)
        if "busId" in line.body and (match := _NCCL.search(line.body)) is not None:
            _put(self.buses, int(match["bus"], 16), node, line.rank)
            _put(self.devices, int(match["nvml"] or match["cuda"]), node, line.rank)

    def joined(self, event: Event) -> Event:
        """The event with its rank, where one and only one fits."""
        if event.rank is not None:
            return event
        texts = (event.line.body, event.detail or "")
        pid = next((int(p) for text in texts for p in _groups(_PID, text)), None)
        rank = _only(self.pids, event, pid)
        if rank is None and event.kind is not EventKind.KILL:
            rank = self._by_device(event)
        if event.kind is EventKind.KILL and rank is None and _is_foreign(event):
            detail = "memory ran short on the node and the kernel ended another program"
            return replace(event, kind=EventKind.HARDWARE, name="host_memory", detail=detail)
        return event if rank is None else replace(event, rank=rank)

    def _by_device(self, event: Event) -> int | None:
        if event.local_rank is not None:
            found = _only(self.devices, event, event.local_rank)
            return self._in_order(event) if found is None and not self.devices else found
        if event.name not in _OF_A_GPU:
            return None
        match = _BUS.search(event.line.body)
        return None if match is None else _only(self.buses, event, _bus(match))

    def _in_order(self, event: Event) -> int | None:
        """On a single node whose table of GPUs is as long as the run is wide, rank n works on GPU n.

        Launchers assign so, and nothing in the input may speak against it: no second node, no rank or
        world beyond the table, and some rank of the run to be compared with.
        """
        size = event.total or next(iter(self.sizes), None)
        node = short_node(event.line.node)
        nodes = self.nodes | ({node} if node is not None else set())
        if size is None or not self.ranks or len(nodes) > 1 or self.sizes - {size} or max(self.ranks) >= size:
            return None
        return event.local_rank if event.local_rank is not None and event.local_rank < size else None


def _groups(pattern: re.Pattern[str], text: str) -> Iterable[str]:
    match = pattern.search(text[:4000])
    return () if match is None else (v for v in match.groupdict().values() if v is not None)


def _is_foreign(event: Event) -> bool:
    """Whether the kernel names the killed program and it is none that trains."""
    command = next(iter(_groups(_COMMAND, event.line.body)), None)
    return command is not None and not TRAINS.search(command)


def _bus(match: re.Match[str]) -> int:
    domain = (match["domain"] or "0").rstrip(":")
    return int(f"{domain}{match['bus']}{match['dev']}{match['fn'] or 0}", 16)


def _put(table: Places, number: int, node: str | None, rank: int) -> None:
    table.setdefault(number, {}).setdefault(node, set()).add(rank)


def _only(table: Places, event: Event, number: int | None) -> int | None:
    """The one rank at `number` of the event's node, or of all nodes that cannot be told from it."""
    if number is None:
        return None
    node = short_node(event.line.node)
    found = set().union(*(ranks for at, ranks in table.get(number, {}).items() if _same(at, node)))
    return found.pop() if len(found) == 1 else None


def _same(one: str | None, other: str | None) -> bool:
    """Whether two names may be those of one node."""
    return one is None or other is None or not is_name(one) or not is_name(other) or one == other


def is_name(node: str) -> bool:
    """Whether `node` is the name of a host, and not an address or a place in a job, which no host prints of itself."""
    return not _ADDRESS.search(node)


def short_node(node: str | None) -> str | None:
    """The name by which nodes are compared: without its domain, in small letters; addresses as they are."""
    if node is None or not is_name(node):
        return node
    return node.casefold().split(".", 1)[0]
