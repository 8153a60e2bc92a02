# ruff: noqa: E501
"""Seconds since the boot on the wall clock, and left alone where nothing ties them down."""

from collections.abc import Callable

import pytest

from fsdpclassify.records import Line

Lines = Callable[..., list[Line]]

DMESG = (
    "[    1.204110] rtc_cmos 00:02: setting system clock to 2026-03-01T02:11:09 UTC (1772331069)\n"
    "[ 9901.204471] mlx5_core 0000:17:00.0 ens3f1: Link up\n"
    "[ 9911.204471] Memory cgroup out of memory: Killed process 7743 (python3) total-vm:9kB, anon-rss:6kB\n"
)
BOTH = "Mar 11 06:20:{second:02} {node} kernel: [ 99{second:02}.204471] usb 1-1: new device\n"


def _times(found: list[Line]) -> list[float | None]:
    return [line.time for line in found if line.source == 0]


def _clock(lines: Lines, *others: str) -> list[float | None]:
    times = _times(lines(DMESG, *others))
    return [None if t is None else round(t % 86400 - 6 * 3600, 3) for t in times][1:3]


def test_without_an_anchor_there_is_no_clock(lines: Lines) -> None:
    found = lines(DMESG, "[rank0]: 2026-03-11 06:20:41 step 4\n")
    assert _times(found)[:3] == [None, None, None]
    assert not any(line.stamped for line in found if line.source == 0)


def test_a_line_with_both_stamps_ties_the_others_down(lines: Lines) -> None:
    found = lines(DMESG, BOTH.format(node="bay-19", second=20))
    assert [line.stamped for line in found][:3] == [True, True, True]
    # The clock that was set while booting is a message, and not the stamp of its line.
    assert _clock(lines, BOTH.format(node="bay-19", second=20)) == [1201.0, 1211.0]


def test_two_nodes_with_both_stamps_leave_a_file_without_a_node_open(lines: Lines) -> None:
    both = BOTH.format(node="bay-19", second=20) + BOTH.format(node="bay-20", second=48)
    assert _clock(lines, both) == [None, None]


@pytest.mark.parametrize(
    "launcher",
    [
        "E0311 06:20:43.511000 31 torch/distributed/elastic/multiprocessing/api.py:908] failed (exitcode: -9) local_rank: 1 (pid: 7743) of binary: /usr/bin/python3\n",
        "  time      : 2026-03-11_06:20:43\n  host      : bay-20\n  rank      : 3 (local_rank: 1)\n  exitcode  : -9 (pid: 7743)\n",
    ],
)
def test_the_end_of_one_process_in_both_logs_ties_them(lines: Lines, launcher: str) -> None:
    assert _clock(lines, launcher) == [1233.0, 1243.0]
    assert _clock(lines, launcher.replace("7743", "7744")) == [None, None]


def test_bracketed_numbers_in_a_run_log_are_no_boot_clock(lines: Lines) -> None:
    found = lines("2026-03-11 06:20:41 start\n[0.123456] is a tensor\n[1234.5] too\n")
    assert [line.stamped for line in found] == [True, False, False, False]
