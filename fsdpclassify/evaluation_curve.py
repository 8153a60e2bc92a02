"""How much may be answered at a given precision, how well probabilities are meant, and how sure figures are.

Input: judged incidents; output: plain numbers. A curve is made from the first labels and their probabilities
alone, so that it does not depend on the thresholds of a mode. Pure Python.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fsdpclassify.evaluation_outcome import NOT_CAUSES, OTHER, Outcome

#: Below this many probabilities an expected calibration error says more about its bins than about the model.
LEAST_FOR_ECE = 300
PRECISIONS = (0.95, 0.98)
CALIBRATION_BINS = 5
_ECE_BINS = 10
_RESAMPLES = 400
_TAIL = 0.025


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """If every first label from `threshold` on were concluded: the share of incidents named, and how often rightly."""

    threshold: float
    coverage: float
    precision: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationBin:
    """First labels given with a probability from `low` to `high`: how many, how sure, how often right."""

    low: float
    high: float
    count: int
    mean_probability: float
    right: float


def risk_coverage(outcomes: Sequence[Outcome]) -> tuple[CurvePoint, ...]:
    """One point for each distinct probability, from the highest down; `coverage` counts every incident that was seen.

    A label `other` is never concluded. A cause named for an incident without one is wrong.
    """
    seen = [o for o in outcomes if o.probability is not None]
    named = sorted(((o.probability or 0.0, o.model_label == o.label) for o in seen if o.model_label != OTHER), key=_low)
    points, right = [], 0
    for place, (probability, hit) in enumerate(named, start=1):
        right += hit
        if place < len(named) and named[place][0] == probability:
            continue  # what is equally probable can only be concluded together
        points.append(CurvePoint(threshold=probability, coverage=place / len(seen), precision=right / place))
    return tuple(points)


def _low(pair: tuple[float, bool]) -> float:
    return -pair[0]


def coverage_at(curve: Sequence[CurvePoint], precision: float) -> float:
    """The largest share of incidents that can be named at `precision` or above; 0 where none can."""
    return max((point.coverage for point in curve if point.precision >= precision), default=0.0)


def calibration_bins(outcomes: Sequence[Outcome]) -> tuple[CalibrationBin, ...]:
    """Bins of equal width over the probability of the model's first label; empty ones are left out."""
    bins = _binned(outcomes, CALIBRATION_BINS)
    return tuple(
        CalibrationBin(
            low=place / CALIBRATION_BINS,
            high=(place + 1) / CALIBRATION_BINS,
            count=len(pairs),
            mean_probability=math.fsum(probability for probability, _ in pairs) / len(pairs),
            right=sum(right for _, right in pairs) / len(pairs),
        )
        for place, pairs in sorted(bins.items())
    )


def expected_calibration_error(outcomes: Sequence[Outcome]) -> float | None:
    """Mean distance of probability and share of right first labels, in ten bins; None below `LEAST_FOR_ECE`."""
    bins = _binned(outcomes, _ECE_BINS)
    total = sum(map(len, bins.values()))
    if total <= LEAST_FOR_ECE:
        return None
    gaps = (abs(math.fsum(probability - right for probability, right in pairs)) for pairs in bins.values())
    return math.fsum(gaps) / total


def _binned(outcomes: Sequence[Outcome], bins: int) -> dict[int, list[tuple[float, bool]]]:
    """(probability, right) of the first labels by bins of equal width, where the model knows the true label."""
    found: dict[int, list[tuple[float, bool]]] = {}
    for o in outcomes:
        if o.probability is not None and o.truth_probability is not None:
            place = min(int(o.probability * bins), bins - 1)
            found.setdefault(place, []).append((o.probability, o.model_label == o.label))
    return found


def bootstrap(
    outcomes: Sequence[Outcome], figure: Callable[[Sequence[Outcome]], float | None], *, seed: int = 0
) -> tuple[float, float] | None:
    """The 95 % interval of `figure` over incidents drawn anew with replacement; None where it has no value.

    As many are drawn of each label as there are: else a cause with one incident would be missing from every third
    draw, and with it from a mean over causes.
    """
    if not outcomes or figure(outcomes) is None:
        return None
    rng = random.Random(seed)
    groups: dict[str, list[Outcome]] = {}
    for o in outcomes:
        groups.setdefault(o.label, []).append(o)
    drawn = (figure([o for g in groups.values() for o in rng.choices(g, k=len(g))]) for _ in range(_RESAMPLES))
    values = sorted(value for value in drawn if value is not None)
    cut = int(_TAIL * len(values))
    return values[cut], values[len(values) - 1 - cut]


def macro_f1(outcomes: Sequence[Outcome]) -> float | None:
    """The mean F1 of the causes that occur as labels, under the strict rule; None where no cause occurs."""
    truth: dict[str, int] = {}
    said: dict[str, int] = {}
    hits: dict[str, int] = {}
    for o in outcomes:
        truth[o.label] = truth.get(o.label, 0) + 1
        said[o.conclusion] = said.get(o.conclusion, 0) + 1
        hits[o.label] = hits.get(o.label, 0) + o.strict
    scores = [2 * hits[name] / (n + said.get(name, 0)) for name, n in truth.items() if name not in NOT_CAUSES]
    return math.fsum(scores) / len(scores) if scores else None


def brier(outcomes: Sequence[Outcome]) -> float | None:
    """The mean squared error summed over the labels (0 best, 2 worst); None where no label is one the model knows."""
    known = [o.brier for o in outcomes if o.brier is not None]
    return math.fsum(known) / len(known) if known else None


def log_loss(outcomes: Sequence[Outcome]) -> float | None:
    """The mean of minus the log of the true label's probability, in nats; None as for `brier`."""
    known = [-math.log(max(o.truth_probability, 1e-12)) for o in outcomes if o.truth_probability is not None]
    return math.fsum(known) / len(known) if known else None
