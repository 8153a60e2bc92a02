"""Times whole `classify` processes against `rg` on the same files, in alternating runs.

    python tests/benchmarks/classify.py FILE_OR_FOLDER [...] [--rounds 7]

Prints, per input, the median wall and processor time of `fsdpclassify classify INPUT --json`, of
`rg -n -i 'error|exception|timeout|failed' INPUT` writing to a pipe (`grep -E` where there is no rg),
their ratio, and the peak memory of the former; at the end the load of the machine, without which
wall times say little. Budgets (design, section 6): 1.5 for a gigabyte in one file, 2 for a tree,
200 MB of memory.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PATTERN = "error|exception|timeout|failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one process took."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def main() -> None:
    """Read the arguments, measure each input, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("inputs", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    for path in args.inputs:
        print(measured(path, args.rounds), flush=True)
    print("load average", *(f"{load:.1f}" for load in os.getloadavg()), "on", os.cpu_count(), "processors")


def measured(path: Path, rounds: int) -> str:
    """One line of the table; a first run of each, which fills the page cache, does not count."""
    ours: list[Cost] = []
    theirs: list[Cost] = []
    for number in range(rounds + 1):
        rival, own = cost(rival_command(path)), cost(own_command(path))
        if number:
            theirs.append(rival)
            ours.append(own)
    own, rival = median(ours), median(theirs)
    return (
        f"{path.name}: wall {own.wall_s:.3f} / {rival.wall_s:.3f} s = {own.wall_s / rival.wall_s:.2f}, "
        f"cpu {own.cpu_s:.3f} / {rival.cpu_s:.3f} s = {own.cpu_s / rival.cpu_s:.2f}, "
        f"best wall {min(c.wall_s for c in ours):.3f} / {min(c.wall_s for c in theirs):.3f} s, "
        f"peak {own.peak_mb:.0f} MB"
    )


def own_command(path: Path) -> list[str]:
    """The whole tool, as a user starts it."""
    return [sys.executable, "-m", "fsdpclassify", "classify", str(path), "--json"]


def rival_command(path: Path) -> list[str]:
    """The search that every user knows; its output goes to a pipe as well."""
    if shutil.which("rg"):
        packed = ["-z"] if path.suffix in {".gz", ".zst", ".xz", ".bz2"} else []
        return ["rg", *packed, "-n", "-i", PATTERN, str(path)]
    return ["grep", "-r", "-n", "-i", "-E", PATTERN, str(path)]


def cost(command: Sequence[str]) -> Cost:
    """Run `command` with its output in a pipe that is read to the end."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    while process.stdout.read(1 << 20):
        pass
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0  # it was waited for here, for the sake of its own usage
    return Cost(wall_s=time.perf_counter() - begun, cpu_s=_seconds(usage), peak_mb=usage.ru_maxrss / 1024)


def _seconds(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


def median(costs: Sequence[Cost]) -> Cost:
    """The medians of each figure."""
    return Cost(
        wall_s=statistics.median(each.wall_s for each in costs),
        cpu_s=statistics.median(each.cpu_s for each in costs),
        peak_mb=statistics.median(each.peak_mb for each in costs),
    )


if __name__ == "__main__":
    main()
