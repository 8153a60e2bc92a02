from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from fsdpclassify.training import recipe
from fsdpclassify.training.examples import Example
from fsdpclassify.training.fit import LABELS, Encoded, Wordings, fit_lines

Make = Callable[..., Example]


@pytest.fixture(scope="module")
def material(encoded: list[Encoded]) -> recipe.Material:
    """Half of the incidents stand for simulated ones; the real ones come from six repositories."""
    simulated, real = tuple(encoded[0::2]), tuple(encoded[1::2])
    none = Wordings(texts=(), vectors=np.zeros((0, 8), np.float32), labels=())
    lines = fit_lines(encoded, [1.0] * len(encoded))
    return recipe.Material(simulated=simulated, validation=tuple(encoded[:9]), real=real, wordings=none, lines=lines)


def test_every_repository_is_held_out_once(material: recipe.Material) -> None:
    groups = recipe.repositories(material)
    held = [name for group in groups for name in group]
    assert sorted(held) == sorted({i.example.repository for i in material.real})
    assert all(groups)
    assert len(groups) <= recipe.FOLDS


def test_a_fold_holds_no_incident_of_its_repositories(material: recipe.Material) -> None:
    left = recipe.without(material, ("repo/1", "r"))
    assert left
    assert not {i.example.repository for i in left} & {"repo/1", "r"}
    assert len(left) < len(material.real)


def test_each_real_incident_is_judged_blind(material: recipe.Material) -> None:
    folds = recipe.out_of_fold(material)
    assert set(folds.raw) == {i.example.sha256 for i in material.real}
    for head, group in zip(folds.heads, folds.groups, strict=True):
        for item in material.real:
            if item.example.repository in group:
                assert folds.raw[item.example.sha256] == pytest.approx(head.probabilities([item])[0], abs=1e-6)


def test_a_calibrated_head_has_thresholds_for_every_mode_and_label(material: recipe.Material) -> None:
    folds = recipe.out_of_fold(material)
    trained = recipe.calibrated(material, recipe.fitted(material, material.real), folds.raw, material.real)
    assert 0.5 <= trained.head.temperature <= 4.0
    assert set(trained.thresholds) == {"best-guess", "balanced", "high-precision"}
    assert all(set(values) == set(LABELS) for values in trained.thresholds.values())


def test_the_prior_sums_to_one_over_the_labels(material: recipe.Material) -> None:
    prior: dict[str, float] | NDArray[np.float64] = recipe.prior(material)
    assert set(prior) == set(LABELS)
    assert sum(prior.values()) == pytest.approx(1.0)
