# ruff: noqa: E501
from collections.abc import Callable

import pytest

from fsdpclassify.records import Event, EventKind, Line

Events = Callable[..., list[Event]]
Lines = Callable[..., list[Line]]

WORK = "WorkNCCL(SeqNum=812, OpType=_ALLGATHER_BASE, NumelIn=4096, NumelOut=16384, Timeout(ms)=600000)"
RAN = "ran for 600041 milliseconds before timing out."


@pytest.mark.parametrize(
    ("line", "rank", "seq", "numel"),
    [
        ("[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(OpType=BROADCAST, Timeout(ms)=1800000) ran for 1800321 milliseconds before timing out.", 2, None, None),
        ("[E ProcessGroupNCCL.cpp:587] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(OpType=BROADCAST, TensorShape=[1], Timeout(ms)=1800000) ran for 1800321 milliseconds before timing out.", 2, None, None),
        ("[E ProcessGroupNCCL.cpp:828] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800321 milliseconds before timing out.", 2, 812, None),
        (f"[E ProcessGroupNCCL.cpp:474] [Rank 2] Watchdog caught collective operation timeout: {WORK} {RAN}", 2, 812, 4096),
        (f"[rank2]:[E ProcessGroupNCCL.cpp:563] [Rank 2] Watchdog caught collective operation timeout: {WORK} {RAN}", 2, 812, 4096),
        (f"[rank17]:[E305 04:11:09.778120334 ProcessGroupNCCL.cpp:607] [Rank 2] Watchdog caught collective operation timeout: {WORK} {RAN}", 17, 812, 4096),
        (f"[rank17]:[E1218 04:11:09.778120334 ProcessGroupNCCL.cpp:757] [PG GUID 9(mesh_fsdp) Rank 2] Watchdog caught collective operation timeout: {WORK} {RAN}", 17, 812, 4096),
        (f"[E305 04:11:09.778120334 ProcessGroupHCCL.cpp:400] [Rank 2] Watchdog caught collective operation timeout: {WORK.replace('NCCL', 'HCCL')} {RAN}", 2, 812, 4096),
        (f"E0305 04:11:09.778120 4411 ProcessGroupNCCL.cpp:632] [Rank 2] Watchdog caught collective operation timeout: {WORK} {RAN}", 2, 812, 4096),
        (f"  what():  [PG 0 Rank 2] Watchdog caught collective operation timeout: {WORK} {RAN}", 2, 812, 4096),
        (f"  what():  [PG ID 0 PG GUID 0(default_pg) Rank 2] Process group watchdog thread terminated with exception: [Rank 2] Watchdog caught collective operation timeout: {WORK} {RAN}", 2, 812, 4096),
    ],
)  # fmt: skip
def test_watchdog_timeout_of_every_version(
    events: Events, line: str, rank: int | None, seq: int | None, numel: int | None
) -> None:
    (found,) = [e for e in events(line) if e.kind is EventKind.TIMEOUT]
    assert (found.rank, found.seq, found.numel_in) == (rank, seq, numel)
    assert found.name == "watchdog"
    assert found.elapsed_s is not None
    assert found.timeout_s in (600.0, 1800.0)


def test_rank_of_a_named_sub_group_is_not_taken_for_the_global_rank(events: Events) -> None:
    line = f"[E ProcessGroupNCCL.cpp:607] [PG 3 (mesh_tp) Rank 1] Watchdog caught collective operation timeout: {WORK} {RAN}"
    (found,) = events(line)
    assert found.rank is None
    assert found.group_rank == 1
    assert found.group == "3(mesh_tp)"


def test_numel_of_a_coalesced_batch_is_unknown(events: Events) -> None:
    line = "[rank1]:[E ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=COALESCED, NumelIn=18446744073709551615, NumelOut=18446744073709551615, Timeout(ms)=600000) ran for 600041 milliseconds before timing out."
    (found,) = events(line)
    assert found.numel_in is None
    assert found.op == "COALESCED"


def test_blocking_wait_and_a_communicator_aborted_on_a_named_rank(events: Events) -> None:
    (found,) = events(f"RuntimeError: Work {WORK} timed out in blocking wait.")
    assert (found.name, found.seq) == ("blocking_wait", 812)
    line = f"RuntimeError: NCCL communicator was aborted on rank 6.  Original reason for failure was: {WORK} {RAN}"
    (found,) = events(line)
    assert found.rank == 6


def test_async_error_is_an_nccl_error_and_no_timeout(events: Events) -> None:
    line = f"[Rank 3] Collective {WORK} raised the following async exception: NCCL error: remote process exited or there was a network error, NCCL version 2.21.5"
    assert [e.kind for e in events(line)] == [EventKind.NCCL_ERROR]


