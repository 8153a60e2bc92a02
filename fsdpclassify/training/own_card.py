"""The card (`README.md`) of a retrained bundle: what it came from, what it learnt, and how it did before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from fsdpclassify.manifest import Manifest
from fsdpclassify.training.examples import Example
from fsdpclassify.training.figures import Figures

CARD_FILE = "README.md"

_TEXT = """# fsdpclassify bundle `{name}` {version}

A head refitted by `fsdpclassify retrain`. Encoder, shipped causes, frozen tests and shipped training examples are
those of `{base}` {base_version} (sha256 of its manifest: `{base_sha256}`).

| | |
|---|---|
| labels | {labels} |
| features | version {features}, templating version {templating} |
| made with | {libraries} |

## Own incidents
{count} labelled incidents of this house, those of earlier runs included; their content hashes are in the manifest.

| label | incidents |
|---|---|
{own}

A label that the base does not have rests on these incidents alone. For every label whose incidents hold wordings of
their own the catalogue has an entry `own_<label>`, with the general remedy of the label where there is one.

## Figures
First labels, before (the base) and after. The frozen tests are incidents that neither has learnt from; the given ones
were learnt from, so the figure after says only that they were.

| | before | after |
|---|---|---|
| frozen tests, macro-F1 ({frozen} causes) | {f1_before:.3f} | {f1_after:.3f} |
| frozen tests, accuracy | {accuracy_before:.3f} | {accuracy_after:.3f} |
| incidents given in this run | {right_before} of {given} | {right_after} of {given} |

How well the bundle does on this house's next incidents is not known from these figures: keep some labelled incidents
back, and run `fsdpclassify evaluate` on them.

## Prior and thresholds
| label | prior | balanced | high-precision |
|---|---|---|---|
{thresholds}

## Known gaps
Those of the base, see its card. With few incidents of a label its threshold is a floor rather than a measurement.
"""


def card_bytes(
    manifest: Manifest, base: Manifest, base_sha256: str, own: Sequence[Example], before: Figures, after: Figures
) -> bytes:
    """The card as UTF-8; `own` are all incidents of the user's that the head has learnt from."""
    labels = Counter(e.label for e in own)
    text = _TEXT.format(
        name=manifest.name,
        version=manifest.version,
        base=base.name,
        base_version=base.version,
        base_sha256=base_sha256,
        labels=", ".join(manifest.labels),
        features=manifest.feature_version,
        templating=manifest.templating_version,
        libraries=", ".join(f"{name} {version}" for name, version in manifest.library_versions.items()),
        count=len(own),
        own="\n".join(f"| {label} | {count} |" for label, count in sorted(labels.items())),
        frozen=after.frozen,
        f1_before=before.macro_f1,
        f1_after=after.macro_f1,
        accuracy_before=before.accuracy,
        accuracy_after=after.accuracy,
        right_before=before.own_right,
        right_after=after.own_right,
        given=after.own,
        thresholds="\n".join(_row(label, manifest.prior, manifest.thresholds) for label in manifest.labels),
    )
    return text.encode()


def _row(label: str, prior: Mapping[str, float], thresholds: Mapping[str, Mapping[str, float]]) -> str:
    sure, surer = thresholds["balanced"][label], thresholds["high-precision"][label]
    return f"| {label} | {prior[label]:.3f} | {sure:.2f} | {surer:.2f} |"
