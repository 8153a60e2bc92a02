"""Thresholds as they would be if incidents came in another mix: what the class prior decides, in figures.

The probabilities stay those of the bundle's graph; only how much each calibration incident counts changes. `shipped`
is the mix that the calibration incidents have (half of the weight on real ones); `uniform` gives every label of the
bundle the same weight, `measured` the share it has among public incidents. Incidents labelled `undetermined`, for
which every named cause is wrong, keep their share in `uniform`, and have their measured one in `measured`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from fsdpclassify.decision import UNDETERMINED
from fsdpclassify.training.calibration import fit_thresholds
from fsdpclassify.training.recipe import Calibration

MIXES = ("shipped", "uniform", "measured")
Shares = dict[str, float]


def thresholds_by_prior(
    told: Calibration, labels: tuple[str, ...], public: Sequence[str]
) -> dict[str, dict[str, dict[str, float]]]:
    """For each mix its `prior` and its thresholds of the modes that have any; `public` are the labels of real ones."""
    found = {}
    for name, shares in zip(MIXES, mixes(told, labels, public), strict=True):
        weights = reweighted(told.given, told.weights, shares)
        fitted = fit_thresholds(told.probabilities, told.given, weights, labels)
        found[name] = {"prior": _rounded(shares), "balanced": fitted["balanced"]}
        found[name]["high-precision"] = fitted["high-precision"]
    return found


def mixes(told: Calibration, labels: Sequence[str], public: Sequence[str]) -> tuple[Shares, Shares, Shares]:
    """The share of each label and of `undetermined`, by mix, in the order of `MIXES`."""
    shipped = shares_of(told.given, told.weights)
    rest = shipped.get(UNDETERMINED, 0.0)
    uniform = {name: (1.0 - rest) / len(labels) for name in labels} | {UNDETERMINED: rest}
    counts = Counter(name for name in public if name in (*labels, UNDETERMINED))
    measured = {name: counts[name] / counts.total() for name in (*labels, UNDETERMINED)}
    return shipped, uniform, measured


def shares_of(given: Sequence[str], weights: Sequence[float]) -> Shares:
    """Each label's share of the weight."""
    totals: Counter[str] = Counter()
    for name, weight in zip(given, weights, strict=True):
        totals[name] += weight  # type: ignore[assignment]  (a Counter adds any numbers)
    whole = sum(totals.values())
    return {name: total / whole for name, total in sorted(totals.items())}


def reweighted(given: Sequence[str], weights: Sequence[float], shares: Mapping[str, float]) -> list[float]:
    """Weights that sum to the same and give each label its share; labels without a share count for nothing."""
    own, whole = shares_of(given, weights), sum(weights)
    factors = {name: shares.get(name, 0.0) / share for name, share in own.items() if share}
    scaled = [weight * factors.get(name, 0.0) for name, weight in zip(given, weights, strict=True)]
    return [weight * whole / sum(scaled) for weight in scaled]


def _rounded(shares: Mapping[str, float]) -> Shares:
    return {name: round(share, 4) for name, share in shares.items()}