@pytest.mark.parametrize(
    "line",
    [
        "[rank4]:[E ProcessGroupNCCL.cpp:1537] [PG 1 Rank 4] Timeout at NCCL work: 88, last enqueued NCCL work: 91, last completed NCCL work: 87.",
        "[rank4]:[E305 04:11:09.7 ProcessGroupNCCL.cpp:1664] [PG 1 (mesh_fsdp) Rank 4] Exception (either an error or timeout) detected by watchdog at work: 88, last enqueued NCCL work: 91, last completed NCCL work: 87.",
        "[rank4]:[E305 04:11:09.778120334 ProcessGroupNCCL.cpp:2271] [PG ID 2 PG GUID 9(mesh_fsdp) Rank 4]  failure detected by watchdog at work sequence id: 88 PG status: last enqueued work: 91, last completed work: 87",
    ],
)
def test_status_of_every_version(events: Events, line: str) -> None:
    (found,) = events(line)
    assert (found.kind, found.rank, found.seq, found.enqueued, found.completed) == (EventKind.STATUS, 4, 88, 91, 87)


def test_status_of_a_group_on_which_nothing_ever_completed(events: Events) -> None:
    (found,) = events(
        "[rank0]:[E ProcessGroupNCCL.cpp:2271] [PG ID 0 PG GUID 0(default_pg) Rank 0]  failure detected by watchdog at work sequence id: 1 PG status: last enqueued work: 1, last completed work: -1"
    )
    assert found.completed == -1


@pytest.mark.parametrize(
    ("text", "kind", "peer", "states"),
    [
        ("First PG on this rank to signal dumping.", EventKind.DUMPING, None, False),
        ("Observed flight recorder dump signal from another rank via TCPStore.", EventKind.NOTIFIED, None, False),
        ("Received a global timeout from another rank and will start to dump the debug info.", EventKind.NOTIFIED, None, True),
        ("Received a dump signal from this local rank and will start to dump the debug info. Last enqueued NCCL work: 41, last completed NCCL work: 40.", EventKind.DUMPING, None, True),
        ("Received a global dump signal from rank 14, and will start to dump the debug info. Last enqueued NCCL work: 41, last completed NCCL work: 40.", EventKind.NOTIFIED, 14, True),
        ("Received a dump signal due to a collective timeout from this local rank and we will try our best to dump the debug info. Last enqueued NCCL work: 41, last completed NCCL work: 40.This is most likely caused by incorrect usages", EventKind.DUMPING, None, True),
        ("Received a dump signal due to a collective timeout from  rank 14 and we will try our best to dump the debug info. Last enqueued NCCL work: 41, last completed NCCL work: 40.This is most likely", EventKind.NOTIFIED, 14, True),
    ],
)  # fmt: skip
def test_dump_lines(events: Events, text: str, kind: EventKind, peer: int | None, states: bool) -> None:
    (found,) = events(
        f"[rank3]:[E211 10:00:07.000412558 ProcessGroupNCCL.cpp:1858] [PG ID 0 PG GUID 0(default_pg) Rank 3] {text}"
    )
    assert (found.kind, found.rank, found.peer) == (kind, 3, peer)
    assert (found.detail == "states_timeout") is states
    if "enqueued" in text:
        assert (found.enqueued, found.completed) == (41, 40)


@pytest.mark.parametrize(
    "text",
    [
        "Heartbeat monitor timed out! Process will be terminated after dumping debug info. workMetaList_.size()=3",
        "First PG on this rank that detected no heartbeat of its watchdog.",
        "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued collectives.",
        "[PG 0 (default_pg) Rank 3] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress",
        "Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang.",
        "NCCL monitor thread timeout. Basically, this could be due to CUDA or NCCL calls being unexpectedly blocking",
    ],
)
def test_heartbeat_lines(events: Events, text: str) -> None:
    (found,) = events(f"[rank3]:[F211 10:00:07.000412558 ProcessGroupNCCL.cpp:1413] [PG 0 (default_pg) Rank 3] {text}")
    assert (found.kind, found.rank) == (EventKind.HEARTBEAT, 3)


def test_abort_whose_stack_holds_the_watchdog(events: Events) -> None:
    kinds = [e.kind for e in events("    @     0x7e7203b239cf         111  c10d::ProcessGroupNCCL::Watchdog::run()")]
    assert kinds == [EventKind.WATCHDOG_ABORT]


def test_watchdog_that_died_of_a_device_fault(events: Events) -> None:
    line = "[rank3]:[E211 10:00:07.0 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank 3] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered"
    assert {(e.kind, e.name) for e in events(line)} == {(EventKind.ERROR, "cuda_error"), (EventKind.HARDWARE, "gpu")}


def test_second_backend(events: Events) -> None:
    (found,) = events("Aborting process on rank 5 due to timeout - timeout watchdog detected operation timeout")
    assert (found.kind, found.rank) == (EventKind.TIMEOUT, 5)
