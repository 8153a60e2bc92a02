from collections.abc import Callable

from fsdpclassify.records import Event

Events = Callable[..., list[Event]]

TABLE = """$ ps auxc
USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND
ann          611  0.0  0.0      0     0 ?        D    06:01   0:00 kworker/u96:2
ann         7741 99.1  4.0 175104 24100 ?        Rl   06:01 290:11 python3
ann         7742  3.1  4.0 175104 24100 ?        Dl   06:01 291:14 pt_main_thread
"""


def test_a_training_process_in_a_system_call_that_does_not_return(events: Events) -> None:
    (found,) = events(TABLE)
    assert (found.name, found.line.number) == ("hung_task", 5)
    assert found.detail == "process 7742 stands in a system call that does not return"


def test_the_command_may_name_the_rank(events: Events) -> None:
    head = "  PID STAT     TIME WCHAN                 CMD\n"
    rows = " 4410 Rl   02:04:51 -      python x.py (rank 0)\n 4411 Dl   02:04:51 io_schedule  python x.py (rank 1)\n"
    (found,) = events(head + rows)
    assert (found.name, found.rank, found.line.number) == ("hung_task", 1, 3)
    (found,) = events(head + " 4410 D    02:04:51 io_schedule  LOCAL_RANK=1 RANK=9 python x.py\n")
    assert found.rank == 9


def test_a_rank_that_sleeps_while_the_others_run(events: Events) -> None:
    head = "  PID STAT     TIME WCHAN                 CMD\n"
    row = " 44{0}0 {1}   02:04:51 -      python x.py (rank {0})\n"
    loader = " 4499 S    00:00:31 pipe_read  python x.py (data loader worker of 4420)\n"
    found = events(head + row.format(0, "Rl") + row.format(1, "Rl") + row.format(2, "Sl") + loader)
    assert [(e.name, e.rank, e.line.number) for e in found] == [("asleep", 2, 4)]
    assert events(head + row.format(0, "Sl") + row.format(1, "Sl")) == []
    assert events(head + row.format(0, "Rl") + row.format(1, "Sl") + row.format(2, "Sl")) == []


def test_a_header_alone_says_nothing(events: Events) -> None:
    assert events("USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n") == []
