# ruff: noqa: E501
from collections.abc import Sequence

import pytest

from fsdpclassify.reading import Findings, find, first_fatal_error
from fsdpclassify.records import EventKind, Incident
from fsdpclassify.sources import from_text

STEP = "step {n} loss: 2.31\n"


def watchdog(rank: int, clock: str = "04:11:09", seq: int = 812, op: str = "_ALLGATHER_BASE", numel: int = 4096) -> str:
    return (
        f"[rank{rank}]:[E305 {clock}.778120334 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective "
        f"operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={4 * numel}, "
        "Timeout(ms)=600000) ran for 600000 milliseconds before timing out.\n"
    )


def found(*texts: str, hung: bool = False) -> Findings:
    return find(from_text(texts), hung=hung)


def incidents(*texts: str, hung: bool = False) -> Sequence[Incident]:
    return found(*texts, hung=hung).incidents


def test_timeouts_of_one_wait_are_one_incident() -> None:
    (incident,) = incidents(watchdog(0) + watchdog(1) + watchdog(2, "04:11:19") + watchdog(0, "04:11:21"))
    assert incident.waiting == (0, 1, 2)
    assert incident.collective is not None
    assert (incident.collective.op, incident.collective.seq, incident.collective.timeout_s) == (
        "_ALLGATHER_BASE",
        812,
        600.0,
    )


def test_onset_is_the_earliest_start_of_a_wait() -> None:
    (incident,) = incidents("2026-03-05 04:00:00 step 1 loss: 1\n" + watchdog(1, "04:11:12") + watchdog(0, "04:11:09"))
    assert incident.onset is not None
    assert incident.detection.time is not None
    assert incident.detection.time - incident.onset == 600
    assert incident.detection.rank == 0, "order is by clock"


def test_a_second_timeout_after_progress_is_a_second_incident() -> None:
    text = STEP.format(n=1) + watchdog(0) + STEP.format(n=2) + watchdog(0, "05:11:09", seq=900)
    first, second = incidents(text)
    assert (first.collective.seq, second.collective.seq) == (812, 900)  # type: ignore[union-attr]


def test_a_second_timeout_without_progress_joins_the_first() -> None:
    assert len(incidents(STEP.format(n=5) + watchdog(0) + STEP.format(n=5) + watchdog(1, "05:11:09"))) == 1


@pytest.mark.parametrize(
    "restart",
    [
        "[default] Worker group FAILED. 2/3 attempts left; will restart worker group\n",
        "2026-03-05 04:30:00 Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/4\n",
        "slurmstepd: error: *** JOB 1 ON node07 CANCELLED AT 2026-03-05T04:30:00 DUE TO JOB REQUEUE ***\n",
    ],
)
def test_a_restart_with_its_own_detection_is_an_incident_of_its_own(restart: str) -> None:
    assert len(incidents(watchdog(0) + restart + STEP.format(n=1) + watchdog(0, "05:11:09"))) == 2


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-05 04:00:00 Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/4\n{w}",
        "{w}2026-03-05 04:30:00 Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/4\nstep 9 loss: 1\n",
    ],
)
def test_a_start_without_a_detection_of_its_own_is_none(text: str) -> None:
    assert len(incidents(text.format(w=watchdog(0)))) == 1


def test_start_ups_of_files_without_clocks_split_nothing() -> None:
    text = "[rank{r}]: [rank {r}] initialized process group, world_size=2\n[rank{r}]: RuntimeError: Socket Timeout\n"
    assert len(incidents(*(text.format(r=r) for r in range(2)))) == 1


def test_what_stands_before_the_first_stamp_is_as_old_as_that() -> None:
    warn = "node1:1:1 [0] transport/net_ib.cc:1 NCCL WARN NET/IB : Got completion from peer 10.0.0.1<1> with error 12, "
    texts = [warn + "opcode 0\n" + watchdog(r, "05:11:09") + STEP.format(n=r + 5) for r in range(2)]
    texts.append("2026-03-05 04:00:00 step 1 loss: 2\n2026-03-05 05:00:00 step 2 loss: 2\n")
    assert len(incidents(*texts)) == 1


@pytest.mark.parametrize(
    "line",
    [
        "node1:1:1 [5] transport/net_ib.cc:1 NCCL WARN NET/IB : mlx5_6:1 Got async event : QP access violation error",
        "E0305 04:11:12.301000 8801 torch/x.py:1002] failed (exitcode: -9) local_rank: 5 (pid: 8834) of binary: python3",
        "slurmstepd: error: *** JOB 1 ON node07 CANCELLED AT 2026-03-05T04:11:20 DUE TO TIME LIMIT ***",
        "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='x', port=443): Read timed out. (read timeout=10)",
        "node07:4188:4301 [3] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.",
        "[rank3]: ValueError: bad sample",
        "[rank1]:[E211 10:00:07.0 ProcessGroupNCCL.cpp:1790] [PG ID 0 PG GUID 0(default_pg) Rank 1] Observed flight "
        "recorder dump signal from another rank via TCPStore.",
    ],
)
def test_what_is_no_incident(line: str) -> None:
    assert incidents(STEP.format(n=1) + line + "\n") == ()


def test_first_fatal_error_only_without_an_incident() -> None:
    fatal = first_fatal_error(found(STEP.format(n=1) + "[rank3]: ValueError: bad sample\n"))
    assert fatal is not None
    assert (fatal.line, fatal.rank) == (2, 3)
    assert first_fatal_error(found("[rank3]: ValueError: bad sample\n" + watchdog(0))) is None


SERVER = 'INFO:     10.0.4.9:30107 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'


