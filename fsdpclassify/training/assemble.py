"""A fitted head and its surroundings -> the files and the manifest of a bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fsdpclassify.causes import CAUSES_FILE, INPUT, OUTPUT
from fsdpclassify.encoder import ENCODER_FILE, TOKENIZER_FILE
from fsdpclassify.features import FEATURE_VERSION
from fsdpclassify.head import HEAD_FILE, INPUTS, OUTPUTS
from fsdpclassify.manifest import Manifest
from fsdpclassify.templating import TEMPLATING_VERSION
from fsdpclassify.training.export import head_graph
from fsdpclassify.training.fit import FittedHead
from fsdpclassify.vector import LEDGER_FACTS

#: A label that all printed lines together raise by less than this rests on its prior and on silence.
MINIMUM_EVIDENCE = 0.02
#: Below this share of a line's cause scores the line does not read like any cause of a label: the watchdog's own
#: sentences reach 0.16, lines that show a cause nearly always twice this.
MINIMUM_READING = 0.20
#: Where fewer of the window's lines than this are told wholly in words of the training data, the text is unlike it.
MINIMUM_KNOWN = 0.3
_LIBRARIES = ("numpy", "scikit-learn", "skl2onnx", "onnx", "onnxruntime", "tokenizers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What a manifest says about where a bundle comes from."""

    name: str
    version: str
    data_sha256: str
    code_sha256: str
    training: tuple[str, ...]
    metrics: Mapping[str, Any]


def head_bytes(head: FittedHead, dimension: int) -> bytes:
    """`head.onnx` with deterministic bytes."""
    data: bytes = head_graph(head, dimension, len(LEDGER_FACTS)).SerializeToString(deterministic=True)
    return data


def manifest_of(
    provenance: Provenance,
    labels: tuple[str, ...],
    prior: Mapping[str, float],
    thresholds: Mapping[str, Mapping[str, float]],
) -> Manifest:
    """The manifest, without the hashes of files (those come with writing)."""
    return Manifest(
        name=provenance.name,
        version=provenance.version,
        labels=labels,
        prior={name: round(prior.get(name, 0.0), 6) for name in labels},
        thresholds={mode: dict(values) for mode, values in thresholds.items()},
        out_of_scope={
            "minimum_evidence": MINIMUM_EVIDENCE,
            "minimum_reading": MINIMUM_READING,
            "minimum_known": MINIMUM_KNOWN,
        },
        feature_version=FEATURE_VERSION,
        templating_version=TEMPLATING_VERSION,
        inputs={HEAD_FILE: INPUTS, CAUSES_FILE: (INPUT,), ENCODER_FILE: ("input_ids", "attention_mask")},
        outputs={HEAD_FILE: OUTPUTS, CAUSES_FILE: (OUTPUT,), ENCODER_FILE: ("vectors",)},
        data_sha256=provenance.data_sha256,
        code_sha256=provenance.code_sha256,
        library_versions={name: version(name) for name in _LIBRARIES},
        metrics=dict(provenance.metrics),
        training=tuple(sorted(set(provenance.training))),
    )


def carried_over(folder: Path, names: Sequence[str] = (ENCODER_FILE, TOKENIZER_FILE)) -> dict[str, bytes]:
    """Files that a new bundle takes unchanged from another."""
    return {name: (folder / name).read_bytes() for name in names}
