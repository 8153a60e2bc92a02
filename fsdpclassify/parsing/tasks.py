"""Slurm's notices about tasks -> ranks, where the input shows that a task is a rank.

With one task for each GPU they are the same number; under torchrun a task is a node's agent. Only what the input
shows is believed: labels that agree with sure ranks, or several tasks on one node and no agent anywhere.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from fsdpclassify.records import Event, EventKind, Line

_LABEL = re.compile(r" {0,4}(\d{1,5}): ")
_SURE = re.compile(r"\[rank\d{1,6}\]:\[?[EWIFV]")
_AGENT = re.compile(
    r"torch[./]distributed[./](?:elastic|run|launch)|\btorchrun\b|accelerate launch|deepspeed\.launcher"
)
_SPAN = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")
#: No job has more tasks; a longer list is damaged text.
_MOST = 100_000


def task_list(text: str) -> tuple[int, ...]:
    """`0-2,5` as numbers, ascending; () for a list that no job has."""
    found: set[int] = set()
    for first, last in _SPAN.findall(text):
        low, high = int(first), int(last or first)
        if high < low or len(found) + high - low > _MOST:
            return ()
        found.update(range(low, high + 1))
    return tuple(sorted(found))


def with_task_ranks(events: Sequence[Event], lines: Sequence[Line]) -> list[Event]:
    """`events` with one exit for each task of srun's notices, under its rank where tasks are ranks."""
    notices = [e for e in events if e.kind is EventKind.EXIT and e.name == "srun" and e.ranks]
    if not notices:
        return list(events)
    are_ranks = _tasks_are_ranks(notices, lines)
    return [made for e in events for made in (_by_rank(e, are_ranks) if e.name == "srun" and e.ranks else (e,))]


def _by_rank(event: Event, are_ranks: bool) -> Iterable[Event]:
    if not are_ranks:
        return (replace(event, ranks=()),)
    return (replace(event, rank=task, ranks=()) for task in event.ranks)


def _tasks_are_ranks(notices: Sequence[Event], lines: Sequence[Line]) -> bool:
    agree: set[int] = set()
    for line in lines:
        label = _LABEL.match(line.text)
        if label and line.rank is not None and _SURE.search(line.text, 0, 200):
            if int(label[1]) != line.rank:
                return False
            agree.add(line.rank)
    if len(agree) > 1:
        return True
    return _several_on_a_node(notices) and not any(_AGENT.search(line.text, 0, 400) for line in lines)


def _several_on_a_node(notices: Sequence[Event]) -> bool:
    tasks: dict[str, set[int]] = defaultdict(set)
    for e in notices:
        tasks[(e.detail or "").split(":", 1)[0]].update(e.ranks)
    return any(len(found) > 1 for found in tasks.values())
