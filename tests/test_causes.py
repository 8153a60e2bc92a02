from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from fsdpclassify.catalogue import Catalogue, Cause, load_catalogue
from fsdpclassify.causes import CAUSES_FILE, CauseScorer, best_cause
from fsdpclassify.encoder import Encoder
from fsdpclassify.errors import BundleError
from fsdpclassify.records import Remedy

SHIPPED = Path(__file__).resolve().parents[1] / "models" / "default"
CATALOGUE = Catalogue(
    causes=tuple(
        Cause(id=name, label=label, title=name, separate_by="", look_alike=(), remedy=Remedy())
        for name, label in (("slow_disk", "straggler"), ("shape", "desync"), ("slow_save", "straggler"))
    ),
    boundaries={},
)


def _best(*rows: tuple[int, float], label: str = "straggler") -> int | None:
    scores = np.array([[0.1, 0.8, 0.1], [0.6, 0.1, 0.3], [0.2, 0.1, 0.7], [0.2, 0.7, 0.1]], np.float32)
    return best_cause(label, rows, scores, CATALOGUE)


def test_the_cause_whose_evidence_weighs_most() -> None:
    assert _best((1, 0.3), (2, 0.1)) == 0
    assert _best((1, 0.1), (2, 0.3)) == 2


def test_only_causes_below_the_label_count() -> None:
    assert _best((0, 0.9), (1, 0.1)) == 0
    assert _best((0, 0.9), (1, 0.1), label="desync") == 1


def test_lines_against_the_label_do_not_count() -> None:
    assert _best((1, 0.1), (2, -0.9)) == 0


def test_no_cause_is_guessed_from_lines_that_name_none() -> None:
    assert _best((0, 0.9)) is None
    assert _best((3, 0.9)) is None
    assert _best() is None
    assert _best((1, -0.5)) is None
    assert _best((1, 0.0)) is None


def test_a_label_without_catalogue_entries_has_no_cause() -> None:
    assert _best((1, 0.5), label="ours") is None


def test_a_graph_that_cannot_be_loaded_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / CAUSES_FILE).write_bytes(b"no graph")
    with pytest.raises(BundleError, match=r"causes\.onnx: the graph cannot be loaded"):
        CauseScorer(tmp_path)


@pytest.mark.model
def test_the_released_graph_scores_each_cause_of_the_catalogue() -> None:
    scorer, encoder = CauseScorer(SHIPPED), Encoder(SHIPPED)
    causes = load_catalogue(SHIPPED).causes
    none = scorer.score(np.zeros((0, encoder.dimension), np.float32))
    assert none.shape == (0, len(causes))
    vectors = encoder.encode(["CUDA out of memory", "Saving model checkpoint to <path>", "the sky is blue"])
    scores = scorer.score(vectors)
    assert scores.shape == (3, len(causes))
    assert (scores >= 0).all()
    assert (scores.sum(axis=1) <= 1 + 1e-5).all()
    assert pickle.loads(pickle.dumps(scorer)).score(vectors).tolist() == scores.tolist()
