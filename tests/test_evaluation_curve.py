from __future__ import annotations

import random
from typing import Any

import pytest

from fsdpclassify import evaluation_curve as curve
from fsdpclassify.evaluation_outcome import Outcome


def _outcome(label: str, first: str, probability: float | None, **changes: Any) -> Outcome:  # noqa: ANN401
    values: dict[str, Any] = {
        "id": "x", "label": label, "conclusion": first, "model_label": first, "probability": probability,
        "truth_probability": probability if first == label else 0.1, "brier": 0.2, "strict": first == label,
        "accepted": first == label, "determinable": None, "seen": False, "ranks_exact": None, "ranks_wrong": None,
        "waiting_exact": None, "evidence_hit": None, "fatal_hit": None, "cause": None, "cause_exact": None,
    }  # fmt: skip
    return Outcome(**values | changes)


def test_the_curve_names_the_surest_first_and_counts_every_incident_that_was_seen() -> None:
    outcomes = [
        _outcome("desync", "desync", 0.9),
        _outcome("desync", "straggler", 0.5),
        _outcome("other", "other", 0.99),
        _outcome("no_timeout", "no_timeout", None),
        _outcome("undetermined", "desync", 0.7),
    ]
    points = [(p.threshold, p.coverage, p.precision) for p in curve.risk_coverage(outcomes)]
    assert points == [(0.9, 0.25, 1.0), (0.7, 0.5, 0.5), (0.5, 0.75, pytest.approx(1 / 3))]


def test_what_is_equally_probable_is_named_together() -> None:
    outcomes = [_outcome("desync", "desync", 0.9), _outcome("desync", "straggler", 0.9)]
    (point,) = curve.risk_coverage(outcomes)
    assert (point.coverage, point.precision) == (1.0, 0.5)


def test_coverage_is_the_largest_at_the_precision_even_behind_a_dip() -> None:
    right = [_outcome("desync", "desync", 0.8 - i / 1000) for i in range(19)]
    outcomes = [_outcome("desync", "straggler", 0.9), *right]
    points = curve.risk_coverage(outcomes)
    assert curve.coverage_at(points, 0.95) == 1.0
    assert curve.coverage_at(points, 0.98) == 0.0
    assert curve.coverage_at((), 0.95) == 0.0


def test_the_calibration_error_needs_more_than_300_incidents() -> None:
    few = [_outcome("desync", "desync", 0.95)] * 300
    assert curve.expected_calibration_error(few) is None
    assert curve.expected_calibration_error([*few, few[0]]) == pytest.approx(0.05)
    mixed = [*few, *[_outcome("desync", "straggler", 0.55)] * 100]
    assert curve.expected_calibration_error(mixed) == pytest.approx((300 * 0.05 + 100 * 0.55) / 400)


def test_intervals_hold_the_figure_and_shrink_with_more_incidents() -> None:
    rng = random.Random(0)

    def some(count: int) -> list[Outcome]:
        names = [rng.choice(("desync", "desync", "straggler")) for _ in range(count)]
        return [_outcome("desync", first, 0.8) for first in names]

    outcomes = [_outcome("rare", "desync", 0.8), *some(30)]
    assert (curve.bootstrap(outcomes, curve.macro_f1) or (0.0, 1.0))[1] <= 0.5
    widths = []
    for count in (20, 320):
        outcomes = some(count)
        low, high = curve.bootstrap(outcomes, curve.macro_f1) or (1.0, 0.0)
        assert low <= (curve.macro_f1(outcomes) or 0.0) <= high
        widths.append(high - low)
    assert widths[1] < widths[0] / 2
    assert curve.bootstrap(some(20), curve.macro_f1) != curve.bootstrap(some(20), curve.macro_f1, seed=5)


def test_a_bootstrap_over_two_values_has_their_ends() -> None:
    # With two incidents of one label, a draw is both of the first, both of the second, or one of each.
    pair = [_outcome("desync", "desync", 0.9, brier=0.0), _outcome("desync", "desync", 0.9, brier=1.0)]
    assert curve.bootstrap(pair, curve.brier) == (0.0, 1.0)
    assert curve.bootstrap([pair[0]] * 9, curve.brier) == (0.0, 0.0)


@pytest.mark.parametrize("figure", [curve.macro_f1, curve.brier, curve.log_loss])
def test_figures_without_data_have_no_value_and_no_interval(figure: Any) -> None:  # noqa: ANN401
    outcomes = [_outcome("no_timeout", "no_timeout", None, truth_probability=None, brier=None)]
    assert figure(outcomes) is None
    assert curve.bootstrap(outcomes, figure) is None
    assert curve.bootstrap([], figure) is None


def test_bins_keep_a_probability_of_one_in_the_last() -> None:
    (item,) = curve.calibration_bins([_outcome("desync", "desync", 1.0)])
    assert (item.low, item.high, item.count, item.right) == (0.8, 1.0, 1, 1.0)
