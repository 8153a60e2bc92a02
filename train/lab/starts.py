"""Launchers besides torchrun: a process for each rank with labelled or separate output, and a script that spawns.

The labels and reports of `srun` are in Slurm's words, printed here: what the processes do and how they end is real.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from train.lab import netns
from train.lab.plan import Recording

#: The port of the store; another one lets two labs run side by side where their faults share no control group.
PORT = int(os.environ.get("LAB_PORT", "29600"))
#: The number of the job in names and reports.
JOB = 41823
_ENDS = {-9: "Killed", -15: "Terminated", -6: "Aborted (core dumped)", -11: "Segmentation fault (core dumped)"}
_ENDS[-7] = "Bus error (core dumped)"
#: How long the other tasks may go on once one has failed.
GRACE_S = 9.0


class Tasks:
    """The processes of a run that is started rank by rank, and where their output goes."""

    def __init__(self, recording: Recording, work: Path, env: Mapping[str, str]) -> None:
        self.recording, self.logs = recording, work / "logs"
        self.lock = threading.Lock()
        self.script = str(work / "app" / f"{recording.script}.py")
        self.processes = [self._start(rank, env) for rank in range(recording.world)]
        self.readers = [threading.Thread(target=self._read, args=(rank,)) for rank in range(recording.world)]
        for reader in self.readers:
            reader.start()

    def _start(self, rank: int, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        node, local = self._place(rank)
        inside = ["ip", "netns", "exec", netns.NODES[node]] if self._nodes() == 2 else []
        return subprocess.Popen(
            [*inside, sys.executable, self.script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**env, **self._variables(rank, node, local)},
            start_new_session=True,
        )

    def _variables(self, rank: int, node: int, local: int) -> dict[str, str]:
        wrong = self.recording.fault.outside == "port" and rank in self.recording.ranks
        return {
            "RANK": str(rank),
            "LOCAL_RANK": str(local),
            "WORLD_SIZE": str(self.recording.world),
            "GROUP_RANK": str(node),
            "MASTER_ADDR": netns.ADDRESSES[0] if self._nodes() == 2 else "127.0.0.1",
            "MASTER_PORT": str(PORT + 11 if wrong else PORT),
        }

    def _nodes(self) -> int:
        return 2 if self.recording.on_two_nodes else 1

    def _place(self, rank: int) -> tuple[int, int]:
        each = -(-self.recording.world // self._nodes())
        return rank // each, rank % each

    def _read(self, rank: int) -> None:
        process = self.processes[rank]
        assert process.stdout is not None
        for line in process.stdout:
            self._write(rank, line)
        code = process.wait()
        if code and self.recording.launcher == "srun":
            how = _ENDS.get(code, f"Exited with exit code {code % 256}")
            self._say(f"srun: error: gpu-node{self._place(rank)[0]}: task {rank}: {how}")

    def _write(self, rank: int, line: bytes) -> None:
        if self.recording.launcher == "srun":
            end = b"" if line.endswith(b"\n") else b"\n"
            self._append(f"slurm-{JOB}.out", f"{rank}: ".encode() + line + end)
        else:
            self._append(f"train-{rank}.log", line)

    def _say(self, text: str) -> None:
        self._append(f"slurm-{JOB}.out", text.encode() + b"\n")

    def _append(self, name: str, content: bytes) -> None:
        with self.lock, (self.logs / name).open("ab") as out:
            out.write(content)

    def cancel(self) -> None:
        """Say that the step is ended, as the launcher does when it ends what is left."""
        if self.recording.launcher == "srun":
            self._say("srun: Job step aborted: Waiting up to 32 seconds for job step to finish.")
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S")
            self._say(f"slurmstepd: error: *** STEP {JOB}.0 ON gpu-node0 CANCELLED AT {stamp} ***")

    def finish(self) -> None:
        """Wait until all output is written, and close what leads to the processes."""
        for process, reader in zip(self.processes, self.readers, strict=True):
            reader.join(20)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None and not reader.is_alive():
                    pipe.close()


def spawning(script: str) -> Sequence[str]:
    """The command of a script that starts its own processes."""
    return [sys.executable, script]
