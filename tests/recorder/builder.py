"""Builds small sets of flight-recorder dumps as plain containers, and writes them as a recorder does."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

START_NS = 1_790_000_000_000_000_000
STEP_NS = 250_000_000
GATHER, REDUCE, ALLREDUCE, BROADCAST = (
    "nccl:_all_gather_base",
    "nccl:_reduce_scatter_base",
    "nccl:all_reduce",
    "nccl:broadcast",
)
Plain = dict[str, Any]
TRAIN = [
    {"name": "all_gather_into_tensor", "filename": "/opt/venv/lib/python3.12/site-packages/torch/x.py", "line": 9},
    {"name": "train_step", "filename": "/job/train.py", "line": 118},
    {"name": "main", "filename": "/job/train.py", "line": 201},
]
SAVE = [
    {"name": "all_reduce", "filename": "/opt/venv/lib/python3.12/site-packages/torch/x.py", "line": 7},
    {"name": "save_checkpoint", "filename": "/job/checkpoint.py", "line": 44},
]


def work(
    seq: int,
    *,
    op: str = GATHER,
    group: tuple[str, str] = ("0", "default_pg"),
    pg_id: int = 0,
    is_done: bool = True,
    size: int = 4096,
    is_p2p: bool = False,
    at: int | None = None,
    frames: Sequence[Mapping[str, Any]] = TRAIN,
    retired: bool = False,
) -> Plain:
    """One entry, enqueued `at` steps after the start (default: its number)."""
    created = START_NS + (seq if at is None else at) * STEP_NS
    return {
        "frames": list(frames),
        "record_id": seq,
        "pg_id": pg_id,
        "process_group": group,
        "collective_seq_id": 0 if is_p2p else seq,
        "p2p_seq_id": seq if is_p2p else 0,
        "op_id": seq,
        "profiling_name": op,
        "time_created_ns": created,
        "input_sizes": [[size]],
        "input_dtypes": ["BFloat16"],
        "output_sizes": [[4 * size]],
        "output_dtypes": ["BFloat16"],
        "state": "completed" if is_done else "scheduled",
        "time_discovered_started_ns": created + 1000 if is_done else None,
        "time_discovered_completed_ns": created + 2000 if is_done else None,
        "retired": retired or is_done,
        "timeout_ms": 600_000,
        "is_p2p": is_p2p,
    }


def dump(
    works: Sequence[Plain],
    *,
    groups: Mapping[str, tuple[str, Sequence[int]]] | None = None,
    version: str = "2.10",
    status: Mapping[str, tuple[int, int]] | None = None,
) -> Plain:
    """The top of a dump; `groups` maps a name to description and ranks, `status` a group's number to its counters."""
    found: Plain = {"version": version, "entries": list(works), "comm_lib_version": "2.27.5"}
    if groups is not None:
        found["pg_config"] = {
            name: {"name": name, "desc": desc, "ranks": str(list(ranks))} for name, (desc, ranks) in groups.items()
        }
    counters = status if status is not None else _status(works)
    found["pg_status"] = {
        key: {
            "last_enqueued_collective": enqueued,
            "last_started_collective": -1,
            "last_completed_collective": completed,
        }
        for key, (enqueued, completed) in counters.items()
    }
    return found


def _status(works: Sequence[Plain]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for row in works:
        enqueued, completed = found.get(str(row["pg_id"]), (-1, -1))
        seq = row["p2p_seq_id"] if row["is_p2p"] else row["collective_seq_id"]
        is_done = row["state"] == "completed"
        found[str(row["pg_id"])] = (max(enqueued, seq), max(completed, seq) if is_done else completed)
    return found


def as_pickle(found: Plain) -> bytes:
    """As a process writes it at a timeout."""
    return pickle.dumps(found, protocol=2)


def as_json(found: Plain) -> bytes:
    """As the debug server gives it: no stacks, times 0 for none, counters as text, no list of entries when empty."""
    entries = [
        {key: _json_value(key, value) for key, value in row.items() if key != "frames"} for row in found["entries"]
    ]
    status = {k: {name: str(n) for name, n in row.items()} for k, row in found["pg_status"].items()}
    top = {**found, "entries": entries, "pg_status": status, "nccl_comm_state": {}}
    if not entries:
        del top["entries"]
    return json.dumps(top).encode()


def _json_value(key: str, value: object) -> object:
    return 0 if value is None and key.startswith("time_discovered") else value


def write(folder: Path, dumps: Mapping[int, Plain], name: str = "comm_lib_trace_rank_{}") -> Path:
    """The dumps as files of `folder`, one a rank."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank, found in dumps.items():
        (folder / name.format(rank)).write_bytes(as_pickle(found))
    return folder


WORLD = {"0": ("default_pg", range(4))}


def steps(count: int) -> list[Plain]:
    """`count` completed all-gathers of the default group."""
    return [work(seq) for seq in range(1, count + 1)]


def set_of_four(last: Mapping[int, Sequence[Plain]], done: int = 11) -> dict[int, Plain]:
    """Four ranks that completed `done` calls; `last` gives what each rank recorded after that (absent: no dump)."""
    return {rank: dump([*steps(done), *works], groups=WORLD) for rank, works in last.items()}


def desync() -> dict[int, Plain]:
    """Rank 1 left the loop: under number 12 it issued another call."""
    stuck = [work(12, is_done=False)]
    other = [work(12, op=ALLREDUCE, size=1, is_done=False, frames=SAVE)]
    return set_of_four({0: stuck, 1: other, 2: stuck, 3: stuck})


def missing_rank() -> dict[int, Plain]:
    """Rank 2 left no dump."""
    stuck = [work(12, is_done=False)]
    return set_of_four({0: stuck, 1: stuck, 3: stuck})


def lagging_rank() -> dict[int, Plain]:
    """Rank 3 never enqueued number 12; the last it did was a reduction while it saved."""
    stuck = [work(12, is_done=False), work(13, op=REDUCE, is_done=False)]
    found = set_of_four({0: stuck, 1: stuck, 2: stuck})
    found[3] = dump([*steps(10), work(11, op=ALLREDUCE, size=1, frames=SAVE)], groups=WORLD)
    return found


def mismatch() -> dict[int, Plain]:
    """Rank 0 brings another size to the all-gather number 12."""
    stuck = [work(12, is_done=False)]
    return set_of_four({0: [work(12, is_done=False, size=1024)], 1: stuck, 2: stuck, 3: stuck})


def healthy() -> dict[int, Plain]:
    """A finished run: everybody completed everything."""
    return set_of_four({rank: [] for rank in range(4)})
