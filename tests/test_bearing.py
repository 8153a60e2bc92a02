# ruff: noqa: E501
"""System logs beside a run: what bears on the wait, whose it is, and what must not become a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsdpclassify.initiating import initiating_nodes, initiating_ranks
from fsdpclassify.reading import Findings, find, first_fatal_error
from fsdpclassify.records import Event, EventKind, Incident, InputKind
from fsdpclassify.report.inspection import inspection_as_dict, render_inspection
from fsdpclassify.roles import is_early_failure
from fsdpclassify.sources import collect, from_text
from fsdpclassify.structure import grounds
from fsdpclassify.vector import ledger_vector, named

#: Four ranks on two nodes; the wait begins at 06:20:45 and is given up at 06:30:45.
COMM = (
    "{node}:{pid}:{pid} [{gpu}] NCCL INFO ncclCommInitRank comm 0x55d0aa1c4a{rank}0 rank {rank} nranks 4 cudaDev {gpu}"
    " nvmlDev {gpu} busId {bus} commId 0x9d1be0c1a3d53a7e - Init COMPLETE\n"
)
RANKS = [("bay-19", 0, "17000"), ("bay-19", 1, "4b000"), ("bay-20", 0, "17000"), ("bay-20", 1, "4b000")]
SET_UP = "".join(
    COMM.format(node=node, pid=7741 + r, rank=r, gpu=gpu, bus=bus) for r, (node, gpu, bus) in enumerate(RANKS)
)
TIMEOUT = (
    "[rank{rank}]:[E311 06:30:45.0 ProcessGroupNCCL.cpp:689] [Rank {rank}] Watchdog caught collective operation timeout:"
    " WorkNCCL(SeqNum=88, OpType=_ALLGATHER_BASE, NumelIn=64, NumelOut=256, Timeout(ms)=600000) ran for 600003"
    " milliseconds before timing out.\n"
)
XID = "Mar 11 {at} {node} kernel: NVRM: Xid (PCI:0000:4b:00): {code}, pid='<unknown>', name=<unknown>, text\n"
LINK = "Mar 11 {at} {node} kernel: mlx5_core 0000:17:00.0 ens3f1: Link down\n"
#: System logs hold more than what matters.
QUIET = "Mar 11 06:00:01 bay-20 systemd[1]: Started Daily rotation of log files.\n" * 3


def _run(*waiting: int, extra: str = "") -> str:
    return SET_UP + extra + "".join(TIMEOUT.format(rank=r) for r in waiting)


def _find(*logs: str) -> Findings:
    return find(from_text(list(logs)))


def _incident(*logs: str) -> Incident:
    (found,) = _find(*logs).incidents
    return found


def _hardware(x: Incident) -> list[Event]:
    return [e for e in x.events if e.kind is EventKind.HARDWARE]


def _fact(x: Incident, name: str) -> float:
    return named(ledger_vector(x))[name]


def test_a_gpu_that_fell_off_the_bus_before_the_wait_names_its_rank() -> None:
    x = _incident(_run(0, 1, 2), QUIET + XID.format(at="06:20:44", node="bay-20", code=79))
    assert (x.failed, x.waiting) == ((3,), (0, 1, 2))
    assert initiating_ranks("rank_failure", x, []) == (3,)
    assert initiating_nodes("rank_failure", x) == ("bay-20",)
    assert _fact(x, "early_hardware") == _fact(x, "hardware_gpu") == 1.0
    (ground,) = [g for g in grounds(x) if g.name == "hardware"]
    assert "fallen off the bus" in ground.why


def test_its_watchdog_may_have_waited_like_all_others() -> None:
    x = _incident(_run(0, 1, 2, 3), QUIET + XID.format(at="06:20:44", node="bay-20", code=79))
    assert (x.failed, x.waiting) == ((), (0, 1, 2, 3))
    assert initiating_ranks("rank_failure", x, []) == (3,)


@pytest.mark.parametrize("at", ["02:20:44", "06:04:00"])
def test_a_fault_long_before_the_wait_is_not_its_cause(at: str) -> None:
    x = _incident(_run(0, 1, 2), QUIET + XID.format(at=at, node="bay-20", code=74))
    assert x.failed == ()
    (found,) = _hardware(x)
    assert found.name == "earlier"
    assert found.detail is not None
    assert "not its cause" in found.detail
    assert not is_early_failure(found, x.detection, x.onset)
    assert _fact(x, "early_hardware") == _fact(x, "hardware_gpu") == 0.0


def test_a_fault_after_the_wait_began_is_no_early_one() -> None:
    x = _incident(_run(0, 1, 2), QUIET + XID.format(at="06:31:02", node="bay-20", code=43))
    assert x.failed == ()
    assert _fact(x, "early_hardware") == 0.0


def test_a_run_that_goes_on_has_survived_the_fault() -> None:
    steps = "".join(f"[rank0]: 2026-03-11 06:20:{20 + 8 * i} INFO step {i} loss 2.1\n" for i in range(3))
    x = _incident(_run(0, 1, 2, extra=steps), QUIET + XID.format(at="06:20:15", node="bay-20", code=94))
    assert x.failed == ()
    assert [e.name for e in _hardware(x)] == ["earlier"]


def test_a_machine_without_any_rank_is_not_the_runs() -> None:
    x = _incident(_run(0, 1, 2), QUIET + XID.format(at="06:20:44", node="bay-77", code=79))
    assert x.failed == ()
    assert [e.name for e in _hardware(x)] == ["elsewhere"]
    assert initiating_nodes("rank_failure", x) == ()


@pytest.mark.parametrize("code", [45, 63, 92, 154])
def test_bookkeeping_and_consequences_are_no_failures(code: int) -> None:
    x = _incident(_run(0, 1, 2), QUIET + XID.format(at="06:20:44", node="bay-20", code=code))
    assert x.failed == ()
    assert len(_hardware(x)) == 1
    assert _fact(x, "early_hardware") == _fact(x, "hardware_gpu") == 0.0


def test_without_a_clock_only_what_cannot_be_old_names_a_rank() -> None:
    dmesg = "[ 9911.204471] NVRM: Xid (PCI:0000:4b:00): {}, pid='<unknown>', name=<unknown>, text\n"
    single = SET_UP.replace("bay-20", "bay-19").replace("17000", "9a000", 1).replace("4b000", "9b000", 1)
    waits = "".join(TIMEOUT.format(rank=r) for r in (0, 1, 2))
    assert _incident(single + waits, dmesg.format(79)).failed == (3,)
    assert _incident(single + waits, dmesg.format(74)).failed == ()


def test_the_kernel_killed_the_process_of_a_rank() -> None:
    kill = "Mar 11 06:20:44 bay-20 kernel: Out of memory: Killed process {} ({}) total-vm:9kB, anon-rss:6kB\n"
    x = _incident(_run(0, 1, 2), QUIET + kill.format(7744, "python3"))
    assert x.failed == (3,)
    worker = _incident(_run(0, 1, 2), QUIET + kill.format(9000, "pt_data_worker"))
    assert worker.failed == ()
    assert initiating_nodes("rank_failure", worker) == ("bay-20",)
    other = _incident(_run(0, 1, 2), QUIET + kill.format(9000, "prometheus"))
    assert _fact(other, "early_kill") == 0.0
    assert initiating_nodes("rank_failure", other) == ()


def test_one_node_with_a_lost_link_is_the_end_at_fault() -> None:
    one = _incident(_run(0, 1, 2, 3), QUIET + LINK.format(at="06:20:40", node="bay-20"))
    assert initiating_nodes("fabric_congestion", one) == ("bay-20",)
    assert initiating_ranks("fabric_congestion", one, []) == ()
    both = QUIET + LINK.format(at="06:20:40", node="bay-20") + LINK.format(at="06:20:40", node="bay-19")
    assert initiating_nodes("fabric_congestion", _incident(_run(0, 1, 2, 3), both)) == ()
    boot = _incident(_run(0, 1, 2, 3), QUIET + LINK.format(at="01:02:03", node="bay-20"))
    assert initiating_nodes("fabric_congestion", boot) == ()
    assert _fact(boot, "hardware_link") == 0.0


def test_a_gpu_slowed_by_heat_is_the_late_rank() -> None:
    hot = "2026-03-11 06:20:50 Detected clocks event due to thermal violation in GPU 1.\n"
    x = _incident(_run(0, 2), hot.replace("2026", "bay-19: 2026"))
    assert [e.rank for e in x.events if e.name == "thermal"] == [None]
    one_node = SET_UP.replace("bay-20", "bay-19").replace("[0]", "[2]", 1)
    x = _incident(one_node.replace("cudaDev 1 nvmlDev 1", "cudaDev 3 nvmlDev 3", 1) + TIMEOUT.format(rank=0), hot)
    assert initiating_ranks("straggler", x, []) == (3,)


def test_a_table_without_a_clock_leaves_the_order_of_the_logs_alone() -> None:
    late = "2026-03-11 06:40:00 [rank0]: step 9\n" + TIMEOUT.format(rank=0).replace("06:30:45", "06:50:45")
    early = "2026-03-11 06:10:00 [rank1]: step 3\n" + TIMEOUT.format(rank=1)
    table = "index, utilization.gpu [%]\n0, 100 %\n1, 100 %\n"
    alone = [x.detection.rank for x in _find(late, early).incidents]
    found = _find(late, early, table)
    assert found.kinds[2] is InputKind.SYSTEM
    assert [x.detection.rank for x in found.incidents] == alone
    assert alone[0] == 1


def test_a_system_log_alone_is_no_incident() -> None:
    found = _find(QUIET + XID.format(at="06:20:44", node="bay-20", code=79) + LINK.format(at="06:20:46", node="bay-20"))
    assert found.incidents == ()
    fatal = first_fatal_error(found)
    assert fatal is not None
    assert fatal.line == 4


@pytest.mark.parametrize(
    "text",
    [
        "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tSYS\t0-23\nGPU1\tSYS\t X \t24-47\n",
        "index, utilization.gpu [%]\n0, 100 %\n1, 0 %\n",
        QUIET + XID.format(at="06:20:44", node="bay-20", code=63),
        QUIET + "Mar 11 06:20:44 bay-20 kernel: INFO: task python3:7741 blocked for more than 122 seconds.\n",
    ],
)
def test_how_a_host_is_ends_no_process(text: str) -> None:
    assert first_fatal_error(_find(text)) is None


def test_inspect_tells_node_and_meaning() -> None:
    xid = (
        XID.format(at="06:20:44", node="bay-20", code=79)
        .replace("Mar 11 06", "2026-03-11T06")
        .replace("44 ", "44+00:00 ")
    )
    found = _find(_run(0, 1, 2), QUIET + xid)
    shown = inspection_as_dict(found, None, lambda text: text)
    (event,) = [e for e in shown["incidents"][0]["events"] if e["kind"] == "hardware"]
    assert (event["rank"], event["facts"]["node"], event["facts"]["code"]) == (3, "bay-20", 79)
    assert event["facts"]["time"] == "2026-03-11T06:20:44"
    assert event["facts"]["meaning"].startswith("Xid 79: the GPU has fallen off the bus")
    assert "Xid 79: the GPU has fallen off the bus" in render_inspection(shown, width=200)


@pytest.mark.parametrize(("at", "ranks"), [("06:25:00", (2,)), ("05:10:00", ()), ("06:40:00", ())])
def test_only_what_was_idle_during_the_wait_had_not_come(at: str, ranks: tuple[int, ...]) -> None:
    one_node = SET_UP.replace("bay-20", "bay-19")
    rows = "".join(f"2026/03/11 {at}.118, {g}, {0 if g == 2 else 100} %\n" for g in range(4))
    table = "timestamp, index, utilization.gpu [%]\n" + rows
    plain = one_node.replace(" cudaDev", " cuda_dev") + TIMEOUT.format(rank=0)
    x = _incident(plain, table)
    assert [e.rank for e in x.events if e.name == "idle"] == [2]
    assert initiating_ranks("uneven_sharding", x, []) == ranks


def test_a_kernel_log_in_the_folder_of_a_rank_speaks_for_its_node(tmp_path: Path) -> None:
    for rank in (0, 1, 2):
        (tmp_path / f"rank{rank}").mkdir()
        (tmp_path / f"rank{rank}" / "train.log").write_text(TIMEOUT.format(rank=rank))
    (tmp_path / "rank3").mkdir()
    (tmp_path / "rank3" / "dmesg").write_text(QUIET + XID.format(at="06:20:44", node="bay-20", code=79))
    (x,) = find(collect([tmp_path])).incidents
    assert (x.failed, x.missing) == ((), ())
    assert [e.rank for e in x.events if e.kind is EventKind.HARDWARE] == [None]


@pytest.mark.parametrize(
    ("at", "words"),
    [("Mar 11 05:50:45", "30 minutes"), ("Mar 10 23:20:45", "7 hours"), ("Mar 01 06:20:45", "10 days")],
)
def test_how_long_before_is_said_in_the_unit_that_people_use(at: str, words: str) -> None:
    line = XID.replace("Mar 11 {at}", at).format(node="bay-20", code=79)
    (event,) = _hardware(_incident(_run(0, 1, 2), QUIET + line))
    assert event.detail is not None
    assert f"{words} before the wait began" in event.detail
