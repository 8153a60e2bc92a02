"""`python -m train corpus`: make the simulated incidents, and hold the splits to what data/splits.json says.

Without an option all splits are written below OUT and a summary is printed. `--freeze` then rewrites the file of
splits and `--examples` the page of examples; `--check` compares OUT with that file in full. What lies in two splits
is looked for in any case: 1 if anything is found. `--freeze-folders` makes nothing: it only takes the folders of the
repository, recordings and public incidents, into that file as they are now.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from train import gallery, splits
from train.simulate.emit import DEFAULT_OUT, corpus


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns 1 if a check finds anything."""
    parser = argparse.ArgumentParser(prog="python -m train corpus", description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full number of incidents")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--freeze", action="store_true", help="write data/splits.json from what was made")
    parser.add_argument("--freeze-folders", action="store_true", help="of data/splits.json only the folders of data/")
    parser.add_argument("--check", action="store_true", help="hold what was made to data/splits.json")
    parser.add_argument("--examples", action="store_true", help="write data/examples.md from what was made")
    options = parser.parse_args(argv)
    if options.freeze_folders:
        splits.freeze_folders()
        return 0
    manifest = corpus(options.out, options.seed, options.scale, options.workers)
    for line in summary(manifest):
        print(line)
    problems = splits.faults(options.out)
    if options.freeze:
        splits.freeze(manifest)
    if options.examples:
        gallery.write(options.out)
    if options.check:
        problems += splits.differences(manifest)
    for problem in problems:
        print(f"problem: {problem}")
    return int(bool(problems))


def summary(manifest: Mapping[str, Any]) -> list[str]:
    """A line for each split and one for all: incidents, how many carry a decoy for another label, the hash."""
    rows = manifest["splits"]
    lines = [
        f"{name}: {row['incidents']} incidents, {_share(row)} with a decoy for another label, {row['sha256'][:12]}"
        for name, row in rows.items()
    ]
    total = {key: sum(row[key] for row in rows.values()) for key in ("incidents", "with_decoy")}
    lines.append(f"all: {total['incidents']} incidents, {_share(total)} with a decoy for another label")
    lines.append(f"drawn anew so as to be unlike any other: {len(manifest['drawn_anew'])}")
    return lines


def _share(row: Mapping[str, Any]) -> str:
    return f"{row['with_decoy']} ({100 * row['with_decoy'] / row['incidents']:.0f} %)"


def read_records(out: Path) -> list[dict[str, Any]]:
    """The corpus's notes on its incidents."""
    with (out / "records.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
