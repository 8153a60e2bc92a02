"""The facts of a gloo run in the words of the NCCL process group.

Counters, operations and sizes are those that the ranks really had; only the printer is another. The blocks that
the gloo backend printed on waiting ranks give way to watchdog lines at the time when the wait had run out.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_OPS = {
    "_all_gather_base": "_ALLGATHER_BASE",
    "all_gather": "ALLGATHER",
    "_reduce_scatter_base": "_REDUCE_SCATTER_BASE",
    "reduce_scatter_tensor_coalesced": "_REDUCE_SCATTER_BASE",
    "all_reduce": "ALLREDUCE",
    "barrier": "ALLREDUCE",
    "broadcast": "BROADCAST",
}
_BLOCK = re.compile(r"^\[rank\d+\]: .*\n?", re.MULTILINE)
Facts = Mapping[str, Any]


def transcribe(files: Mapping[str, str], facts: Mapping[int, Facts], waiting: Sequence[int]) -> dict[str, str]:
    """Per-rank streams (`…/<rank>/stderr.log`) with NCCL lines for `waiting`. ValueError where facts are missing.

    A run in which no wait ran out has nothing that the watchdog would print: ValueError too.
    """
    if not any("Timed out waiting" in text for text in files.values()):
        raise ValueError("no wait ran out in this run")
    found: dict[str, str] = {}
    for name, text in files.items():
        if not name.endswith(("stderr.log", "stdout.log")):
            continue  # the launcher's report names exit codes that an abort would not have
        rank = _rank_of(name)
        if rank in waiting and name.endswith("stderr.log"):
            text = _BLOCK.sub("", text) + "\n".join(_watchdog(rank, facts.get(rank))) + "\n"
        found[name] = text
    return found


def _rank_of(name: str) -> int:
    """The rank whose stream `name` is: `attempt_0/<local>/stderr.log`, on two nodes of two below `node<n>/`."""
    first, local = name.split("/")[0], int(name.split("/")[-2])
    return local + 2 * int(first[-1]) if first.startswith("node") else local


def _watchdog(rank: int, facts: Facts | None) -> list[str]:
    if not facts or not facts.get("entries"):
        raise ValueError(f"no counters of rank {rank}")
    entry = facts["entries"][-1]
    onset = entry["time_created_ns"] / 1e9
    limit = int(entry["timeout_ms"])
    group, description = entry["process_group"]
    status = facts["status"][group]
    ran = limit + 5 + int(onset * 1000) % 95
    head = _head(rank, onset + ran / 1000)
    pg = f"[PG ID {group} PG GUID {group}({description}) Rank {rank}]"
    enqueued, completed = int(status["last_enqueued_collective"]), entry["collective_seq_id"] - 1
    work = (
        f"WorkNCCL(SeqNum={entry['collective_seq_id']}, OpType={_op(entry)}, NumelIn={_numel(entry['input_sizes'])}, "
        f"NumelOut={_numel(entry['output_sizes'])}, Timeout(ms)={limit})"
    )
    caught = f"Watchdog caught collective operation timeout: {work} ran for {ran} milliseconds before timing out."
    return [
        f"{head(685)} [Rank {rank}] {caught}",
        f"{head(2252)} {pg} failure detected by watchdog at work sequence id: {entry['collective_seq_id']} "
        f"PG status: last enqueued work: {enqueued}, last completed work: {completed}",
        f"{head(732)} Stack trace of the failed collective not found, potentially because FlightRecorder is disabled. "
        "You can enable it by setting TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value.",
        f"{head(2584)} {pg} First PG on this rank to signal dumping.",
        f"{head(739)} [Rank {rank}] Some NCCL operations have failed or timed out. Due to the asynchronous nature of "
        "CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.",
        f"{head(753)} [Rank {rank}] To avoid data inconsistency, we are taking the entire process down.",
        f"{head(2057)} {pg} Process group watchdog thread terminated with exception: [Rank {rank}] {caught}",
    ]


def _head(rank: int, when: float) -> Callable[[int], str]:
    """A maker of c10 heads at one moment: `head(line)`."""
    at = time.localtime(when)
    stamp = f"{at.tm_mon}{at.tm_mday:02d} {at.tm_hour:02d}:{at.tm_min:02d}:{at.tm_sec:02d}"
    fraction = int(when * 7919 * 1e6) % 1_000_000_000
    return lambda line: f"[rank{rank}]:[E{stamp}.{fraction + line:09d} ProcessGroupNCCL.cpp:{line}]"


def _op(entry: Facts) -> str:
    name = str(entry["profiling_name"]).rpartition(":")[2]
    if name == "all_gather" and len(entry["output_sizes"]) == 1:
        name = "_all_gather_base"  # gloo calls both forms by one name
    return _OPS.get(name, name.upper())


def _numel(sizes: Sequence[Sequence[int]]) -> int:
    return sum(math.prod(s) for s in sizes) or 1
