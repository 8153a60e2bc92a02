"""How often the wavefront over flight-recorder dumps names exactly the ranks that were made to fail.

    python tests/benchmarks/wavefront.py [FOLDER] [--draws 100] [--seed 1]

FOLDER holds one folder of dumps for each run in `FAULTY` (default: `../shared/flight-recorder` beside the checkout;
the dumps are not ours to ship). Each set is judged whole, with every single dump removed, and with three random
ones removed. `exact`: the named ranks are the faulty ones; `wrong rank`: some named rank is not; what is neither
names some of the faulty ranks, or none.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from fsdpclassify.recorder.dumps import Dump, read_dump
from fsdpclassify.recorder.loading import load
from fsdpclassify.recorder.ranks import Claim, assign
from fsdpclassify.recorder.wavefront import find_front

DEFAULT_FOLDER = Path(__file__).resolve().parents[3] / "shared" / "flight-recorder"
FAULTY = {"gpu_error_1st": (12, 14), "lock_gil_1st": (9, 14)}


def read_set(folder: Path) -> dict[int, Dump]:
    """GLOBAL rank -> dump. The names of the files are not used: the groups tell who wrote which."""
    claims = {
        index: Claim(dump=read_dump(load(path.read_bytes())), path="dump")
        for index, path in enumerate(sorted(p for p in folder.iterdir() if p.is_file()))
    }
    ranks, _ = assign(claims)
    return {rank: claims[key].dump for rank, key in ranks.items()}


def outcome(dumps: Mapping[int, Dump], faulty: tuple[int, ...]) -> str:
    """`exact`, `partial` (only faulty ranks, not all), `none` or `wrong rank`."""
    named = find_front(dumps).initiating
    if named == faulty:
        return "exact"
    if not named:
        return "none"
    return "partial" if set(named) <= set(faulty) else "wrong rank"


def without(dumps: Mapping[int, Dump], removed: Iterable[int]) -> dict[int, Dump]:
    """The set without the dumps of the ranks `removed`."""
    gone = set(removed)
    return {rank: dump for rank, dump in dumps.items() if rank not in gone}


def measure(dumps: Mapping[int, Dump], faulty: tuple[int, ...], draws: int, seed: int) -> dict[str, Counter[str]]:
    """Outcomes of the whole set, of each single removal, and of `draws` removals of three."""
    chance = random.Random(seed)
    ranks = sorted(dumps)
    removals = [chance.sample(ranks, 3) for _ in range(draws)]
    return {
        "whole": Counter([outcome(dumps, faulty)]),
        "one removed": Counter(outcome(without(dumps, [rank]), faulty) for rank in ranks),
        "three removed": Counter(outcome(without(dumps, gone), faulty) for gone in removals),
    }


def main() -> None:
    """Print one line for each set and kind of removal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT_FOLDER)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for name, faulty in FAULTY.items():
        found = measure(read_set(given.folder / name), faulty, given.draws, given.seed)
        for kind, counts in found.items():
            total = sum(counts.values())
            shares = "  ".join(f"{what} {counts[what]}/{total}" for what in ("exact", "partial", "none", "wrong rank"))
            print(f"{name:<14} {kind:<14} {shares}")


if __name__ == "__main__":
    main()
