"""Training examples packed into a bundle (`training.npz`), so that a head can be refitted without the corpus.

Texts are stored once, as templates without numbers, ids or paths; facts lie in [0, 1] and are stored in 255ths.
No pickle is written or read.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from fsdpclassify.errors import BundleError
from fsdpclassify.facts import LINE_FACTS
from fsdpclassify.training.examples import Example
from fsdpclassify.training.fit import Wordings
from fsdpclassify.vector import LEDGER_FACTS

TRAINING_FILE = "training.npz"
FROZEN_FILE = "frozen.npz"
VALIDATION_FILE = "validation.npz"
_STEPS = 255.0


def pack_wordings(wordings: Wordings) -> dict[str, NDArray[np.uint8]]:
    """The arrays of single messages; their vectors are computed again when they are read."""
    return {
        "wording_texts": np.frombuffer("\n".join(wordings.texts).encode(), np.uint8),
        "wording_labels": np.frombuffer("\n".join(wordings.labels).encode(), np.uint8),
    }


def unpack_wordings(data: bytes) -> tuple[list[str], list[str]]:
    """Texts and labels of the single messages; empty when there are none."""
    with np.load(io.BytesIO(data), allow_pickle=False) as store:
        if "wording_texts" not in store.files:
            return [], []
        texts, labels = (store[n].tobytes().decode() for n in ("wording_texts", "wording_labels"))
    # Every wording has a label, so no labels means no wordings; a split would give one that is empty.
    return (texts.split("\n"), labels.split("\n")) if labels else ([], [])


def pack(
    examples: Sequence[Example], weights: Sequence[float], more: Mapping[str, NDArray[np.uint8]] | None = None
) -> bytes:
    """The examples, their weights and `more` arrays as the bytes of an npz file: same input, same bytes."""
    texts = sorted({t for e in examples for t in e.texts})
    index = {t: i for i, t in enumerate(texts)}
    rows = [index[t] for e in examples for t in e.texts]
    facts = [f for e in examples for f in e.facts]
    meta = [
        {
            "id": e.id,
            "label": e.label,
            "cause": e.cause,
            "repository": e.repository,
            "sha256": e.sha256,
            "weight": round(w, 6),
        }
        for e, w in zip(examples, weights, strict=True)
    ]
    out = io.BytesIO()
    arrays: dict[str, Any] = dict(
        texts=np.frombuffer("\n".join(texts).encode(), np.uint8),
        rows=np.array(rows, np.int32),
        facts=_quantised(np.array(facts, np.float32).reshape(len(rows), len(LINE_FACTS))),
        decisive=np.array([d for e in examples for d in e.decisive], np.uint8),
        counts=np.array([len(e.texts) for e in examples], np.int32),
        ledger=_quantised(np.array([e.ledger for e in examples], np.float32).reshape(len(examples), len(LEDGER_FACTS))),
        meta=np.frombuffer(json.dumps(meta).encode(), np.uint8),
        **(more or {}),
    )
    np.savez_compressed(out, allow_pickle=False, **arrays)
    return out.getvalue()


def _quantised(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    steps: NDArray[np.uint8] = np.round(np.clip(values, 0.0, 1.0) * _STEPS).astype(np.uint8)
    return steps


def unpack(data: bytes) -> tuple[list[Example], list[float]]:
    """What `pack` stored. Raises `ValueError` or `KeyError` when `data` is not such a file."""
    with np.load(io.BytesIO(data), allow_pickle=False) as store:
        arrays = {name: store[name] for name in store.files}
    texts = arrays["texts"].tobytes().decode().split("\n")
    facts = arrays["facts"].astype(np.float32) / _STEPS
    ledger = arrays["ledger"].astype(np.float32) / _STEPS
    meta = json.loads(arrays["meta"].tobytes())
    examples, start = [], 0
    for number, (entry, count) in enumerate(zip(meta, arrays["counts"], strict=True)):
        span = slice(start, start + int(count))
        start += int(count)
        examples.append(
            Example(
                id=entry["id"],
                label=entry["label"],
                alt_label=None,
                cause=entry["cause"],
                determinable=None,
                repository=entry["repository"],
                found=True,
                texts=tuple(texts[i] for i in arrays["rows"][span]),
                facts=tuple(map(tuple, facts[span].tolist())),
                ledger=tuple(ledger[number].tolist()),
                decisive=tuple(bool(d) for d in arrays["decisive"][span]),
                sha256=entry["sha256"],
            )
        )
    return examples, [float(entry["weight"]) for entry in meta]


def read(folder: Path, name: str) -> tuple[list[Example], list[float]]:
    """The examples in one file of a bundle. Raises `BundleError` when it carries none that can be read."""
    path = folder / name
    try:
        return unpack(path.read_bytes())
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        message = (
            f"{path}: no readable training examples ({type(error).__name__}); retrain needs a bundle that carries them"
        )
        raise BundleError(message) from error
