from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsdpclassify.training.fit import Encoded, FittedLines, fit_incidents, fit_lines
from fsdpclassify.training.remembered import RememberedLines


@pytest.fixture(scope="module")
def lines(encoded: list[Encoded]) -> FittedLines:
    return fit_lines(encoded, [1.0] * len(encoded))


def test_the_same_is_said_and_each_item_is_asked_about_once(
    lines: FittedLines, encoded: list[Encoded], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    plain = FittedLines.unseen

    def spy(self: FittedLines, item: Encoded) -> object:
        asked.append(item.example.id)
        return plain(self, item)

    monkeypatch.setattr(FittedLines, "unseen", spy)
    kept = RememberedLines.of(lines)
    for item in [*encoded, *encoded]:
        assert np.array_equal(kept.unseen(item), plain(lines, item))
    assert asked == [i.example.id for i in encoded]


def test_items_that_are_equal_and_not_the_same_are_kept_apart(lines: FittedLines, encoded: list[Encoded]) -> None:
    kept = RememberedLines.of(lines)
    other = replace(encoded[0], vectors=np.zeros_like(encoded[0].vectors))
    assert not np.array_equal(kept.unseen(encoded[0]), kept.unseen(other))


def test_the_head_fitted_with_it_is_the_same(lines: FittedLines, encoded: list[Encoded]) -> None:
    weights = [1.0] * len(encoded)
    plain, kept = (fit_incidents(each, encoded, weights) for each in (lines, RememberedLines.of(lines)))
    assert np.array_equal(plain.incident.coef_, kept.incident.coef_)
