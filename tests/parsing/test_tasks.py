"""Tasks of srun are ranks only where the input shows it."""

from collections.abc import Callable

from fsdpclassify.parsing.tasks import task_list
from fsdpclassify.records import Event

Events = Callable[..., list[Event]]
AGENT = "E0305 04:00:00.301000 8801 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1)"


def exits(found: list[Event]) -> list[tuple[int | None, int | None]]:
    return [(e.rank, e.code) for e in found if e.name == "srun"]


def test_lists_of_tasks() -> None:
    assert task_list("0-2,5") == (0, 1, 2, 5)
    assert task_list("7") == (7,)
    assert task_list("5-2") == ()
    assert task_list("0-999999") == ()


def test_several_tasks_on_a_node_are_ranks(events: Events) -> None:
    found = events("srun: error: node07: tasks 4-5: Killed\nsrun: error: node07: task 6: Exited with exit code 1")
    assert exits(found) == [(4, -9), (5, -9), (6, 1)]


def test_one_task_on_a_node_may_be_its_agent(events: Events) -> None:
    found = events("srun: error: node07: task 1: Killed\nsrun: error: node08: task 2: Killed")
    assert exits(found) == [(None, -9), (None, -9)]


def test_under_torchrun_tasks_are_nodes(events: Events) -> None:
    assert exits(events(f"{AGENT}\nsrun: error: node07: tasks 1-2: Killed")) == [(None, -9)]


def test_labels_that_agree_with_sure_ranks_prove_it(events: Events) -> None:
    labelled = "".join(f"{n}: [rank{n}]:[E305 04:11:09.7 x.cpp:1] a\n" for n in (0, 3))
    assert exits(events(f"{labelled}srun: error: node07: task 2: Killed")) == [(2, -9)]


def test_labels_that_differ_from_ranks_refute_it(events: Events) -> None:
    labelled = "0: [rank0]:[E305 04:11:09.7 x.cpp:1] a\n0: [rank5]:[E305 04:11:09.7 x.cpp:1] a\n"
    assert exits(events(f"{labelled}srun: error: node07: tasks 1-2: Killed")) == [(None, -9)]
