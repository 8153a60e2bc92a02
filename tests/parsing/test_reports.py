# ruff: noqa: E501
from collections.abc import Callable

import pytest

from fsdpclassify.records import Event, EventKind, Line

Events = Callable[..., list[Event]]
Lines = Callable[..., list[Line]]

TABLE = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
pretrain.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-03-05_04:11:14
  host      : node07.cluster
  rank      : 12 (local_rank: 4)
  exitcode  : -15 (pid: 8833)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 8833
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-03-05_04:01:09
  host      : node07.cluster
  rank      : 13 (local_rank: 5)
  exitcode  : -9 (pid: 8834)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 8834
============================================================
"""


def exits(found: list[Event]) -> list[tuple[int | None, int | None, str | None]]:
    return [(e.rank, e.code, e.name) for e in found if e.kind is EventKind.EXIT]


@pytest.mark.parametrize("prefix", ["", "3: ", "[1,3]<stderr>:", "node07: "])
def test_entries_become_exits_of_global_ranks(events: Events, prefix: str) -> None:
    text = "\n".join(prefix + line for line in TABLE.splitlines())
    assert exits(events(text)) == [(12, -15, "report"), (13, -9, "report")]


def test_the_time_of_an_entry_is_that_of_its_exit(events: Events) -> None:
    first, second = [e for e in events(TABLE) if e.kind is EventKind.EXIT]
    assert first.time is not None
    assert second.time == first.time - 605


def test_local_rank_is_translated_by_the_table_of_the_same_file(events: Events) -> None:
    agent = "E0305 04:11:12.301000 8801 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -9) local_rank: 5 (pid: 8834) of binary: python3\n"
    assert exits(events(agent + TABLE))[0] == (13, -9, "elastic")
    assert exits(events(agent, TABLE))[0] == (None, -9, "elastic")


def test_half_an_entry_names_nobody(events: Events) -> None:
    assert exits(events("  exitcode  : -9 (pid: 8834)\n")) == []
    assert exits(events("  rank      : 13 (local_rank: 5)\n" + "x\n" * 20 + "  exitcode  : -9 (pid: 8834)\n")) == []
