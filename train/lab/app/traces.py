"""A watchdog thread that writes the flight recorder of its rank when collectives have stood still for long.

Gloo has no watchdog of its own; scripts that want dumps on it bring such a thread. A later stand overwrites the
file of an earlier one, and a rank that a signal ends or stops leaves none.
"""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any

#: The share of the timeout that the newest collective must be old before a dump is written.
_SHARE = 0.7
_POLL_S = 0.4


def recorded() -> tuple[str, dict[str, Any]]:
    """The recorder as JSON text, and the same as containers."""
    from torch._C._distributed_c10d import _dump_fr_trace_json  # type: ignore[attr-defined]

    text = bytes(_dump_fr_trace_json()).decode()
    return text, json.loads(text)


def watch(rank: int, limit: float) -> None:
    """Start the thread where the run names a folder for dumps; `RUN_TRACES_FORM` says in which form (json, pickle)."""
    if folder := os.environ.get("RUN_TRACES"):
        pickled = os.environ.get("RUN_TRACES_FORM") == "pickle"
        path = os.path.join(folder, f"nccl_trace_rank_{rank}" if pickled else f"comm_lib_trace_rank_{rank}.json")
        threading.Thread(target=_watch, args=(path, _SHARE * limit, pickled), daemon=True).start()


def _watch(path: str, patience: float, pickled: bool) -> None:
    written = 0
    while True:
        time.sleep(_POLL_S)
        text, found = recorded()
        newest = newest_call(found)
        if newest not in (0, written) and time.time() - newest / 1e9 > patience:
            replace(path, pickled_record() if pickled else one_call_a_line(text).encode())
            written = newest


def pickled_record() -> bytes:
    """The recorder as the process group of accelerators writes it: a pickle, with the stack of each call."""
    from torch._C._distributed_c10d import _dump_fr_trace  # type: ignore[attr-defined]

    return bytes(_dump_fr_trace(includeCollectives=True, includeStackTraces=True, onlyActive=False))


def keep_facts(rank: int) -> None:
    """Write the counters of this rank beside the logs, for the lab's eyes only."""
    folder = os.environ.get("RUN_FACTS")
    if folder:
        threading.Thread(target=_write_facts, args=(os.path.join(folder, f"{rank}.json"),), daemon=True).start()


def _write_facts(path: str) -> None:
    while True:
        _, found = recorded()
        entries = found.get("entries", [])[-3:]
        facts = {"status": found.get("pg_status"), "entries": entries, "time": time.time()}
        replace(path, json.dumps(facts).encode())
        time.sleep(_POLL_S)


def newest_call(found: dict[str, Any]) -> int:
    """When the newest recorded call was made, in ns of the epoch; 0 before the first."""
    return max((int(entry["time_created_ns"]) for entry in found.get("entries", ())), default=0)


def one_call_a_line(text: str) -> str:
    """The recorder's JSON, which is one line, so that two dumps can be compared by line."""
    return text.replace("},{", "},\n{")


def replace(path: str, content: bytes) -> None:
    """Write `path` so that nobody sees it half written."""
    with open(path + ".new", "wb") as out:
        out.write(content)
    os.replace(path + ".new", path)
