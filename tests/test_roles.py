# ruff: noqa: E501
import pytest

from fsdpclassify.reading import find
from fsdpclassify.records import Incident
from fsdpclassify.sources import from_text

WORK = "WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000)"


def watchdog(rank: int) -> str:
    return (
        f"[rank{rank}]:[E305 04:11:09.7 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation "
        f"timeout: {WORK} ran for 600000 milliseconds before timing out.\n"
    )


def notified(rank: int, enqueued: int) -> str:
    return (
        f"[rank{rank}]:[E305 04:11:10.7 ProcessGroupNCCL.cpp:1746] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Received a "
        "dump signal due to a collective timeout from  rank 0 and we will try our best to dump the debug info. "
        f"Last enqueued NCCL work: {enqueued}, last completed NCCL work: {enqueued}.This is most likely\n"
    )


def status(rank: int) -> str:
    return (
        f"[rank{rank}]:[E305 04:11:09.8 ProcessGroupNCCL.cpp:2271] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  failure "
        "detected by watchdog at work sequence id: 812 PG status: last enqueued work: 812, last completed work: 811\n"
    )


def incident(*texts: str) -> Incident:
    (only,) = find(from_text(texts)).incidents
    return only


@pytest.mark.parametrize(
    ("text", "waiting"),
    [
        (watchdog(1) + watchdog(3), (1, 3)),
        (notified(2, 4), (0,)),
        ("[Rank 0]: Ranks 3, 5 failed to pass monitoredBarrier in 60000 ms\n", (0,)),
        ("[rank4]: RuntimeError: [a/gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.4.9]:4112\n", (4,)),
        ("[rank4]: RuntimeError: Timed out waiting 60000ms for recv operation to complete\n", (4,)),
        ("[rank4]: torch.distributed.DistBackendError: NCCL error in: a.cpp:1, internal error, NCCL version 2.21.5\n", (4,)),
        ("AllGather timed out waiting for work on rank 6\n", (6,)),
        ("\t   - [1, 2] joined but didn't finish collective #912 (count from 1)\n" + watchdog(1), (1, 2)),
        ("[3] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store\n", (3,)),
    ],
)  # fmt: skip
def test_waiting(text: str, waiting: tuple[int, ...]) -> None:
    assert incident(text).waiting == waiting


def test_the_printer_of_a_transport_error_is_not_said_to_wait() -> None:
    text = "node1:1:1 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.1<1> with status=12 opcode=0\n"
    assert incident("[rank2]: step 1 loss: 2\n" + text).waiting == ()


@pytest.mark.parametrize(
    ("clock", "failed"),
    [("04:01:09", (2,)), ("04:01:14", (2,)), ("04:01:15", ()), ("04:05:00", ()), ("04:12:00", ())],
)
def test_an_error_failed_first_up_to_five_seconds_after_the_onset(clock: str, failed: tuple[int, ...]) -> None:
    assert incident(f"2026-03-05 {clock} [rank 2] x\n2026-03-05 {clock} rank=2 x\n", watchdog(0)).failed == ()
    text = f"2026-03-05T{clock}Z [rank2]: ValueError: bad sample\n"
    assert incident(text, watchdog(0) + watchdog(1)).failed == failed


def test_a_waiting_rank_did_not_fail_first() -> None:
    assert incident("2026-03-05T04:00:00Z [rank0]: ValueError: x\n", watchdog(0)).failed == ()


@pytest.mark.parametrize(("code", "failed"), [(-9, (2,)), (1, (2,)), (-11, (2,)), (-6, ()), (-15, ())])
def test_exits_of_a_report(code: int, failed: tuple[int, ...]) -> None:
    report = f"  time      : 2026-03-05_04:01:00\n  rank      : 2 (local_rank: 2)\n  exitcode  : {code} (pid: 8834)\n"
    assert incident(watchdog(0) + report).failed == failed


def test_an_abort_in_a_report_tells_who_waited_where_no_watchdog_line_does() -> None:
    report = "  time      : 2026-03-05_04:11:12\n  rank      : {r} (local_rank: {r})\n  exitcode  : {c} (pid: 8834)\n"
    stack = "    @     0x7e7203b239cf         111  c10d::ProcessGroupNCCL::Watchdog::run()\n"
    exits = report.format(r=1, c=-6) + report.format(r=2, c=-15)
    assert incident(stack + exits).waiting == (1,)
    assert incident(watchdog(0) + exits).waiting == (0,)


def test_a_report_of_the_teardown_names_nobody() -> None:
    report = "  time      : 2026-03-05_04:11:12\n  rank      : 2 (local_rank: 2)\n  exitcode  : 1 (pid: 8834)\n"
    assert incident(watchdog(0) + report).failed == ()


def test_missing_named_by_a_barrier_or_a_report() -> None:
    assert incident("[Rank 0]: Ranks 3, 5 failed to pass monitoredBarrier in 60000 ms\n").missing == (3, 5)
    lagging = "\t     [1, 2] finished collective #911, but didn't join collective #912 (count from 1)\n"
    assert incident(watchdog(0) + lagging).missing == (1, 2)


def test_missing_is_behind_on_the_same_group() -> None:
    assert incident(watchdog(0) + status(0) + notified(3, 811)).missing == (3,)
    assert incident(watchdog(0) + status(0) + notified(3, 812)).missing == ()


