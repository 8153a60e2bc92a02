"""Short tables of the command line: scores, a bundle's manifest, and lists of bundles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsdpclassify.report.structured import SCHEMA_VERSION, Json
from fsdpclassify.report.wording import printable, wrap

if TYPE_CHECKING:
    from fsdpclassify.manifest import Manifest


def render_scores(probabilities: Mapping[str, float]) -> str:
    """One label a line, likeliest first; a sentence where there is no incident."""
    if not probabilities:
        return "no incident: no rank is shown waiting for another in this input\n"
    ordered = sorted(probabilities.items(), key=lambda item: (-item[1], item[0]))
    width = max(len(printable(label)) for label, _ in ordered)
    return "".join(f"{printable(label):<{width}}  {probability:.4f}\n" for label, probability in ordered)


def labels_as_dict(labels: Sequence[str], boundaries: Mapping[str, str]) -> Json:
    """What `labels --json` writes; a label that a user added may have no sentence."""
    rows = [{"label": label, "boundary": boundaries.get(label)} for label in labels]
    return {"schema_version": SCHEMA_VERSION, "labels": rows}


def render_labels(table: Json, *, width: int) -> str:
    """The labels in the order of the bundle, each with what separates it from the others."""
    size = max(len(printable(row["label"])) for row in table["labels"]) + 2
    lines: list[str] = []
    for row in table["labels"]:
        first = f"{printable(row['label']):<{size}}"
        lines += wrap(row["boundary"] or "", width, indent=" " * size, first=first)
    return "\n".join(line.rstrip() for line in lines) + "\n"


_OUTER = "  "


def model_card(manifest: Manifest, *, folder: str, sha256: str) -> Json:
    """What `model show --json` writes: the manifest without the long list of training hashes."""
    return {
        "schema_version": SCHEMA_VERSION,
        "folder": folder,
        "name": manifest.name,
        "version": manifest.version,
        "sha256": sha256,
        "labels": list(manifest.labels),
        "prior": dict(manifest.prior),
        "thresholds": {mode: dict(values) for mode, values in manifest.thresholds.items()},
        "feature_version": manifest.feature_version,
        "templating_version": manifest.templating_version,
        "training_incidents": len(manifest.training),
        "files": dict(manifest.files),
        "library_versions": dict(manifest.library_versions),
        "metrics": dict(manifest.metrics),
    }


def render_model_card(card: Json) -> str:
    """The same for people."""
    lines = [f"{card['name']} {card['version']}"]
    lines += [f"  {name:<8}  {card[name]}" for name in ("folder", "sha256")]
    lines.append(f"  trained   on {card['training_incidents']} labelled incidents")
    lines += ["", "label                   prior  " + "  ".join(card["thresholds"])]
    for label in card["labels"]:
        cells = [f"{values[label]:>{len(mode)}.2f}" for mode, values in card["thresholds"].items()]
        lines.append(f"{label:<22}  {card['prior'][label]:5.2f}  " + "  ".join(cells))
    if card["metrics"]:
        lines += ["", "held-out figures", *_metric_lines(card["metrics"], _OUTER)]
    return "\n".join(printable(line) for line in lines) + "\n"


def _metric_lines(metrics: Mapping[str, Any], indent: str) -> Iterator[str]:
    """One line a figure; of blocks inside blocks one line, without what lies deeper (`--json` has that)."""
    for name, value in metrics.items():
        if not isinstance(value, Mapping):
            yield f"{indent}{name} {_number(value)}"
        elif indent == _OUTER:
            inner = list(_metric_lines(value, indent + "  "))
            yield from [f"{indent}{name}", *inner] if inner else []
        elif told := [f"{key} {_number(each)}" for key, each in value.items() if not isinstance(each, Mapping)]:
            yield f"{indent}{name}: {', '.join(told)}"


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "–" if value is None else str(value)


def bundle_lines(folder: Path) -> Iterator[str]:
    """One line a bundle: the default, then those in `folder`; a bundle that is refused says why."""
    from fsdpclassify.bundle import locate
    from fsdpclassify.errors import BundleError
    from fsdpclassify.manifest import MANIFEST_FILE

    try:
        default = locate()
        yield _bundle_line(default, " (default)")
    except BundleError as error:
        default = None
        yield printable(f"no default bundle: {error}") + "\n"
    for manifest in sorted(folder.glob(f"*/{MANIFEST_FILE}")):
        if default is None or manifest.parent.resolve() != default.resolve():
            yield _bundle_line(manifest.parent, "")


def _bundle_line(folder: Path, note: str) -> str:
    from fsdpclassify.bundle import read_manifest
    from fsdpclassify.errors import BundleError

    try:
        manifest = read_manifest(folder)
    except BundleError as error:
        return printable(f"refused: {error}") + "\n"
    return printable(f"{manifest.name} {manifest.version}  {folder}{note}") + "\n"
