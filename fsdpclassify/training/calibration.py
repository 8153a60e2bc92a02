"""Temperature and thresholds from predictions on incidents that the head was not fitted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fsdpclassify.decision import OTHER
from fsdpclassify.training.fit import LABELS, tempered

#: Precision that a named cause should reach in each mode on the calibration incidents.
TARGETS: Mapping[str, float] = {"balanced": 0.87, "high-precision": 0.95}
_FLOORS: Mapping[str, float] = {"best-guess": 0.0, "balanced": 0.40, "high-precision": 0.60}
_CEILING = 0.98
#: How far a label's threshold may lie from the one of all labels together.
_SPREAD = 0.05
#: With fewer confident predictions than this a precision means nothing: what lies below is known to fail, or the
#: floor of the mode holds.
_LEAST = 8


def fit_temperature(
    raw: NDArray[np.float64], given: Sequence[str], weights: Sequence[float], labels: tuple[str, ...] = LABELS
) -> float:
    """The temperature in [0.5, 4] with the lowest weighted log loss over incidents that carry one of the labels."""
    known = [i for i, label in enumerate(given) if label in labels]
    rows, target = raw[known], np.array([labels.index(given[i]) for i in known])
    weight = np.asarray(weights)[known]
    grid = np.geomspace(0.5, 4.0, 61)
    losses = [
        float(-(weight * np.log(np.maximum(tempered(rows, t)[np.arange(len(rows)), target], 1e-9))).sum()) for t in grid
    ]
    return round(float(grid[int(np.argmin(losses))]), 4)


def fit_thresholds(
    probabilities: NDArray[np.float64],
    given: Sequence[str],
    weights: Sequence[float],
    labels: tuple[str, ...] = LABELS,
) -> dict[str, dict[str, float]]:
    """For each mode and label the lowest probability above which the label is right often enough, kept near the
    lowest one for all labels together.

    Incidents of `other` and `undetermined` count as wrong for every label: naming a cause for them is the
    confident error that the thresholds exist to prevent.
    """
    first = probabilities.argmax(axis=1)
    top = probabilities.max(axis=1)
    truth = np.array([labels.index(name) if name in labels and name != OTHER else -1 for name in given])
    weight = np.asarray(weights)
    result: dict[str, dict[str, float]] = {"best-guess": dict.fromkeys(labels, 0.0)}
    named = first != labels.index(OTHER) if OTHER in labels else np.ones(len(first), bool)
    for mode, target in TARGETS.items():
        common = _threshold(top[named], (truth == first)[named], weight[named], target, _FLOORS[mode])
        own = {
            label: _threshold(top[first == i], (truth == i)[first == i], weight[first == i], target, _FLOORS[mode])
            for i, label in enumerate(labels)
        }
        # `other` is never concluded, so its own threshold stands.
        result[mode] = {label: t if label == OTHER else _near(common, t) for label, t in own.items()}
    return result


def _near(common: float, own: float) -> float:
    """A label's own threshold, kept near that of all labels: few incidents stand behind each."""
    return round(float(np.clip(own, common - _SPREAD, common + _SPREAD)), 2)


def _threshold(
    top: NDArray[np.float64], right: NDArray[np.bool_], weight: NDArray[np.float64], target: float, floor: float
) -> float:
    for candidate in np.round(np.arange(floor, _CEILING, 0.01), 2):
        chosen = top >= candidate
        if chosen.sum() < _LEAST or (weight * right)[chosen].sum() >= target * weight[chosen].sum():
            return float(candidate)
    return _CEILING
