"""What a head says first about the frozen tests of a bundle and about a user's own incidents, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsdpclassify.decision import OTHER, UNDETERMINED
from fsdpclassify.head import Head
from fsdpclassify.training.fit import Encoded


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """First labels: macro-F1 and accuracy over the causes among the `frozen` tests; hits among `own` incidents."""

    macro_f1: float
    accuracy: float
    frozen: int
    own: int
    own_right: int


def figures(head: Head, labels: Sequence[str], frozen: Sequence[Encoded], own: Sequence[Encoded]) -> Figures:
    """Ask a head with these labels; incidents labelled `undetermined` have no first label to compare with."""
    causes = [i for i in frozen if i.example.label in labels and i.example.label != OTHER]
    truth = np.array([labels.index(i.example.label) for i in causes])
    first = np.array([_first(head, i) for i in causes])
    mine = [i for i in own if i.example.label != UNDETERMINED]
    return Figures(
        macro_f1=_macro_f1(truth, first),
        accuracy=float((truth == first).mean()),
        frozen=len(causes),
        own=len(mine),
        own_right=sum(labels[_first(head, i)] == i.example.label for i in mine),
    )


def _first(head: Head, item: Encoded) -> int:
    return int(head.run(item.vectors, item.facts, item.ledger)[0].argmax())


def _macro_f1(truth: NDArray[np.int64], first: NDArray[np.int64]) -> float:
    scores = []
    for label in np.unique(truth):
        hit = float(((truth == label) & (first == label)).sum())
        scores.append(2 * hit / float((truth == label).sum() + (first == label).sum()))
    return float(np.mean(scores))
