"""Flight-recorder dumps beside the logs of a run: what each rank had enqueued when the wait had lasted long.

Scripts bring a thread that writes them once nothing moves; a rank that a signal stopped or ended leaves none.
"""

from __future__ import annotations

import json
from typing import Any

from train.simulate.gloo.run import Run
from train.simulate.gloo.works import Work, order, work

#: Calls that the ring buffer of a rank still holds.
_KEPT = (4, 12, 12, 30)
_NAMES = (
    "traces/comm_lib_trace_rank_{rank}.json",
    "traces/comm_lib_trace_rank_{rank}.json",
    "flight_recorder/nccl_trace_rank_{rank}.json",
    "fr/rank_{rank}.json",
    "comm_lib_trace_rank_{rank}.json",
)


def files(run: Run) -> dict[str, str]:
    """Dumps by path; none if no wait ran out or the script keeps no recorder."""
    if not run.recorded or not run.stands:
        return {}
    rng = run.rng
    form, kept, lines = rng.choice(_NAMES), rng.choice(_KEPT), rng.random() < 0.6
    found = {}
    for rank in run.ranks:
        if rank not in run.unrecorded:
            text = json.dumps(_dump(run, rank, kept), separators=(",", ":"))
            found[form.format(rank=rank)] = text.replace("},{", "},\n{") if lines else text
    return found


def _dump(run: Run, rank: int, kept: int) -> dict[str, Any]:
    stand = run.stands.get(rank)
    last = run.number + (stand[1] if stand else -1)
    first = max(1, last - kept + 1)
    entries = [_entry(run, number, rank, waits=False) for number in range(first, last + (stand is None))]
    if stand:
        entries.append(_entry(run, last, rank, waits=True, call=stand[0]))
    group = {"name": "0", "desc": "default_pg", "ranks": str(list(run.ranks))}
    return {
        "version": "2.10" if run.world.torch.rank >= 11 else "2.4",
        **({"nccl_version": run.world.nccl} if run.nccl else {"comm_lib_version": ""}),
        "pg_config": {"0": group},
        "pg_status": {
            "0": {
                "last_enqueued_collective": str(last),
                "last_started_collective": str(last) if run.nccl else "-1",
                "last_completed_collective": str(last - 1 if stand else last),
            }
        },
        "entries": entries,
    }


def _entry(run: Run, number: int, rank: int, *, waits: bool, call: str = "") -> dict[str, Any]:
    calls = order(run.world)
    place = (number - run.number) % len(calls)
    done = call or calls[place]
    made = work(run.world, done, 0 if call else place)
    age = 0.0 if waits else (run.number + 1 - number) * run.world.step_s / len(calls)
    at = int((run.story.onset - age) * 1e9) + 7919 * (rank + 1) * (number % 97)
    return {
        "record_id": number - 1,
        "pg_id": 0,
        "process_group": ["0", "default_pg"],
        "collective_seq_id": number,
        "p2p_seq_id": 0,
        "op_id": number,
        "profiling_name": _name(run, made),
        "time_created_ns": at,
        "input_sizes": [list(size) for size in made.sizes_in],
        "input_dtypes": ["Float"] * len(made.sizes_in),
        "output_sizes": [list(size) for size in made.sizes_out],
        "output_dtypes": ["Float"] * len(made.sizes_out),
        "state": ("started" if waits else "completed") if run.nccl else "scheduled",
        "time_discovered_started_ns": at + 30_000 if run.nccl else 0,
        "time_discovered_completed_ns": at + 900_000 if run.nccl and not waits else 0,
        "retired": not waits,
        "timeout_ms": run.world.timeout_s * 1000,
        "is_p2p": False,
    }


def _name(run: Run, made: Work) -> str:
    if not run.nccl:
        return f"gloo:{made.name}"
    names = {"_ALLGATHER_BASE": "_all_gather_base", "_REDUCE_SCATTER_BASE": "_reduce_scatter_base"}
    return f"nccl:{names.get(made.op, 'all_reduce_barrier' if made.name == 'barrier' else made.name)}"
