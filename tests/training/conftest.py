"""Small made-up examples: training is tested without the corpus and without a bundle."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from fsdpclassify.facts import LINE_FACTS
from fsdpclassify.training.examples import Example
from fsdpclassify.training.fit import LABELS, Encoded
from fsdpclassify.vector import LEDGER_FACTS

DIMENSION = 8
Make = Callable[..., Example]


def _example(
    name: str,
    label: str,
    texts: tuple[str, ...] = ("one", "two"),
    decisive: tuple[bool, ...] | None = None,
    **changes: object,
) -> Example:
    rng = np.random.default_rng(sum(name.encode()))
    facts = rng.integers(0, 256, (len(texts), len(LINE_FACTS))).astype(np.float32) / 255.0
    ledger = rng.integers(0, 256, len(LEDGER_FACTS)).astype(np.float32) / 255.0
    values: dict[str, object] = {
        "id": name, "label": label, "alt_label": None, "cause": None, "determinable": None, "repository": "r",
        "found": True, "texts": texts, "facts": tuple(map(tuple, facts.tolist())), "ledger": tuple(ledger.tolist()),
        "decisive": tuple(i == 0 for i in range(len(texts))) if decisive is None else decisive,
        "sha256": hashlib.sha256(name.encode()).hexdigest(),
    }  # fmt: skip
    return Example(**values | changes)  # type: ignore[arg-type]


@pytest.fixture(scope="package")
def make_example() -> Make:
    return _example


@pytest.fixture(scope="package")
def encode() -> Callable[[list[str]], NDArray[np.float32]]:
    """A stand-in for the encoder: a fixed vector for each text, whatever else is in the batch."""

    def encode(texts: list[str]) -> NDArray[np.float32]:
        rows = [np.random.default_rng(list(t.encode()) or [0]).normal(size=DIMENSION) for t in texts]
        return np.array(rows, np.float32).reshape(len(texts), DIMENSION)

    return encode


@pytest.fixture(scope="package")
def encoded(make_example: Make, encode: Callable[[list[str]], NDArray[np.float32]]) -> list[Encoded]:
    """Six incidents of every label, whose decisive line names the label, and three undetermined ones."""
    from fsdpclassify.training.fit import encode_all

    examples = [
        make_example(f"{label}-{i}", label, (f"because {label} {i % 3}", f"noise {i}", "noise"), repository=f"repo/{i}")
        for label in LABELS
        for i in range(6)
    ]
    examples += [make_example(f"u-{i}", "undetermined", ("noise", f"noise {i}"), (False, False)) for i in range(3)]
    return encode_all(examples, encode)
