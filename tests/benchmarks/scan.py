"""Times the reading stage against `rg` on the same files, in alternating runs.

    python tests/benchmarks/scan.py FILE_OR_FOLDER [...] [--rounds 5]

Prints, per input, the median wall time of a Python process that only collects and reads, that of
`rg -n -i 'error|exception|timeout|failed'` writing to a pipe (`grep -E` where there is no rg), and
their ratio; the same for processor time; then the time inside the process, its peak memory, and how
many lines it kept. Only ratios on one machine compare; the budgets stand in the design.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PATTERN = "error|exception|timeout|failed"

#: Stand-ins for the anchors that parsing gives: as rare, as many, as long.
ANCHORS: tuple[tuple[str, str, bool], ...] = (
    ("watchdog_timeout", r"Watchdog caught collective operation timeout", True),
    ("blocking_wait", r"timed out in blocking wait", True),
    ("dump_signal", r"Received a dump signal", True),
    ("heartbeat", r"Terminating the process after attempting to dump debug info", True),
    ("monitored_barrier", r"monitoredBarrier", True),
    ("gloo", r"Timed out waiting [0-9]+ms for (?:recv|send) operation", True),
    ("store", r"wait timeout after [0-9]+ms", True),
    ("mismatch", r"Detected mismatch between collectives", True),
    ("nccl_error", r"ncclRemoteError|ncclSystemError|ncclInternalError", True),
    ("peer_closed", r"Connection closed by remote peer", True),
    ("ib_completion", r"Got completion from peer|got completion with error", True),
    ("async_error", r"raised the following async exception", True),
    ("status", r"failure detected by watchdog at work", False),
    ("exit", r"exitcode *: -?[0-9]", False),
    ("root_cause", r"Root Cause \(first observed failure\)", False),
    ("oom", r"CUDA out of memory", False),
    ("oom_kill", r"Out of memory: Killed process|oom-kill:constraint", False),
    ("xid", r"NVRM: Xid", False),
    ("traceback", r"Traceback \(most recent call last\)", False),
    ("signal", r"Fatal Python error|Segmentation fault", False),
    ("sigterm", r"Sending process [0-9]+ closing signal", False),
    ("attempt", r"Starting worker group|Restarting worker group", False),
    ("preempted", r"CANCELLED AT|DUE TO PREEMPTION|DUE TO TIME LIMIT", False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one run of a command took; the processor time is the steadier figure on a busy machine."""

    wall_s: float
    cpu_s: float


_CHILD = """
import json, sys, time
begun = time.perf_counter()
from fsdpclassify import sources
anchors = [
    sources.Anchor(name=name, pattern=pattern.encode(), detection=detection)
    for name, pattern, detection in json.loads(sys.argv[1])
]
reading = sources.read(sources.collect(sys.argv[2:]), anchors)
seconds = time.perf_counter() - begun
# Not getrusage: its peak is that of the parent before exec, if that was higher.
with open("/proc/self/status") as status:
    peak_kb = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(json.dumps({
    "seconds": seconds,
    "peak_mb": peak_kb / 1024,
    "kept": len(reading.lines),
    "lines": sum(row.lines for row in reading.inputs),
    "bytes": sum(row.bytes for row in reading.inputs),
}))
"""


def main() -> None:
    """Read the arguments, measure each input, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("inputs", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    for path in args.inputs:
        print(measured(path, args.rounds))


def measured(path: Path, rounds: int) -> str:
    """One line of the table for `path`, after a first run of each that fills the page cache."""
    theirs: list[Cost] = []
    ours: list[Cost] = []
    child = {}
    for number in range(rounds + 1):
        rival, _ = _cost(_rival(path))
        own, output = _cost([sys.executable, "-c", _CHILD, json.dumps(ANCHORS), str(path)])
        if number:
            theirs.append(rival)
            ours.append(own)
            child = json.loads(output)
    rival, own = _median(theirs), _median(ours)
    return (
        f"{path.name}: wall {own.wall_s:.3f} / {rival.wall_s:.3f} s = {own.wall_s / rival.wall_s:.2f}, "
        f"cpu {own.cpu_s:.3f} / {rival.cpu_s:.3f} s = {own.cpu_s / rival.cpu_s:.2f}, "
        f"inside {child['seconds']:.3f} s = {child['bytes'] / child['seconds'] / 1e9:.2f} GB/s, "
        f"peak {child['peak_mb']:.0f} MB, kept {child['kept']} of {child['lines']} lines"
    )


def _rival(path: Path) -> list[str]:
    if shutil.which("rg"):
        packed = ["-z"] if path.suffix in {".gz", ".zst", ".xz", ".bz2"} else []
        return ["rg", *packed, "-n", "-i", PATTERN, str(path)]
    return ["grep", "-r", "-n", "-i", "-E", PATTERN, str(path)]


def _median(costs: list[Cost]) -> Cost:
    return Cost(
        wall_s=statistics.median(cost.wall_s for cost in costs),
        cpu_s=statistics.median(cost.cpu_s for cost in costs),
    )


def _cost(command: list[str]) -> tuple[Cost, bytes]:
    before, begun = _children_cpu_s(), time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    return Cost(wall_s=time.perf_counter() - begun, cpu_s=_children_cpu_s() - before), done.stdout


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
