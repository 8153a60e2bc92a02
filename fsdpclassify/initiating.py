"""Which ranks started it: the ones that left the common schedule, came late or failed; [] when the log cannot tell.

The rank that prints a timeout waited; the printer of a transport error is not guilty. Output that only
a main process writes counts as rank 0 unless rank 0 is shown waiting (design §4).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from fsdpclassify.records import RECORDED_STOPS, Event, EventKind, Incident
from fsdpclassify.roles import is_clocked, is_early_failure, is_ordered
from fsdpclassify.window import When, WindowLine

#: Groups of ranks that one launcher signals are whole nodes of this many ranks at least.
_NODE = 2
_LOOP_END_SIZE = 16
_IN_LOOP_SIZE = 4096
#: Clocks of hosts agree so far; a host that was slow so long before the wait may have been the reason for it.
_READY_S, _SLOW_S = 5.0, 900.0
#: Frames and code lines are indented; the last line of a traceback names an exception.
_BAR = re.compile(r"\d{1,3}%\|")
_TRACEBACK = re.compile(r"Traceback \(most|\s{2,}\S|(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b")


def initiating_ranks(label: str, incident: Incident, evidence: Sequence[WindowLine]) -> tuple[int, ...]:
    """Global ranks, ascending. `evidence` holds the lines that speak for `label`, strongest first."""
    if label == "rank_failure":
        return incident.failed or _faulty(incident) or _signalled_node(incident) or _lone_missing(incident)
    if label == "fabric_congestion":
        return ()
    if label == "desync":
        # Once calls were compared, a rank that is merely silent was stopped before it could speak.
        compared = any(e.kind is EventKind.MISMATCH for e in incident.events)
        return _odd_ones(incident) or (() if compared else incident.missing) or _speaker(incident, evidence)
    if label == "uneven_sharding":
        return _idle(incident) or incident.missing or _speaker(incident, evidence)
    return incident.missing or _idle(incident) or _slowed(incident) or _speaker(incident, evidence)


def shown_absent(incident: Incident) -> tuple[int, ...]:
    """Where no cause is concluded: the rank that the structure alone shows to have failed or not to have come.

    Which rank to look at is worth saying also when the log does not tell why it did not come.
    """
    if any(e.kind is EventKind.MISMATCH and e.name == "flight_record" for e in incident.events):
        return _odd_ones(incident)
    if any(e.kind in (EventKind.TRANSPORT, EventKind.MISMATCH) for e in incident.events):
        return ()
    absent = incident.failed or incident.missing
    few = len(absent) == 1 or len(absent) <= len(incident.waiting)
    return absent if few or _is_recorded(incident) else ()


def initiating_nodes(label: str, incident: Incident) -> tuple[str, ...]:
    """Nodes alone at fault: those of failed ranks, or of early faults that no rank is known for.

    A transport fault names none unless one end is shown: the only node whose own log has a lost link.
    """
    if label == "fabric_congestion":
        nodes = _fault_nodes(incident, ("link",))
        return nodes if len(nodes) == 1 else ()
    if label != "rank_failure":
        return ()
    failed = tuple(sorted({r.node for r in incident.ledger if r.rank in incident.failed and r.node}))
    return failed or (() if incident.failed else _fault_nodes(incident, ("gpu", "pcie", "panic", None)))


def _fault_nodes(incident: Incident, names: Sequence[str | None]) -> tuple[str, ...]:
    """Nodes whose system log shows an early device fault of one of `names`, or (None) a process killed for memory."""
    return tuple(
        sorted(
            {
                e.line.node
                for e in incident.events
                if e.line.node
                and e.kind in (EventKind.HARDWARE, EventKind.KILL)
                and e.name in names
                and is_early_failure(e, incident.detection, incident.onset)
            }
        )
    )


def _faulty(incident: Incident) -> tuple[int, ...]:
    """Ranks whose own GPU failed before the wait was given up: their watchdogs may have waited like all others."""
    return tuple(
        sorted(
            {
                e.rank
                for e in incident.events
                if e.kind is EventKind.HARDWARE
                and e.rank is not None
                and e.line.rank is None
                and is_early_failure(e, incident.detection, incident.onset)
                and is_ordered(e, incident.detection)
            }
        )
    )


def _lone_missing(incident: Incident) -> tuple[int, ...]:
    return incident.missing if len(incident.missing) == 1 or _is_recorded(incident) else ()


def _is_recorded(incident: Incident) -> bool:
    """Whether dumps show for whom the ranks wait: then several may be named as well as one."""
    return any(e.kind is EventKind.RECORDED and e.name in RECORDED_STOPS for e in incident.events)


def _speaker(incident: Incident, evidence: Sequence[WindowLine]) -> tuple[int, ...]:
    """The rank that printed the strongest evidence, if it is not itself waiting."""
    for row in evidence:
        if row.system and (on_node := _on_node(row.line.node, incident)):
            return on_node
        if row.system or row.is_detection or row.rank in incident.waiting or row.when is When.AFTER:
            continue
        if row.rank is not None:
            return (row.rank,)
        if _main_process(row) and 0 not in incident.waiting:
            return (0,)
    return ()


def _on_node(node: str | None, incident: Incident) -> tuple[int, ...]:
    """The ranks of a node whose own log shows the reason, if none of them waits."""
    ranks = {row.rank for row in incident.ledger if node is not None and row.node == node}
    return () if ranks & set(incident.waiting) else tuple(sorted(ranks))


def _main_process(row: WindowLine) -> bool:
    """Whether only a main process writes such a line: no rank in front, and not a part of somebody's traceback."""
    text = row.line.text
    return row.line.unprefixed and row.line.node is None and (bool(_BAR.search(text)) or not _TRACEBACK.match(text))


