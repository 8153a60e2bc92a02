"""Which printed number is the global rank of a line.

c10 lines and the excepthook print the global rank; `torchrun --tee` and a role called `rank` print the
local one in the same kind of brackets, `srun --label` a task that may be a node. Outer numbers are
believed where nothing in the input contradicts them, and shifted where a file shows by how much.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fsdpclassify.parsing.peeling import Peeled

#: A program that names its own rank at the head of its message; `[Rank 2] ` of c10 is a rank in a group.
_SAID = re.compile(
    r"(?:^|[\s\]>|,{(])(?:\[rank[ :=]?(?P<a>\d{1,6})(?:/\d{1,6})?\]|\(rank[ :=]{0,2}(?P<b>\d{1,6})\)"
    r"|['\"]rank['\"]: ?(?P<c>\d{1,6})\b(?!\.)"
    r"|rank=(?P<d>\d{1,6})\b)|GLOBAL_RANK: (?P<e>\d{1,6})\b|^rank[ :]{0,2}(?P<f>\d{1,6})[:|\]] "
    r"|\[Rank (?P<g>\d{1,6})\] (?=step=|\[|time \(ms\))"
    r"|^\W?\[?Rank (?P<h>\d{1,6})\W?(?::|\]) (?!Ranks? \d|Watchdog|failed)",
)
_SAID_REACH = 160
#: `[Rank 7]` of a c10 line without a rank prefix (torch before 2.2): the rank in the default group, as a rule.
_GROUP_RANK = re.compile(r"^\[Rank (\d{1,6})\] (?:Watchdog caught|NCCL watchdog|Some NCCL|To avoid)")
_COMM = re.compile(r"comm 0x[0-9a-f]{1,16} rank (\d{1,6}) nranks (\d{1,6})")

Outer = Callable[[Peeled], int | None]


def said_rank(item: Peeled) -> int | None:
    """The rank that the message itself gives as its printer's; None for messages of c10."""
    head = item.body[:_SAID_REACH]
    if item.cpp or ("ank" not in head and "RANK" not in head):
        return None
    match = _SAID.search(head)
    return int(next(v for v in match.groupdict().values() if v is not None)) if match else None


@dataclass(frozen=True, slots=True)
class Ranks:
    """Answers for one set of inputs: each outer number maps to a global rank, by source, or to nothing."""

    tee: Mapping[int, int | None]
    bracket: Mapping[int, int | None]
    task: Mapping[int, int | None]
    hosts: Mapping[tuple[str | None, int], int]

    @classmethod
    def of(cls, items: Sequence[Peeled]) -> Ranks:
        """Judge outer numbers by the lines of `items` that carry a sure rank as well."""
        return cls(
            tee=_shifts(items, lambda i: i.tee, local=True),
            bracket=_shifts(items, lambda i: i.bracket, local=True),
            task=_shifts(items, lambda i: i.task, local=False),
            hosts={**_comm_ranks(items), **_ray_ranks(items)},
        )

    def of_line(self, item: Peeled) -> int | None:
        """The global rank of the process that printed `item`; None where the input does not tell."""
        if item.c10 or item.brackets > 1:
            return item.global_rank
        if item.bracket is not None:
            shifted = _shifted(item.bracket, self.bracket.get(item.raw.source))
            return shifted if shifted is not None else item.said
        if item.global_rank is not None:
            return item.global_rank
        if item.said is not None:
            return item.said
        return self._by_outer(item)

    def _by_outer(self, item: Peeled) -> int | None:
        if item.pid is not None and (item.node, item.pid) in self.hosts:
            return self.hosts[(item.node, item.pid)]
        if item.tee is not None:
            return _shifted(item.tee, self.tee.get(item.source))
        if item.task is not None and (rank := _shifted(item.task, self.task.get(item.source))) is not None:
            return rank
        return item.raw.hint_rank


def _shifted(number: int, shift: int | None) -> int | None:
    return None if shift is None else number + shift


def _shifts(items: Sequence[Peeled], outer: Outer, *, local: bool) -> dict[int, int | None]:
    """For each source what to add to its outer numbers; None where they are no ranks or it cannot be told.

    Without any proof the numbers are taken as they are, unless (`local`) files of different nodes repeat them.
    """
    shifts: dict[int, set[int]] = defaultdict(set)
    seen: dict[int, set[int]] = defaultdict(set)
    nodes: dict[int, str | None] = {}
    for item in items:
        number = outer(item)
        if number is None:
            continue
        source = item.raw.source
        if number not in seen[source]:
            seen[source].add(number)
            nodes[source] = item.raw.hint_node
        if (item.c10 or item.cpp or item.said is not None) and (sure := _sure(item)) is not None:
            shifts[source].add(sure - number)
    proven_local = any(s != {0} for s in shifts.values())
    repeated = local and _repeat(seen, nodes)
    return {
        source: _shift(shifts.get(source, set()), default=None if proven_local or repeated else 0, local=local)
        for source in seen
    }


def _shift(found: set[int], *, default: int | None, local: bool) -> int | None:
    if not found:
        return default
    if len(found) > 1 or min(found) < 0:
        return None
    shift = next(iter(found))
    return shift if local or shift == 0 else None


def _sure(item: Peeled) -> int | None:
    """A global rank that does not rest on the outer number itself."""
    if item.c10:
        return item.global_rank
    if item.said is not None:
        return item.said
    match = _GROUP_RANK.match(item.body) if item.cpp and item.bracket is None else None
    return int(match[1]) if match else None


def _repeat(seen: Mapping[int, set[int]], nodes: Mapping[int, str | None]) -> bool:
    """Whether files of different nodes carry the same numbers, so that these can only be local."""
    by_node: dict[str, set[int]] = defaultdict(set)
    for source, numbers in seen.items():
        node = nodes.get(source)
        if node is not None:
            by_node[node] |= numbers
    return any(a & b for n, a in by_node.items() for m, b in by_node.items() if n < m)


#: Ray Train lists its workers; everywhere in Ray a process that named its rank once has it in all its lines.
_RAY_WORKER = re.compile(r"\bip=([\d.a-fA-F:]{2,45}), pid=(\d{1,9})\) world_rank=(\d{1,6})\b")


def _ray_ranks(items: Iterable[Peeled]) -> dict[tuple[str | None, int], int]:
    """Map (node, pid) of Ray's prefix to the rank that this process stated; processes with several are left out."""
    seen: dict[tuple[str | None, int], set[int]] = defaultdict(set)
    for item in items:
        if item.pid is None or not item.text.startswith("("):
            continue
        if item.c10 and item.global_rank is not None:
            seen[(item.node, item.pid)].add(item.global_rank)
        elif "world_rank=" in item.body and (match := _RAY_WORKER.search(item.body, 0, 400)) is not None:
            seen[(match[1], int(match[2]))].add(int(match[3]))
    return {place: next(iter(ranks)) for place, ranks in seen.items() if len(ranks) == 1}


def _comm_ranks(items: Iterable[Peeled]) -> dict[tuple[str | None, int], int]:
    """Map (host, pid) to the rank in the largest communicator seen, which is taken for the world."""
    seen: dict[tuple[str | None, int], tuple[int, int]] = {}
    for item in items:
        if item.node is None or item.pid is None or "nranks" not in item.body:
            continue
        match = _COMM.search(item.body)
        if match is not None:
            rank, size = int(match[1]), int(match[2])
            if size >= seen.get((item.node, item.pid), (0, 0))[1]:
                seen[(item.node, item.pid)] = (rank, size)
    world = max((size for _, size in seen.values()), default=0)
    return {key: rank for key, (rank, size) in seen.items() if size == world}
