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
    """Start the thread where the run names a folder for dumps."""
    if folder := os.environ.get("RUN_TRACES"):
        path = os.path.join(folder, f"comm_lib_trace_rank_{rank}.json")
        threading.Thread(target=_watch, args=(path, _SHARE * limit), daemon=True).start()


def _watch(path: str, patience: float) -> None:
    written = 0
    while True:
        time.sleep(_POLL_S)
        text, found = recorded()
        newest = newest_call(found)
        if newest not in (0, written) and time.time() - newest / 1e9 > patience:
            replace(path, one_call_a_line(text))
            written = newest


def newest_call(found: dict[str, Any]) -> int:
    """When the newest recorded call was made, in ns of the epoch; 0 before the first."""
    return max((int(entry["time_created_ns"]) for entry in found.get("entries", ())), default=0)


def one_call_a_line(text: str) -> str:
    """The recorder's JSON, which is one line, so that two dumps can be compared by line."""
    return text.replace("},{", "},\n{")


def replace(path: str, text: str) -> None:
    """Write `path` so that nobody sees it half written."""
    with open(path + ".new", "w") as out:
        out.write(text)
    os.replace(path + ".new", path)
