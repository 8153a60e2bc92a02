# ruff: noqa: E501
import pytest

from fsdpclassify.ledger import trend, world_size
from fsdpclassify.reading import find
from fsdpclassify.records import LedgerRow, Role
from fsdpclassify.sources import from_text

WORK = "WorkNCCL(SeqNum=812, OpType=_ALLGATHER_BASE, NumelIn=4096, NumelOut={out}, Timeout(ms)=600000)"


def watchdog(rank: int, out: int = 16384) -> str:
    return (
        f"[rank{rank}]:[E305 04:11:09.7 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation "
        f"timeout: {WORK.format(out=out)} ran for 600000 milliseconds before timing out.\n"
    )


def status(rank: int, group: str, seq: int, enqueued: int, completed: int) -> str:
    return (
        f"[rank{rank}]:[E305 04:11:09.8 ProcessGroupNCCL.cpp:2271] [PG ID 0 PG GUID {group} Rank {rank}]  failure detected "
        f"by watchdog at work sequence id: {seq} PG status: last enqueued work: {enqueued}, last completed work: {completed}\n"
    )


def world(text: str) -> int | None:
    return world_size(find(from_text([text])).events)


def rows(*texts: str) -> dict[int, LedgerRow]:
    (incident,) = find(from_text(texts)).incidents
    return {row.rank: row for row in incident.ledger}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("world_size=8\n", 8),
        ("torch.distributed.DistStoreError: Timed out after 301 seconds waiting for clients. 3/4 clients joined.\n", 4),
        ("node1:1:1 [0] NCCL INFO comm 0x55 rank 1 nranks 2 cudaDev 1 busId 1 - Init COMPLETE\n"
         "node1:1:1 [0] NCCL INFO comm 0x56 rank 5 nranks 8 cudaDev 1 busId 1 - Init COMPLETE\n", 8),
        ("[rank3]:[I305 04:11:09.7 ProcessGroupNCCL.cpp:881] [PG ID 0 PG GUID 0 Rank 3] ProcessGroupNCCL initialization options: size: 16, global rank: 3, TIMEOUT(ms): 600000\n", 16),
        ("[rank3]:[I305 04:11:09.7 ProcessGroupNCCL.cpp:881] [PG ID 3 PG GUID 7 Rank 1] ProcessGroupNCCL initialization options: size: 4, global rank: 3, TIMEOUT(ms): 600000\n", None),
        ("world_size=2\n[rank5]: step 1 loss: 2\n", None),
        ("".join(watchdog(r) for r in range(4)), 4),
        (watchdog(0), None),
        (watchdog(0) + status(0, "0(default_pg)", 812, 813, 811), 4),
        (watchdog(0) + status(0, "9(mesh_fsdp)", 812, 813, 811), None),
        (watchdog(0).replace("_ALLGATHER_BASE, NumelIn=4096, NumelOut=16384", "_REDUCE_SCATTER_BASE, NumelIn=16384, NumelOut=4096")
         + status(0, "0(default_pg)", 812, 813, 811), 4),
        (watchdog(0).replace("_ALLGATHER_BASE", "BROADCAST") + status(0, "0(default_pg)", 812, 813, 811), None),
        ("step 1 loss: 2\n", None),
    ],
)  # fmt: skip
def test_world_size_is_stated_or_implied_beyond_doubt_or_null(text: str, size: int | None) -> None:
    assert world(text) == size


def test_rows_tell_steps_errors_and_roles() -> None:
    text = (
        "".join(f"[rank1]: step {n} loss: 2.0 step_time=1.5s\n" for n in range(1, 9))
        + "2026-03-05T04:00:00Z [rank2]: ValueError: bad sample\n"
        + watchdog(0)
        + "[rank3]:[E305 04:11:10.7 ProcessGroupNCCL.cpp:1790] [PG ID 0 PG GUID 0(default_pg) Rank 3] Observed flight "
        "recorder dump signal from another rank via TCPStore.\n"
    )
    found = rows(text)
    assert {r: row.role for r, row in found.items()} == {
        0: Role.WAITING,
        1: Role.UNKNOWN,
        2: Role.FAILED,
        3: Role.NOTIFIED,
    }
    assert (found[1].last_step, found[1].step_time_s, found[1].step_trend) == (8, 1.5, 1.0)
    assert found[2].first_error == "ValueError: bad sample"
    assert (found[0].dump, found[3].dump) == (False, True)


def test_counters_of_different_groups_are_kept_apart() -> None:
    text = watchdog(0) + status(0, "9(mesh_fsdp)", 812, 815, 811) + status(0, "0(default_pg)", 3, 41, 41)
    row = rows(text)[0]
    assert {(g.group, g.enqueued, g.completed) for g in row.groups} == {
        ("9(mesh_fsdp)", 815, 811),
        ("0(default_pg)", 41, 41),
    }
    assert (row.enqueued, row.completed) == (815, 811), "the group of the work that timed out"


def test_exit_codes_of_a_report_stand_in_the_row() -> None:
    report = "  time      : 2026-03-05_04:01:00\n  rank      : 2 (local_rank: 2)\n  exitcode  : -9 (pid: 8834)\n"
    row = rows(watchdog(0) + report)[2]
    assert (row.exit_code, row.role) == (-9, Role.FAILED)


@pytest.mark.parametrize(
    ("times", "expected"),
    [([1.0] * 5, None), ([1.0] * 6, 1.0), ([1.0] * 6 + [2.0] * 3, 2.0), ([0.0] * 6, None)],
)
def test_trend(times: list[float], expected: float | None) -> None:
    assert trend(times) == expected