def _signalled_node(incident: Incident) -> tuple[int, ...]:
    """The block of ranks of a node whose launcher was stopped, when the waiting ranks fill all other blocks.

    A launcher prints one "closing signal" line for each of its processes and no ranks; with k processes a
    node and blocks of k consecutive ranks the absent block is the stopped node.
    """
    closed: dict[int, int] = defaultdict(int)
    for e in incident.events:
        if e.name == "peer_terminated" and e.line.time is not None and is_early_failure_source(e, incident):
            closed[e.line.source] += 1
    if len(closed) != 1 or not incident.waiting:
        return ()
    size = next(iter(closed.values()))
    blocks = {r // size for r in incident.waiting} if size >= _NODE else set()
    count = max(blocks, default=0) + 1 if incident.world_size is None else incident.world_size // size
    if len(blocks) != count - 1:
        return ()
    absent = set(range(count)) - blocks
    full = all(b * size + i in incident.waiting for b in blocks for i in range(size))
    if not full or len(absent) != 1:
        return ()
    start = absent.pop() * size
    return tuple(range(start, start + size))


def is_early_failure_source(event: Event, incident: Incident) -> bool:
    """Whether the launcher that printed `event` shows a stop of its own before the wait was given up."""
    return any(
        e.line.source == event.line.source
        and e.kind is EventKind.SIGNAL
        and e.name != "peer_terminated"
        and is_early_failure(e, incident.detection, incident.onset)
        for e in incident.events
    )


def _odd_ones(incident: Incident) -> tuple[int, ...]:
    """The minority at the stuck number, or the rank that left the loop; () for two equal sides."""
    for e in incident.events:
        if e.kind is EventKind.MISMATCH and e.name == "flight_record" and e.ranks:
            return e.ranks
        if e.kind is EventKind.MISMATCH and e.rank is not None and e.peer is not None:
            return _fingerprint_side(e)
    first: dict[int, Event] = {}
    for e in incident.events:
        is_recorded = e.kind is EventKind.RECORDED and e.name == "differs"
        is_wait = e.kind in (EventKind.TIMEOUT, EventKind.GLOO, EventKind.PEER_CLOSED) or is_recorded
        if is_wait and e.rank is not None and e.op:
            first.setdefault(e.rank, e)
    if len(first) < 2:
        return ()
    shapes = Counter((e.op, e.numel_in) for e in first.values())
    if len(shapes) == 2 and min(shapes.values()) != max(shapes.values()):
        rare = min(shapes, key=lambda k: shapes[k])
        return tuple(sorted(r for r, e in first.items() if (e.op, e.numel_in) == rare))
    return _left_the_loop(first) if len(shapes) == 2 else ()


def _fingerprint_side(event: Event) -> tuple[int, ...]:
    """Of two fingerprints with different numbers, the rank that is far behind took another path."""
    return (event.peer,) if event.peer is not None and event.detail and "seq" in event.detail else ()


def _left_the_loop(first: dict[int, Event]) -> tuple[int, ...]:
    """One side in a tiny call of another operation: it has left the loop that the other side is still in."""
    tiny = {r for r, e in first.items() if 0 < (e.numel_in or 0) <= _LOOP_END_SIZE}
    large = {r for r, e in first.items() if (e.numel_in or 0) >= _IN_LOOP_SIZE}
    ops = [{first[r].op for r in side} for side in (tiny, large)]
    apart = tiny and large and len(tiny | large) == len(first) and not ops[0] & ops[1]
    return tuple(sorted(tiny)) if apart else ()


def _idle(incident: Incident) -> tuple[int, ...]:
    """The ranks whose device stood idle while all others were busy: with uneven shards those without work, else
    those that have not come, since a GPU that waits in a collective spins.
    """
    events = (e for e in incident.events if e.kind is EventKind.MEMORY and e.name == "idle")
    idle = {e.rank for e in events if e.rank is not None and _near_the_wait(e, incident, _READY_S)}
    return tuple(sorted(idle - set(incident.waiting)))


def _slowed(incident: Incident) -> tuple[int, ...]:
    """Ranks that come late and whose GPU is shown slowed down or whose process stands still, if they are few."""
    names = ("thermal", "hung_task", "asleep")
    events = (e for e in incident.events if e.kind is EventKind.HARDWARE and e.name in names)
    hot = {e.rank for e in events if e.rank is not None and _near_the_wait(e, incident, _SLOW_S)}
    hot -= set(incident.waiting)
    return tuple(sorted(hot)) if 2 * len(hot) <= (incident.world_size or len(incident.ledger)) else ()


def _near_the_wait(event: Event, incident: Incident, before: float) -> bool:
    """Whether what a host showed was so during the wait, or at most `before` seconds earlier; open without a clock."""
    start, end = incident.onset, incident.detection.time
    if event.time is None or not is_clocked(event) or start is None or end is None:
        return True
    return start - before <= event.time <= end + _READY_S