def test_an_inference_server_alone_holds_no_incident() -> None:
    assert incidents(SERVER + watchdog(0)) == ()
    assert incidents(SERVER + watchdog(0), watchdog(1)) == (), "the files of its other ranks are its own"


def test_training_beside_an_engine_is_training() -> None:
    assert len(incidents(SERVER + STEP.format(n=1) + watchdog(0))) == 1
    assert len(incidents(SERVER, STEP.format(n=1) + watchdog(0))) == 1
    assert len(incidents(SERVER + "ERROR worker: IndexError: x\n", watchdog(0))) == 1, "the server waits in nothing"


def test_a_stated_hang_is_detected_at_the_end() -> None:
    text = "2026-03-05 04:00:00 step 1 loss: 2\n2026-03-05 05:00:00 step 2 loss: 2\n"
    assert incidents(text) == ()
    (incident,) = incidents(text, hung=True)
    assert (incident.detection.kind, incident.detection.line.number) == (EventKind.STATED_HANG, 2)


def test_a_stated_hang_adds_nothing_to_a_printed_timeout() -> None:
    (incident,) = incidents(watchdog(0) + STEP.format(n=1), hung=True)
    assert incident.detection.kind is EventKind.TIMEOUT


def test_the_group_of_a_work_comes_from_the_status_line() -> None:
    status = (
        "[rank0]:[E305 04:11:09.8 ProcessGroupNCCL.cpp:2271] [PG ID 2 PG GUID 9(mesh_fsdp) Rank 0]  failure detected by "
        "watchdog at work sequence id: 812 PG status: last enqueued work: 815, last completed work: 811\n"
    )
    (incident,) = incidents(watchdog(0) + status)
    assert incident.collective is not None
    assert incident.collective.group == "9(mesh_fsdp)"


def test_dates_are_told_from_clocks_without_a_year() -> None:
    (bare,) = incidents(watchdog(0))
    (dated,) = incidents("2026-03-05 04:00:00 step 1 loss: 2\n" + watchdog(0))
    assert bare.collective is not None
    assert dated.collective is not None
    assert (bare.collective.dated, dated.collective.dated) == (False, True)


def test_each_incident_knows_its_lines() -> None:
    first, second = incidents(STEP.format(n=1) + watchdog(0) + STEP.format(n=2) + watchdog(0, "05:11:09"))
    assert first.last_line == {0: 3}
    assert second.first_line == {0: 3}


RESTART = (
    "[rank0]: 2026-11-12 13:00:00,000 INFO step 5 loss 2.0\n"
    "[rank2]: 2026-11-12 13:05:00,000 torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    "W1112 13:05:03.000000 71 torch/distributed/elastic/agent/server/api.py:719] [default] Worker group FAILED. "
    "2/3 attempts left; will restart worker group\n"
)
STEPS = "".join(f"[rank0]: 2026-11-12 14:{m:02d}:00,000 INFO step {m} loss 2.0\n" for m in range(6))
LATER = "".join(
    f"[rank{r}]:[E1112 14:20:31.1 ProcessGroupNCCL.cpp:632] [Rank {r}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600041 milliseconds "
    "before timing out.\n"
    for r in (0, 1, 3)
)


def test_a_failure_of_an_attempt_that_was_restarted_is_not_that_of_the_next() -> None:
    (later,) = find(from_text([RESTART + STEPS + LATER])).incidents
    assert later.failed == ()
    assert later.missing == (2,)
    (same,) = find(from_text([RESTART + LATER])).incidents
    assert same.failed == (2,), "no step shows that the new attempt ran at all"


LOST = (
    "[rank2]:[E1112 14:31:02.1 ProcessGroupNCCL.cpp:1484] [PG ID 0 PG GUID 0(default_pg) Rank 2] Process group watchdog "
    "thread terminated with exception: NCCL error: remote process exited or there was a network error, NCCL version 2.21.5\n"
)


SLURM = "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-12T{} DUE TO TIME LIMIT ***\n"
CTRL_C = "^C[rank0]: KeyboardInterrupt\n"


@pytest.mark.parametrize(("end", "later"), [(SLURM.format("14:31:00"), SLURM.format("14:41:00")), (CTRL_C, CTRL_C)])
def test_losing_a_peer_after_somebody_ended_the_whole_run_is_no_incident(end: str, later: str) -> None:
    assert not find(from_text([STEPS + end + LOST])).incidents
    assert len(find(from_text([STEPS + LOST + later])).incidents) == 1
    assert len(find(from_text([STEPS + end + LOST + LATER])).incidents) == 1


def test_an_onset_is_no_finer_than_the_stamp_that_it_was_reckoned_from() -> None:
    ran = watchdog(0).replace("ran for 600000", "ran for 600013")
    (whole,) = incidents("2026-03-05 04:00:00 step 1 loss: 2\n" + ran)
    assert whole.collective is not None
    assert whole.collective.detected is not None
    assert whole.collective.onset == whole.collective.detected - 600
    assert whole.onset == pytest.approx(whole.collective.detected - 600.013)


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (" 12%|# | 12/100 [00:10<01:00, 1.0it/s][rank3]: ValueError: bad sample", 2),
        (
            "step 5 loss 2 [rank1]: loading [rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
            2,
        ),
        ("2026-03-05 04:00:01,123 ERROR train: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", 2),
    ],
)
def test_the_first_fatal_error_is_shown_as_its_line_was_printed(line: str, number: int) -> None:
    fatal = first_fatal_error(found("step 1 loss: 2\n" + line + "\n"))
    assert fatal is not None
    assert (fatal.line, fatal.text) == (number, line.strip())
