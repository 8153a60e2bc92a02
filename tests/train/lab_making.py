"""What the tests of the fault lab share: its plan, a wait in gloo's words, counters and dumps of one rank."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from train.lab.faults import load_faults
from train.lab.plan import Recording, plan

ROOT = Path(__file__).resolve().parents[2]
RECORDED = sorted(p.parent for p in (ROOT / "data" / "lab").glob("*/*/incident.json"))
GLOO = (
    "[rank{0}]: Traceback (most recent call last):\n"
    '[rank{0}]:   File "/opt/app/pretrain.py", line 28, in main\n'
    "[rank{0}]: RuntimeError: [/__w/pytorch/gloo/transport/tcp/unbound_buffer.cc:78] "
    "Timed out waiting 8000ms for recv operation to complete\n"
)
FACTS = {
    "status": {"0": {"last_enqueued_collective": "41", "last_completed_collective": "40"}},
    "entries": [
        {
            "collective_seq_id": 41,
            "input_sizes": [[337]],
            "output_sizes": [[1348]],
            "process_group": ["0", "default_pg"],
            "profiling_name": "gloo:all_gather",
            "time_created_ns": 1_796_039_875_487_522_350,
            "timeout_ms": 8000,
        }
    ],
}


@cache
def planned() -> tuple[Recording, ...]:
    """All recordings, in the order of the plan."""
    return tuple(plan(load_faults()))


def first_of(name: str, **wanted: object) -> Recording:
    """The first recording of a fault with these properties."""
    return next(r for r in planned() if r.fault.name == name and all(getattr(r, k) == v for k, v in wanted.items()))


def dump(enqueued: int, call: str = "all_reduce", numel: int = 5, group: str = "0") -> str:
    """A dump of one rank, as gloo's recorder writes it: the call in flight and the counters of one group."""
    entry = {"pg_id": int(group), "collective_seq_id": enqueued, "profiling_name": f"gloo:{call}"}
    status = {"last_enqueued_collective": str(enqueued), "last_completed_collective": str(enqueued - 1)}
    return json.dumps({"entries": [entry | {"input_sizes": [[numel]]}], "pg_status": {group: status}})


def dumps_of(*texts: str | None) -> dict[str, str]:
    return {f"traces/comm_lib_trace_rank_{rank}.json": text for rank, text in enumerate(texts) if text is not None}
