# ruff: noqa: E501
"""Events of hosts joined to ranks: only where the run itself prints the number that the host names."""

from collections.abc import Callable

import pytest

from fsdpclassify.records import Event, EventKind

Events = Callable[..., list[Event]]

HEAD = "Mar 11 06:20:41 {node} kernel: "
HOST_KINDS = (EventKind.HARDWARE, EventKind.KILL, EventKind.MEMORY)


def _comm(node: str, pid: int, rank: int, gpu: int, bus: str, world: int = 4) -> str:
    return (
        f"{node}:{pid}:{pid + 9} [{gpu}] NCCL INFO ncclCommInitRank comm 0x55d0aa1c4a{rank:x}0 rank {rank} nranks {world}"
        f" cudaDev {gpu} nvmlDev {gpu} busId {bus} commId 0x9d1be0c1a3d53a7e - Init COMPLETE\n"
    )


#: Two nodes of two GPUs; both use the same bus ids, and one process id stands for two ranks.
RUN = (
    _comm("bay-19", 7741, 0, 0, "17000")
    + _comm("bay-19", 7742, 1, 1, "4b000")
    + _comm("bay-20", 7741, 2, 0, "17000")
    + _comm("bay-20", 7743, 3, 1, "4b000")
)


def _host(events: Events, run: str, text: str, node: str | None = "bay-20") -> Event:
    (found,) = [e for e in events(run, (HEAD.format(node=node) if node else "") + text) if e.kind in HOST_KINDS]
    return found


def test_a_bus_id_is_that_of_a_rank_on_its_own_node(events: Events) -> None:
    text = "NVRM: Xid (PCI:0000:4b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    assert _host(events, RUN, text, "bay-19").rank == 1
    assert _host(events, RUN, text, "bay-20.cluster.example").rank == 3
    assert _host(events, RUN, text.replace("4b", "99")).rank is None
    assert _host(events, RUN, text, None).rank is None


def test_a_process_id_comes_before_the_device(events: Events) -> None:
    text = "NVRM: Xid (PCI:0000:99:00): 31, pid={}, name=python3, Ch 00000008, intr 00000000"
    assert _host(events, RUN, text.format(7743)).rank == 3
    assert _host(events, RUN, text.format(7741)).rank == 2
    assert _host(events, RUN, text.format(7742), None).rank == 1
    assert _host(events, RUN, text.format(7741), None).rank is None


def test_transfers_and_links_concern_both_ends(events: Events) -> None:
    assert _host(events, RUN, "nvidia 0000:4b:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0011]").rank is None
    assert _host(events, RUN, "mlx5_core 0000:4b:00.0 ens3f1: Link down").rank is None


def test_the_kernel_kills_the_process_of_a_rank(events: Events) -> None:
    text = "Memory cgroup out of memory: Killed process {} ({}) total-vm:9kB, anon-rss:6kB, file-rss:1kB, UID:7"
    found = _host(events, RUN, text.format(7743, "pt_main_thread"))
    assert (found.kind, found.rank) == (EventKind.KILL, 3)
    worker = _host(events, RUN, text.format(8120, "pt_data_worker"))
    assert (worker.kind, worker.rank) == (EventKind.KILL, None)


def test_the_death_of_another_program_is_no_kill_of_the_run(events: Events) -> None:
    found = _host(events, RUN, "Out of memory: Killed process 611 (prometheus) total-vm:9kB, anon-rss:6kB")
    assert (found.kind, found.name, found.rank) == (EventKind.HARDWARE, "host_memory", None)


REPORT = """E0311 06:20:43.511000 31 torch/distributed/elastic/multiprocessing/api.py:908] failed (exitcode: -9) local_rank: 1 (pid: 7743) of binary: /usr/bin/python3
  time      : 2026-03-11_06:20:43
  host      : bay-20
  rank      : 3 (local_rank: 1)
  exitcode  : -9 (pid: 7743)
"""


def test_the_launchers_report_maps_process_ids(events: Events) -> None:
    found = _host(events, REPORT, "Out of memory: Killed process 7743 (python3) total-vm:9kB, anon-rss:6kB")
    assert (found.kind, found.rank) == (EventKind.KILL, 3)


def test_a_python_log_line_of_a_rank_holds_its_process_id(events: Events) -> None:
    run = "[rank5]:W0311 06:01:31.225000 7799 torch/distributed/fsdp/_runtime_utils.py:90] slow\n"
    assert _host(events, run, "INFO: task python3:7799 blocked for more than 122 seconds.").rank == 5


def test_a_stuck_processor_names_the_process_on_it(events: Events) -> None:
    assert _host(events, RUN, "watchdog: BUG: soft lockup - CPU#61 stuck for 26s! [python3:7743]").rank == 3


def test_device_numbers_are_joined_where_the_run_maps_them(events: Events) -> None:
    shuffled = _comm("bay-19", 7741, 0, 3, "17000") + _comm("bay-19", 7742, 1, 2, "4b000")
    assert _host(events, shuffled, "Detected clocks event due to thermal violation in GPU 3.", "bay-19").rank == 0
    assert _host(events, shuffled, "Detected clocks event due to thermal violation in GPU 1.", "bay-19").rank is None


TABLE = "index, utilization.gpu [%]\n0, 100 %\n1, 2 %\n2, 100 %\n3, 100 %\n"


def _idle_rank(events: Events, run: str) -> int | None:
    (found,) = [e for e in events(run, TABLE) if e.kind is EventKind.MEMORY]
    return found.rank


def test_on_one_node_that_the_run_fills_rank_n_works_on_gpu_n(events: Events) -> None:
    assert _idle_rank(events, "[rank3]: ValueError: x\n") == 1
    assert _idle_rank(events, "world_size=4\n[rank3]: ValueError: x\n") == 1


@pytest.mark.parametrize(
    "run",
    [
        "nothing about ranks\n",
        "[rank7]: ValueError: x\n",
        "world_size=8\n[rank3]: ValueError: x\n",
        "bay-19: [rank3]: ValueError: x\nbay-20: [rank1]: ValueError: x\n",
    ],
)
def test_what_speaks_against_one_full_node_leaves_the_device_to_itself(events: Events, run: str) -> None:
    assert _idle_rank(events, run) is None


def test_an_event_that_names_its_rank_keeps_it(events: Events) -> None:
    (found,) = [
        e for e in events("Rank 5 shows CUDA memory 0 bytes allocated while other ranks have full utilization\n")
    ]
    assert found.rank == 5
