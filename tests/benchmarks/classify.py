"""Times whole `classify` processes against `rg` on the same files, in alternating runs.

    python tests/benchmarks/classify.py                      # makes the inputs that the design names, 300 MB each
    python tests/benchmarks/classify.py --megabytes 1000 --rounds 9
    python tests/benchmarks/classify.py FILE_OR_FOLDER [...]

Prints, per input, the median wall and processor time of `fsdpclassify classify INPUT --json`, of
`rg -n -i 'error|exception|timeout|failed' INPUT` writing to a pipe (`grep -E` where there is no rg), their
ratios, the best wall times and the peak memory of the former; at the end the load of the machine, without
which wall times say little. The tool runs as it does once installed: with its bytecode cached.

Made are one interleaved log of 64 ranks (2 % and 20 % of its lines match the pattern; the incident at 10 %, at
100 %, and none), a tree of 1,024 per-rank files, the first log packed, and one incident of a few lines, for
which nothing is compared. Budgets (design, section 6): 1.5 for a gigabyte in one file, 2 for a tree, 200 MB of
memory, 0.30 s for the small incident.
"""

from __future__ import annotations

import argparse
import gzip
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from make_log import write_log, write_tree

PATTERN = "error|exception|timeout|failed"
FILES = 1024
_ROOT = Path(__file__).resolve().parents[2]
_SMALL = _ROOT / "data" / "incidents" / "inc-001" / "logs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one process took."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def main() -> None:
    """Read the arguments, measure each input, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("inputs", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=300)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        environment = installed(Path(scratch) / "bytecode")
        for path in args.inputs or made(Path(scratch), args.megabytes * 1_000_000):
            print(measured(path, args.rounds, environment), flush=True)
    print("load average", *(f"{load:.1f}" for load in os.getloadavg()), "on", os.cpu_count(), "processors")


def made(folder: Path, size: int) -> Iterator[Path]:
    """The inputs of the budgets, made one after another and removed once they were measured."""
    for match in (0.02, 0.2):
        for incident in ("start", "end", "none"):
            path = folder / f"one-file-{100 * match:.0f}-percent-incident-{incident}.log"
            write_log(path, size, match, incident, seed=0)
            yield path
            if (match, incident) == (0.02, "end"):
                yield from _packed(path)
            path.unlink()
    tree = folder / f"tree-of-{FILES}"
    write_tree(tree, FILES, size, 0.02, "end", seed=0)
    yield tree
    shutil.rmtree(tree)
    yield _SMALL


def _packed(path: Path) -> Iterator[Path]:
    """The log as gzip and zstandard, the latter where its module is installed."""
    packed = path.with_name(path.name + ".gz")
    with path.open("rb") as text, gzip.open(packed, "wb", compresslevel=6) as out:
        shutil.copyfileobj(text, out, 1 << 20)
    yield packed
    packed.unlink()
    try:
        import zstandard
    except ImportError:
        return
    packed = path.with_name(path.name + ".zst")
    with path.open("rb") as text, packed.open("wb") as out:
        zstandard.ZstdCompressor().copy_stream(text, out)
    yield packed
    packed.unlink()


def installed(bytecode: Path) -> dict[str, str]:
    """The environment of a process whose bytecode is cached, as that of an installed package is."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    return {**environment, "PYTHONPYCACHEPREFIX": str(bytecode), "PYTHONPATH": path}


def measured(path: Path, rounds: int, environment: dict[str, str]) -> str:
    """One line of the table; a first run of each, which fills the caches, does not count."""
    ours: list[Cost] = []
    theirs: list[Cost] = []
    for number in range(rounds + 1):
        rival, own = cost(rival_command(path), environment), cost(own_command(path), environment)
        if number:
            theirs.append(rival)
            ours.append(own)
    own, rival = median(ours), median(theirs)
    best_own, best_rival = min(each.wall_s for each in ours), min(each.wall_s for each in theirs)
    if path == _SMALL:
        return f"small incident: wall {own.wall_s:.3f} s, cpu {own.cpu_s:.3f} s, best wall {best_own:.3f} s"
    return (
        f"{path.name}: wall {own.wall_s:.3f} / {rival.wall_s:.3f} s = {own.wall_s / rival.wall_s:.2f}, "
        f"cpu {own.cpu_s:.3f} / {rival.cpu_s:.3f} s = {own.cpu_s / rival.cpu_s:.2f}, "
        f"best wall {best_own:.3f} / {best_rival:.3f} s = {best_own / best_rival:.2f}, peak {own.peak_mb:.0f} MB"
    )


def own_command(path: Path) -> list[str]:
    """The whole tool, as a user starts it."""
    return [sys.executable, "-m", "fsdpclassify", "classify", str(path), "--json", "--exit-zero"]


def rival_command(path: Path) -> list[str]:
    """The search that every user knows; its output goes to a pipe as well."""
    if shutil.which("rg"):
        packed = ["-z"] if path.suffix in {".gz", ".zst", ".xz", ".bz2"} else []
        return ["rg", *packed, "-n", "-i", PATTERN, str(path)]
    return ["grep", "-r", "-n", "-i", "-E", PATTERN, str(path)]


def cost(command: Sequence[str], environment: dict[str, str]) -> Cost:
    """Run `command` with its output in a pipe that is read to the end; exits if the tool itself failed."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    assert process.stdout is not None
    while process.stdout.read(1 << 20):
        pass
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)  # it was waited for here, for the sake of its own usage
    if process.returncode and command[0] == sys.executable:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    return Cost(wall_s=wall_s, cpu_s=_seconds(usage), peak_mb=usage.ru_maxrss / 1024)


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