def test_absence_alone_proves_nothing_but_for_the_last_rank_of_a_known_world() -> None:
    assert incident("world_size=4\n" + watchdog(0) + watchdog(1) + watchdog(3)).missing == (2,)
    assert incident("world_size=4\n" + watchdog(0) + watchdog(1)).missing == ()
    assert incident("world_size=2\n" + watchdog(0)).missing == ()


def test_a_hostile_rank_or_world_costs_no_memory() -> None:
    assert incident(watchdog(999_999_999_999)).missing == ()
    assert incident("world_size=99999999999\n" + watchdog(0) + watchdog(1)).missing == ()


def test_one_gap_in_whole_nodes_of_waiting_ranks_is_the_missing_rank() -> None:
    def missing(*ranks: int, head: str = "") -> tuple[int, ...]:
        return incident(head + "".join(watchdog(rank) for rank in ranks)).missing

    assert missing(0, 1, 3) == (2,)
    assert missing(1, 2, 3, 4, 5, 6, 7) == (0,)
    assert missing(0, 1, 2, 3, 4, 5, 6) == (7,)
    assert missing(0, 1, 3, head="world_size=16\n") == ()
    for cut in ((0, 1), (0, 3), (0, 1, 2), (1, 3, 5, 7), (8, 9, 10, 11), (0, 1, 2, 3, 5, 7)):
        assert missing(*cut) == ()


def test_a_rank_that_went_on_after_a_logged_error_survived_it() -> None:
    logged = "[rank2]: 2026-03-05 04:00:00,000 ERROR data: ValueError: bad sample\n"
    later = "[rank2]: 2026-03-05 04:00:30,000 INFO step 9 loss: 2.0\n"
    assert incident(logged + watchdog(0)).failed == (2,)
    assert incident(logged + later + watchdog(0)).failed == ()


def test_an_unstamped_error_behind_a_later_stamp_of_its_own_file_came_after_the_timeout() -> None:
    error = "[rank2]: ValueError: bad sample\n"
    assert incident(watchdog(0), f"[rank2]: 2026-03-05 04:00:00,000 INFO at work\n{error}").failed == (2,)
    assert incident(watchdog(0), f"[rank2]: 2026-03-05 04:20:00,000 INFO at work\n{error}").failed == ()


def test_what_a_rank_says_when_its_peers_gave_up_is_no_failure() -> None:
    text = "[rank2]: RuntimeError: NCCL communicator was aborted on rank 2.\n"
    assert (incident(watchdog(0), text).failed, incident(watchdog(0), text).waiting) == ((), (0, 2))


def test_the_silence_of_one_rank_says_something_where_all_speak() -> None:
    def steps(*ranks: int) -> str:
        return "".join(f"[rank{r}]: 2026-03-05 04:00:00,000 INFO step 9 loss: 2.0\n" for r in ranks)

    assert incident(steps(0, 1, 2, 3) + "".join(map(watchdog, (0, 1, 3)))).missing == (2,)
    assert incident(steps(0, 2, 5) + "".join(map(watchdog, (0, 5)))).missing == ()


def test_a_main_process_that_names_itself_is_not_missing_by_its_silence() -> None:
    text = "[2026-03-05 04:00:00,117] [INFO] [logging.py:96:log_dist] [Rank 0] step=43, skipped=0\n"
    assert incident(text + watchdog(1)).missing == ()


def test_ray_swallows_what_other_workers_said() -> None:
    text = "(WorkerDict pid=7) [rank0]: loading\n(WorkerDict pid=8) [rank2]: loading\n"
    assert incident(text + f"(WorkerDict pid=9) {watchdog(1)}").missing == ()


def test_after_the_set_up_of_communicators_ranks_wait_whatever_ran_before_it() -> None:
    ready = "".join(
        f"node1:{n}:1 [{n}] NCCL INFO comm 0x5{n} rank {n} nranks 2 cudaDev {n} busId 1 - Init COMPLETE\n"
        for n in (0, 1)
    )
    (found,) = find(from_text([f"step 7 loss: 2.0\n{ready}"]), hung=True).incidents
    assert found.waiting == (0, 1)
    (found,) = find(from_text([f"{ready}step 7 loss: 2.0\n"]), hung=True).incidents
    assert found.waiting == ()


def unheard(*texts: str) -> list[int]:
    return [row.rank for row in incident(*texts).ledger if row.unheard]


def test_a_missing_rank_for_which_only_the_absence_of_its_log_speaks_is_unheard() -> None:
    seven = [watchdog(r) for r in range(7)]
    x = incident(*seven)
    assert (x.missing, unheard(*seven)) == ((7,), [7])
    assert unheard(*seven, notified(7, 811)) == []
    assert unheard("".join(seven) + "[rank7]: loading shard 3 of 9\n") == [], "its log is here"


def test_a_rank_that_somebody_names_is_heard_of() -> None:
    barrier = (
        "[rank0]: RuntimeError: [Rank 0]: Ranks 3 failed to pass monitoredBarrier in 1800000 ms\n"
        "[rank0]: more text that follows\n"
    )
    x = incident(barrier)
    assert x.missing == (3,)
    assert not any(row.unheard for row in x.ledger)


def test_what_names_no_rank_may_be_that_of_the_first_one() -> None:
    others = [watchdog(r) for r in range(1, 8)]
    assert incident(*others).missing == (0,)
    assert unheard(*others) == [0]
    assert unheard("step 4 loss 2.1\n" + "".join(others)) == []
