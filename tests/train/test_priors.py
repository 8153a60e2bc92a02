from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from train.priors import MIXES, mixes, reweighted, shares_of, thresholds_by_prior

LABELS = ("straggler", "desync", "other")
GIVEN = ["straggler", "straggler", "desync", "undetermined"]
WEIGHTS = [1.0, 3.0, 4.0, 2.0]


def _told(given: list[str], weights: list[float], first: float) -> Any:  # noqa: ANN401
    rows = np.array([[first, (1 - first) / 2, (1 - first) / 2] for _ in given])
    return SimpleNamespace(given=given, weights=tuple(weights), probabilities=rows)


def test_shares_are_of_the_weight() -> None:
    assert shares_of(GIVEN, WEIGHTS) == {"straggler": 0.4, "desync": 0.4, "undetermined": 0.2}


def test_reweighting_gives_each_label_its_share_and_keeps_the_whole() -> None:
    shares = {"straggler": 0.7, "desync": 0.1, "undetermined": 0.2}
    found = reweighted(GIVEN, WEIGHTS, shares)
    assert sum(found) == pytest.approx(sum(WEIGHTS))
    assert shares_of(GIVEN, found) == pytest.approx(shares)
    assert found[1] == pytest.approx(3 * found[0])


def test_uniform_is_equal_over_labels_and_measured_is_that_of_the_public_ones() -> None:
    public = ["desync", "desync", "straggler", "undetermined", "no_timeout"]
    shipped, uniform, measured = mixes(_told(GIVEN, WEIGHTS, 0.8), LABELS, public)
    assert shipped == {"straggler": 0.4, "desync": 0.4, "undetermined": 0.2}
    assert uniform == pytest.approx(dict.fromkeys(LABELS, 0.8 / 3) | {"undetermined": 0.2})
    assert measured == {"straggler": 0.25, "desync": 0.5, "other": 0.0, "undetermined": 0.25}


def test_where_wrong_ones_are_common_thresholds_are_higher() -> None:
    # First labels are all `straggler`, right for half of the incidents and wrong for the other half.
    given, weights = ["straggler"] * 10 + ["desync"] * 10, [9.0] * 10 + [1.0] * 10
    found = thresholds_by_prior(_told(given, weights, 0.8), LABELS, ["desync"] * 9 + ["straggler"])
    assert tuple(found) == MIXES
    balanced = [found[name]["balanced"]["straggler"] for name in MIXES]
    assert balanced[0] < 0.8 < min(balanced[1:])
    assert found["measured"]["prior"]["desync"] == 0.9
