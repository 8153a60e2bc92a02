"""A whole node that did not come: its log is there and shows no wait, while all ranks of all other nodes wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from fsdpclassify.records import Event, EventKind, InputKind, Line

#: A node, or a file where lines name no node.
_Unit = str | int
#: Events that a process of the run prints, and no table or note beside its log.
_OF_A_RUN = frozenset(
    {EventKind.STEP, EventKind.PROGRESS, EventKind.PHASE, EventKind.TRAINER, EventKind.RANK_MAP, EventKind.WORLD}
)


#: How many GPUs hosts have: of seven waiting ranks the eighth is missing, and no node.
_SIZES = (2, 4, 8, 16)


def absent_node(
    lines: Sequence[Line],
    events: Sequence[Event],
    waiting: Collection[int],
    world: int | None,
    kinds: Sequence[InputKind | None],
) -> tuple[int, ...]:
    """Global ranks of the one node that speaks and does not wait; () unless the others wait as whole nodes.

    Nodes hold blocks of equally many consecutive ranks. The block is the only one that is left over.
    """
    ranks: dict[_Unit, set[int]] = defaultdict(set)
    for line in lines:
        if line.rank is not None and kinds[line.source] is not InputKind.SYSTEM:
            ranks[_unit(line)].add(line.rank)
    spoke = {_unit(e.line) for e in events if e.kind in _OF_A_RUN and kinds[e.line.source] is not InputKind.SYSTEM}
    quiet = {u for u in spoke | set(ranks) if not ranks[u] & set(waiting)}
    active = [ranks[u] & set(waiting) for u in ranks if ranks[u] & set(waiting)]
    if len(quiet) != 1 or not active:
        return ()
    block = _left_over(active, world)
    return block if ranks[quiet.pop()] <= set(block) else ()


def _unit(line: Line) -> _Unit:
    return line.node if line.node is not None else line.source


def _left_over(active: Sequence[set[int]], world: int | None) -> tuple[int, ...]:
    size = len(active[0])
    firsts = sorted(min(ranks) // size for ranks in active)
    total = len(active) + 1
    full = all(ranks == set(range(min(ranks), min(ranks) + size)) and min(ranks) % size == 0 for ranks in active)
    absent = set(range(total)) - set(firsts)
    if size not in _SIZES or not full or len(set(firsts)) != len(firsts) or len(absent) != 1:
        return ()
    first = absent.pop() * size
    return tuple(range(first, first + size)) if world is None or world == total * size else ()
