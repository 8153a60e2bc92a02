"""Finer causes: which catalogue entry the lines of a verdict speak for (`causes.onnx` of a bundle)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fsdpclassify.catalogue import Catalogue
from fsdpclassify.head import load_session

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CAUSES_FILE = "causes.onnx"
INPUT, OUTPUT = "lines", "cause_scores"
#: Below this share of a line's cause scores the line names no cause.
_LEAST = 0.25


class CauseScorer:
    """Runs `causes.onnx`: `lines [n, d]` -> `cause_scores [n, causes]`, each row summing to 1."""

    def __init__(self, bundle_dir: Path | str) -> None:
        self._dir = Path(bundle_dir)
        self._session = load_session(self._dir / CAUSES_FILE)

    def __getstate__(self) -> Path:
        """Only the folder travels."""
        return self._dir

    def __setstate__(self, state: Path) -> None:
        """Load again from the same folder."""
        self._dir = state
        self._session = load_session(state / CAUSES_FILE)

    def score(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """`[n, d]` -> `[n, causes]`; n may be 0."""
        scores: NDArray[np.float32] = self._session.run([OUTPUT], {INPUT: vectors})[0]
        return scores


def best_cause(
    label: str, rows: Sequence[tuple[int, float]], scores: NDArray[np.float32], catalogue: Catalogue
) -> int | None:
    """The index of the cause of `label` whose evidence weighs most; None when no line names one.

    `rows` are (row of `scores`, weight of that line for the label), weights above zero count.
    """
    members = catalogue.of_label(label)
    totals = dict.fromkeys(members, 0.0)
    named = False
    for row, weight in rows:
        if weight <= 0:
            continue
        for index in members:
            totals[index] += weight * float(scores[row][index])
        named |= max((float(scores[row][i]) for i in members), default=0.0) >= _LEAST
    return max(totals, key=lambda i: totals[i]) if named else None
