"""What is done to a run from outside once its logs show that it is under way."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from train.lab import netns
from train.lab.plan import Recording
from train.lab.starts import PORT

#: Troubles of the network that are there before the run.
FROM_THE_START = ("net:closed_ports",)


def action_on(recording: Recording, nodes: Sequence[subprocess.Popen[bytes]]) -> Callable[[], None] | None:
    """What the fault of a recording does, to be called once; None where nothing is left to do from outside."""
    outside = recording.fault.outside or ""
    if outside == "net:wrong_interface" or outside in FROM_THE_START:
        return None
    if outside.startswith("net:"):
        return lambda: netns.trouble(outside.partition(":")[2])
    if outside == "node:kill":
        return lambda: _kill_node(nodes[1].pid)
    if outside == "kill":
        return lambda: _kill({f"RANK={rank}" for rank in recording.ranks})
    return None


def _kill_node(launcher: int) -> None:
    """End the second node: its launcher, and its workers, which are in process groups of their own."""
    os.killpg(launcher, signal.SIGKILL)
    _kill({"GROUP_RANK=1"})


def _kill(marks: Collection[str]) -> None:
    """Send signal 9 to every process of this lab's run whose environment holds one of `marks`.

    The port tells it from the run of another lab on the same machine.
    """
    for status in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = set(status.read_bytes().decode(errors="replace").split("\0"))
            ours = f"MASTER_PORT={PORT}" in variables and any(v.startswith("RUN_PROFILE=") for v in variables)
            if ours and variables & set(marks):
                os.kill(int(status.parent.name), signal.SIGKILL)
        except (OSError, ProcessLookupError):
            continue
