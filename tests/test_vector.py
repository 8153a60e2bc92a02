# ruff: noqa: E501
import math

import pytest

from fsdpclassify.reading import find
from fsdpclassify.sources import from_text
from fsdpclassify.vector import LEDGER_FACTS, ledger_vector, named


def watchdog(rank: int, op: str = "ALLREDUCE", numel: int = 4096, seq: int = 812, clock: str = "04:11:09") -> str:
    return (
        f"[rank{rank}]:[E305 {clock}.7 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation "
        f"timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)=600000) ran for "
        "600000 milliseconds before timing out.\n"
    )


def facts(*texts: str) -> dict[str, float]:
    (incident,) = find(from_text(texts)).incidents
    return named(ledger_vector(incident))


def test_one_finite_value_for_each_name() -> None:
    found = facts(watchdog(0))
    assert tuple(found) == LEDGER_FACTS
    assert len(set(LEDGER_FACTS)) == len(LEDGER_FACTS)
    assert all(math.isfinite(v) and -0.01 <= v <= 2.0 for v in found.values())


@pytest.mark.parametrize(
    ("texts", "true", "false"),
    [
        ([watchdog(0), watchdog(1)], ["has_timeout", "op_allreduce"], ["ops_differ", "same_seq_other_op", "numel_is_one"]),
        ([watchdog(0, numel=1)], ["numel_is_one"], ["first_collectives"]),
        ([watchdog(0, seq=1)], ["first_collectives", "init_stage"], []),
        ([watchdog(0), watchdog(1, "_ALLGATHER_BASE")], ["ops_differ", "same_seq_other_op"], ["same_seq_other_size"]),
        ([watchdog(0), watchdog(1, numel=8)], ["same_seq_other_size", "tiny_against_large"], ["ops_differ"]),
        (["2026-03-05T04:00:00Z [rank2]: ValueError: x\n" + watchdog(0)], ["early_error", "failed_any"], ["late_error", "early_oom"]),
        (["2026-03-05T04:00:00Z [rank2]: AssertionError: loss is NaN on this rank\n" + watchdog(0)], ["early_error", "early_error_own"], []),
        (["2026-03-05T04:00:00Z [rank2]: RuntimeError: Expected to have finished reduction in the prior iteration\n" + watchdog(0)], ["early_error"], ["early_error_own"]),
        (["world_size=2\n2026-03-05T04:00:00Z ValueError: x\n" + watchdog(0) + watchdog(1)], ["all_wait"], ["early_error", "early_error_own"]),
        (["2026-03-05T04:00:00Z [rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n" + watchdog(0)], ["early_oom"], []),
        ([watchdog(0) + "2026-03-05T04:11:30Z [rank2]: ValueError: x\n"], ["late_error", "late_error_elsewhere"], ["early_error", "failed_any"]),
        (["2026-03-05T04:01:00Z Sending process 1 closing signal SIGTERM\n" + watchdog(0)], ["terminated_early"], ["early_signal"]),
        (["Training complete\n" + watchdog(0)], ["finished_before"], []),
        ([watchdog(0) + "NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.\n"], ["hardware_gpu"], ["hardware_link"]),
        (["world_size=2\n" + watchdog(0) + watchdog(1)], ["world_known", "all_wait", "waiting_share"], ["missing_any"]),
    ],
)  # fmt: skip
def test_facts(texts: list[str], true: list[str], false: list[str]) -> None:
    found = facts(*texts)
    assert [name for name in true if not found[name]] == []
    assert [name for name in false if found[name]] == []


def test_transport_facts() -> None:
    line = "node1:1:1 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.1<1> with status=12 opcode=0 len=0\n"
    found = facts("step 1 loss: 2\n" + line)
    assert (found["transport_first"], found["status_12"], found["has_transport_error"]) == (1.0, 1.0, 1.0)


def test_bars() -> None:
    bar = "2026-03-05 04:01:00 Map:  57%|█▋| 1140/2000 [09:55<22:34, 2.0s/it]\n"
    found = facts(bar + watchdog(0))
    assert (found["bar_done"], found["bar_near_limit"]) == (0.57, 1.0)


def test_order_of_files_changes_nothing() -> None:
    files = [watchdog(0), watchdog(1, clock="04:11:12"), "2026-03-05T04:00:00Z [rank2]: ValueError: x\n"]
    assert facts(*files) == facts(*reversed(files))
