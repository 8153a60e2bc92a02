from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from fsdpclassify.facts import LINE_FACTS
from fsdpclassify.training.examples import Example
from fsdpclassify.training.fit import LABELS
from train import nearest
from train.baseline_table import baseline_table

AXES = {"saving checkpoint": (1.0, 0.0), "peer closed": (0.0, 1.0)}


class FakeModel:
    """Encodes two lines as they stand in `AXES`, sentences about checkpoints like the first, others as nothing."""

    def encode(self, texts: list[str], **_: object) -> list[tuple[float, float]]:
        return [AXES.get(text, (0.8, 0.0) if "checkpoint" in text else (0.0, 0.1)) for text in texts]


@pytest.fixture
def baseline(monkeypatch: pytest.MonkeyPatch) -> Iterator[nearest.NearestSymptom]:
    monkeypatch.setattr(nearest, "_model", FakeModel)
    monkeypatch.setattr(nearest, "_known", {})
    nearest._symptoms.cache_clear()
    found = nearest.NearestSymptom()
    found.fit([])
    yield found
    nearest._symptoms.cache_clear()


def _example(*texts: str) -> Example:
    return Example(
        id="e", label="straggler", alt_label=None, cause=None, determinable=None, repository="r", found=True,
        texts=texts, facts=((0.0,) * len(LINE_FACTS),) * len(texts), ledger=(), decisive=(False,) * len(texts),
        sha256="0",
    )  # fmt: skip


def test_the_sentence_nearest_to_any_line_gives_its_label(baseline: nearest.NearestSymptom) -> None:
    assert baseline.guess(_example("peer closed", "saving checkpoint")) == "straggler"
    assert baseline.predict(_example("peer closed", "saving checkpoint")) == "straggler"


def test_far_lines_and_no_line_are_abstained_on(baseline: nearest.NearestSymptom) -> None:
    assert baseline.predict(_example("peer closed")) == "undetermined"
    assert baseline.guess(_example()) == "undetermined"


def test_the_sentences_are_the_catalogue_s_and_speak_for_known_labels(baseline: nearest.NearestSymptom) -> None:
    labels, vectors = nearest._symptoms()
    assert set(labels) == set(LABELS)
    assert vectors.shape == (len(labels), 2)
    assert vectors.dtype == np.float32


def test_a_table_says_that_it_was_not_asked() -> None:
    assert baseline_table({"majority": {}}, {}).splitlines()[-1].split("  ")[-1].strip().startswith("not asked")
