"""Named path rules: which rank or node a path names. Nothing else of a path is ever used.

Every rule stands in `RULES` with its name; a label that no rule knows gives no hint.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

# A rank within a group, a node or a parallel dimension is not a global rank.
_OTHER_RANK = r"(?<!local[_-])(?<!node[_-])(?<!group[_-])(?<!role[_-])(?<![dtpec]p[_-])(?<!local)(?<!node)"
_RANK = re.compile(rf"(?<![a-z0-9]){_OTHER_RANK}rank[_-]?(\d{{1,6}})(?![a-z0-9])(?!-\d)", re.IGNORECASE)
_NODE = re.compile(r"(?<![a-z0-9])((?:[a-z0-9]+-)*(?:node|host)[_-]?\d{1,6})(?![a-z0-9]|-\d)", re.IGNORECASE)
_TORCHRUN = re.compile(r"^(?P<run>.*/|)attempt_\d+/(?P<local>\d{1,4})/(?:stdout|stderr)\.log$")
_SLURM = re.compile(r"^(?P<stem>.*)-(?P<task>\d{1,6})\.(?:out|err)$")

Hints = dict[int, int]


def hint_nodes(labels: Sequence[str]) -> dict[int, str]:
    """Index of a label -> node, for labels with a component such as `node1` or `gpu-host07`."""
    found: dict[int, str] = {}
    for index, label in enumerate(labels):
        for component in _components(label):
            names = set(_NODE.findall(component))
            if names:
                if len(names) == 1:
                    found[index] = names.pop()
                break
    return found


def hint_ranks(labels: Sequence[str]) -> Hints:
    """Index of a label -> global rank, from the first rule that knows the label."""
    found: Hints = {}
    for rule in RULES.values():
        for index, rank in rule(labels).items():
            found.setdefault(index, rank)
    return found


def _rank_in_name(labels: Sequence[str]) -> Hints:
    """`rank3.log`, `trainer_rank_3.txt`, `x_rank00003_y`, `rank3/stderr.log`; two ranks: neither."""
    found: Hints = {}
    for index, label in enumerate(labels):
        for component in _components(label):
            ranks = {int(text) for text in _RANK.findall(component)}
            if ranks:
                if len(ranks) == 1:
                    found[index] = ranks.pop()
                break
    return found


def _torchrun_tree(labels: Sequence[str]) -> Hints:
    """`attempt_0/3/stderr.log`: a local rank, and so a global one only where there is one node.

    One node is assumed for a single run folder whose local ranks are 0 to n-1, n at least 2.
    """
    trees: dict[str, Hints] = defaultdict(dict)
    for index, label in enumerate(labels):
        if (match := _TORCHRUN.match(label)) is not None:
            trees[match["run"]][index] = int(match["local"])
    if len(trees) != 1:
        return {}
    (tree,) = trees.values()
    return tree if _is_complete(tree.values()) else {}


def _slurm_tasks(labels: Sequence[str]) -> Hints:
    """`job-3.out` beside `job-0.out` to `job-<n-1>.out`; a number alone may be a job id."""
    families: dict[str, Hints] = defaultdict(dict)
    for index, label in enumerate(labels):
        if "worker" not in label.rpartition("/")[2] and (match := _SLURM.match(label)) is not None:
            families[match["stem"]][index] = int(match["task"])
    found: Hints = {}
    for family in families.values():
        if _is_complete(family.values()):
            found.update(family)
    return found


#: Rule name -> rule. A Ray `worker-<id>-<job>-<pid>.out` names no rank, and has no rule on purpose.
RULES: Mapping[str, Callable[[Sequence[str]], Hints]] = {
    "rank_in_name": _rank_in_name,
    "torchrun_tree": _torchrun_tree,
    "slurm_tasks": _slurm_tasks,
}


def _components(label: str) -> list[str]:
    """Parts of a label, the innermost first."""
    return label.replace("!", "/").split("/")[::-1]


def _is_complete(numbers: Iterable[int]) -> bool:
    ranks = set(numbers)
    return len(ranks) > 1 and ranks == set(range(len(ranks)))
