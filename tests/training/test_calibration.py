from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fsdpclassify.training.calibration import TARGETS, fit_temperature, fit_thresholds
from fsdpclassify.training.fit import tempered

LABELS = ("a", "b", "other")


def _rows(p: float, n: int, label: int = 0) -> NDArray[np.float64]:
    rows = np.full((n, 3), (1 - p) / 2)
    rows[:, label] = p
    return rows


def test_temperature_one_changes_nothing_and_more_flattens() -> None:
    rows = np.array([[0.7, 0.2, 0.1]])
    assert tempered(rows, 1.0) == pytest.approx(rows)
    assert tempered(rows, 4.0)[0, 0] < 0.7 < tempered(rows, 0.5)[0, 0]
    assert tempered(rows, 4.0).sum() == pytest.approx(1.0)
    assert np.isfinite(tempered(np.array([[1.0, 0.0, 0.0]]), 0.5)).all()


def test_an_overconfident_head_is_cooled_and_a_shy_one_sharpened() -> None:
    given = ["a"] * 60 + ["b"] * 40
    bold = fit_temperature(_rows(0.98, 100), given, [1.0] * 100, LABELS)
    assert bold > 1.5
    assert tempered(_rows(0.98, 1), bold)[0, 0] == pytest.approx(0.6, abs=0.12)
    assert fit_temperature(_rows(0.5, 100), ["a"] * 100, [1.0] * 100, LABELS) == 0.5


def test_weights_decide_which_incidents_calibrate() -> None:
    given = ["a"] * 50 + ["b"] * 50
    right = fit_temperature(_rows(0.9, 100), given, [1.0] * 50 + [0.0] * 50, LABELS)
    wrong = fit_temperature(_rows(0.9, 100), given, [0.1] * 50 + [1.0] * 50, LABELS)
    assert right < wrong


def test_incidents_without_a_label_of_the_bundle_do_not_calibrate() -> None:
    rows = np.vstack([_rows(0.5, 100), _rows(0.98, 300)])
    given = ["a"] * 100 + ["undetermined"] * 300
    assert fit_temperature(rows, given, [1.0] * 400, LABELS) == 0.5


def _thresholds(*groups: tuple[float, int, str], label: int = 0) -> dict[str, dict[str, float]]:
    rows = np.vstack([_rows(p, n, label) for p, n, _ in groups])
    given = [name for _, n, name in groups for _ in range(n)]
    return fit_thresholds(rows, given, [1.0] * len(given), LABELS)


def test_the_lowest_probability_above_which_the_label_is_right_often_enough() -> None:
    found = _thresholds((0.9, 50, "a"), (0.6, 50, "b"))
    assert found["balanced"]["a"] == pytest.approx(0.61)
    assert found["high-precision"]["a"] == pytest.approx(0.61)
    assert found["best-guess"]["a"] == 0.0


def test_a_label_that_is_always_right_has_the_floor_of_the_mode() -> None:
    found = _thresholds((0.9, 50, "a"), (0.5, 50, "a"))
    assert (found["balanced"]["a"], found["high-precision"]["a"]) == (0.40, 0.60)


@pytest.mark.parametrize("name", ["undetermined", "other", "b"])
def test_naming_a_cause_for_anything_else_counts_as_wrong(name: str) -> None:
    assert _thresholds((0.95, 50, "a"), (0.7, 50, name))["balanced"]["a"] == pytest.approx(0.71)


def test_other_is_never_a_right_conclusion() -> None:
    assert _thresholds((0.9, 50, "other"), label=2)["balanced"]["other"] == pytest.approx(0.91)


def test_a_label_that_is_never_right_is_never_trusted() -> None:
    assert _thresholds((0.97, 50, "b"))["balanced"]["a"] >= 0.97


def test_a_label_without_predictions_has_the_floor() -> None:
    found = _thresholds((0.9, 50, "a"))
    assert (found["balanced"]["b"], found["high-precision"]["b"]) == (0.40, 0.60)


def test_modes_are_ordered_and_every_label_has_a_threshold() -> None:
    rng = np.random.default_rng(3)
    rows = rng.dirichlet([1, 1, 1], 400)
    given = [LABELS[i] if rng.random() < 0.8 else "undetermined" for i in rows.argmax(axis=1)]
    found = fit_thresholds(rows, given, [1.0] * 400, LABELS)
    assert set(found) == {"best-guess", *TARGETS}
    for label in LABELS:
        assert 0 == found["best-guess"][label] <= found["balanced"][label] <= found["high-precision"][label] <= 1
