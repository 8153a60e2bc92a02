"""Shows that healthy lines around an incident change nothing: its detection, ranks and verdict stay.

    python tests/benchmarks/placed.py data/incidents [--lines 10000] [--only inc-003 ...]
    python tests/benchmarks/placed.py data/incidents --megabytes 9

With `--lines` (the default) each incident stands behind so many healthy lines of its own dialect, and must
keep its incident, roles, initiating ranks and verdict. With `--megabytes` the inputs are large ones: each
incident is read three times with healthy lines around its largest file (in front of it, behind it, on
both sides) as a large input, and alone. Both must show the same incident: its detection line, the waiting
and the failed ranks. Where these or the verdict differ, the surrounded text is read line
by line too, which tells what the healthy lines changed from what was lost by not making all lines.
Prints what differs and a summary; exits 1 if an incident or a rank was lost.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from healthy_lines import healthy_front

from fsdpclassify import sources
from fsdpclassify.classifier import Classifier
from fsdpclassify.diagnosis import diagnose
from fsdpclassify.reading import find
from fsdpclassify.sources.limits import Limits

#: Nothing that a rank, a clock or a kind of job could be read from: the incident must mean the same.
_HEALTHY = (
    "INFO data: shard-{a:05d}.tar opened, {b} workers, prefetch 4",
    "INFO memory: allocated {b}.{a:05d} GiB reserved 61.40 GiB",
    "DEBUG cache: entry {a} kept, {b} left",
    "INFO shuffle: buffer holds {a} samples",
)
_WHOLE = Limits(whole_bytes=1 << 40, whole_lines=1 << 40)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What must not depend on where an incident lies (`core`), and what should not (`answer`)."""

    core: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]
    answer: tuple[tuple[str, tuple[str, ...]], ...]
    absent: tuple[tuple[int, ...], ...] = ()
    initiating: tuple[tuple[int, ...], ...] = ()


def main() -> None:
    """Read the arguments, compare every incident at every place, print a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("incidents", type=Path)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--megabytes", type=float)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--ranks", type=int, default=0, help="let so many ranks print the healthy lines")
    args = parser.parse_args()
    classifier, counts = Classifier.load(), Counter[str]()
    chosen = [
        f for f in sorted(args.incidents.iterdir()) if (f / "logs").is_dir() and f.name in (args.only or [f.name])
    ]
    if args.megabytes is None:
        for folder in chosen:
            compare_dialect(classifier, folder, args.lines, counts)
    else:
        filler = healthy(int(args.megabytes * 1e6), args.ranks)
        for folder in chosen:
            for place in ("front", "behind", "middle"):
                compare(classifier, folder, place, filler, counts, always=bool(args.ranks))
    print(dict(sorted(counts.items())))
    sys.exit(1 if counts["lost"] else 0)


def compare_dialect(classifier: Classifier, folder: Path, lines: int, counts: Counter[str]) -> None:
    """Put one incident behind healthy lines of its dialect and print what changed."""
    hung = bool(json.loads((folder / "incident.json").read_text()).get("hung"))
    with tempfile.TemporaryDirectory() as scratch:
        logs = Path(scratch) / "logs"
        shutil.copytree(folder / "logs", logs)
        alone = found(classifier, logs, hung=hung)
        file = max((path for path in logs.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
        file.write_bytes(healthy_front(folder, file, lines) + file.read_bytes())
        placed = found(classifier, logs, hung=hung)
    counts["compared"] += 1
    for name, one, other in (
        ("lost", placed.core, alone.core),
        ("missing ranks differ", placed.absent, alone.absent),
        ("initiating ranks differ", placed.initiating, alone.initiating),
        ("verdict differs", verdicts(placed), verdicts(alone)),
    ):
        if one != other:
            counts[name] += 1
            print(f"{folder.name}: {name}\n    placed {str(one)[:300]}\n    alone  {str(other)[:300]}")


def healthy(size: int, ranks: int) -> bytes:
    """About `size` bytes of healthy lines, with a rank in front of each if there are `ranks`."""
    rng = random.Random(0)
    heads = [f"[rank{rank}]: " for rank in range(ranks)] or [""]
    block = b"".join(
        (heads[n % len(heads)] + rng.choice(_HEALTHY).format(a=rng.randrange(100_000), b=rng.randrange(64))).encode()
        + b"\n"
        for n in range(20_000)
    )
    return block * (1 + size // len(block))


def compare(
    classifier: Classifier, folder: Path, place: str, filler: bytes, counts: Counter[str], *, always: bool
) -> None:
    """Read one incident at one place and print what differs; `always` line by line as well."""
    with tempfile.TemporaryDirectory() as scratch:
        logs = Path(scratch) / "logs"
        shutil.copytree(folder / "logs", logs)
        alone = found(classifier, logs)
        file = max((path for path in logs.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
        file.write_bytes(surrounded(file.read_bytes(), place, filler))
        large = found(classifier, logs)
        counts["compared"] += 1
        counts["evidence differs from alone"] += large.answer != alone.answer
        if not always and large.core == alone.core and verdicts(large) == verdicts(alone):
            return  # reading line by line takes long, and would answer a question that does not arise
        with patch("fsdpclassify.reading.read", read_whole):
            whole = found(classifier, logs)
    for name, ok, one, other in (
        ("lost", large.core == alone.core or large.core == whole.core, large.core, alone.core),
        ("core differs from alone", large.core == alone.core, large.core, alone.core),
        ("verdict differs from line by line", verdicts(large) == verdicts(whole), large.answer, whole.answer),
        ("evidence differs from line by line", large.answer == whole.answer, large.answer, whole.answer),
        ("verdict differs from alone", verdicts(large) == verdicts(alone), verdicts(large), verdicts(alone)),
    ):
        if not ok:
            counts[name] += 1
            print(f"{folder.name} {place}: {name}\n    {str(one)[:300]}\n    {str(other)[:300]}")


def surrounded(data: bytes, place: str, filler: bytes) -> bytes:
    """`data` with healthy lines in front, behind, or half of them on either side."""
    data += b"" if data.endswith(b"\n") else b"\n"
    half = filler[: filler.find(b"\n", len(filler) // 2) + 1]
    return {"front": filler + data, "behind": data + filler, "middle": half + data + half}[place]


def read_whole(*args: object, **options: object) -> sources.Reading:
    """`sources.read` for inputs of any size, line by line."""
    return sources.read(*args, **{**options, "limits": _WHOLE})  # type: ignore[arg-type]


def found(classifier: Classifier, logs: Path, *, hung: bool = False) -> Found:
    """The incidents of a folder, and what is said of them."""
    findings = find(sources.collect([logs]), hung=hung)
    paths = [row.path for row in findings.inputs]
    answers = [
        diagnose(classifier._model, each, findings.kinds, paths, mode="balanced", mask=str)
        for each in findings.incidents
    ]
    return Found(
        core=tuple((each.detection.line.text, each.waiting, each.failed) for each in findings.incidents),
        answer=tuple((each.verdict, tuple(line.text for line in each.evidence[:3])) for each in answers),
        absent=tuple(each.missing for each in findings.incidents),
        initiating=tuple(each.initiating_ranks for each in answers),
    )


def verdicts(what: Found) -> tuple[str, ...]:
    """The verdicts alone."""
    return tuple(verdict for verdict, _ in what.answer)


if __name__ == "__main__":
    main()
