from collections.abc import Callable

import pytest

from fsdpclassify.records import Event, EventKind

Events = Callable[..., list[Event]]


def _csv(*rows: str, header: str = "index, utilization.gpu [%]") -> str:
    return "\n".join((header, *rows)) + "\n"


def _facts(found: list[Event]) -> list[tuple[EventKind, str | None, int | None, int]]:
    return [(e.kind, e.name, e.local_rank, e.line.number) for e in found]


def test_a_gpu_that_stands_idle_beside_busy_ones(events: Events) -> None:
    found = events(_csv("0, 97 %", "1, 0 %", "2, 100 %", "3, 99 %"))
    assert _facts(found) == [(EventKind.MEMORY, "idle", 1, 3)]
    assert found[0].detail == "GPU 1 stands idle while the others are busy"
    assert found[0].total == 4


@pytest.mark.parametrize(
    "rows",
    [
        ("0, 97 %", "1, 40 %", "2, 0 %", "3, 99 %"),
        ("0, 97 %", "1, 0 %", "2, 0 %", "3, 0 %"),
        ("0, 0 %", "1, 0 %"),
        ("0, 0 %",),
        ("0, [N/A]", "1, 100 %"),
    ],
)
def test_a_split_that_is_not_clear_says_nothing(events: Events, rows: tuple[str, ...]) -> None:
    assert events(_csv(*rows)) == []


def test_of_several_samples_the_last_ones_count(events: Events) -> None:
    stamp = "2026/03/11 06:{:02}:00.118, "
    rows = [stamp.format(m) + f"{g}, {0 if g == 2 and m > 3 else 98} %, 0" for m in range(12) for g in range(3)]
    found = events(_csv(*rows, header="timestamp, index, utilization.gpu [%], memory.free [MiB]"))
    assert _facts(found) == [(EventKind.MEMORY, "idle", 2, 37)]
    assert found[0].time is not None
    busy_till_the_end = [*rows[:-3], *(stamp.format(11) + f"{g}, 98 %, 0" for g in range(3))]
    assert events(_csv(*busy_till_the_end, header="timestamp, index, utilization.gpu [%], memory.free [MiB]")) == []


def test_samples_after_the_end_of_the_run_are_left_out(events: Events) -> None:
    rows = [f"{g}, {0 if g == 1 or m > 6 else 98} %" for m in range(12) for g in range(3)]
    assert _facts(events(_csv(*rows))) == [(EventKind.MEMORY, "idle", 1, 21)]


def test_without_an_index_the_order_of_the_rows_is_that_of_the_gpus(events: Events) -> None:
    text = _csv("61 W, 0 %", "88 W, 100 %", "87 W, 98 %", header="power.draw [W], utilization.gpu [%]")
    assert _facts(events(text + "$ kill 3, 4, 5\nattached, 200 %, x\n")) == [(EventKind.MEMORY, "idle", 0, 2)]


def test_empty_memory_and_slow_clocks(events: Events) -> None:
    header = "index, memory.used [MiB], clocks.current.sm [MHz], utilization.gpu [%], clocks_event_reasons.active"
    rows = (
        "0, 71200 MiB, 1980 MHz, 100 %, 0x0000000000000004",
        "1, 0 MiB, 1980 MHz, 100 %, 0x0000000000000000",
        "2, 71310 MiB, 1095 MHz, 100 %, 0x0000000000000004",
        "3, 71200 MiB, 1965 MHz, 100 %, 0x0000000000000048",
    )
    assert _facts(events(_csv(*rows, header=header))) == [
        (EventKind.MEMORY, "gpu_empty", 1, 3),
        (EventKind.HARDWARE, "thermal", 2, 4),
        (EventKind.HARDWARE, "thermal", 3, 5),
    ]


def test_a_column_of_ranks_is_taken_at_its_word(events: Events) -> None:
    found = events(_csv("8,100", "9,1", "10,100", header="rank,gpu_util"))
    assert [(e.rank, e.local_rank) for e in found] == [(9, None)]


def test_a_column_of_hosts_keeps_equal_numbers_apart(events: Events) -> None:
    rows = ("a1, 0, 100 %", "a1, 1, 100 %", "b2, 0, 3 %", "b2, 1, 100 %")
    found = events(_csv(*rows, header="host, index, utilization.gpu [%]"))
    assert [(e.rank, e.local_rank, e.line.number) for e in found] == [(None, None, 4)]


def test_a_step_line_that_logs_utilisation_is_no_table(events: Events) -> None:
    assert [
        e for e in events("step 4, gpu_util 97, loss 2.1\nstep 5, gpu_util 0, loss 2.1\n") if e.name == "idle"
    ] == []
