from __future__ import annotations

from collections.abc import Callable

import pytest

from fsdpclassify.training.examples import Example
from fsdpclassify.training.weights import REAL_SHARE, balanced

Make = Callable[..., Example]


@pytest.mark.parametrize(("simulated", "real"), [(10, 1), (100, 40), (3, 30)])
@pytest.mark.parametrize("share", [REAL_SHARE, 0.5])
def test_the_real_ones_carry_their_share_together(make_example: Make, simulated: int, real: int, share: float) -> None:
    some = [make_example("a", "desync")]
    weights = balanced(some * simulated, some * real, share)
    assert len(weights) == simulated + real
    assert weights[:simulated] == [1.0] * simulated
    assert len(set(weights[simulated:])) == 1
    assert sum(weights[simulated:]) / sum(weights) == pytest.approx(share)


def test_alone_each_kind_weighs_one(make_example: Make) -> None:
    some = [make_example("a", "desync")] * 3
    assert balanced(some, []) == [1.0] * 3
    assert balanced([], some) == [1.0] * 3
    assert balanced([], []) == []


def test_the_share_is_that_of_the_design() -> None:
    assert REAL_SHARE == 0.3
