from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from fsdpclassify.catalogue import CATALOGUE_FILE, load_catalogue
from fsdpclassify.causes import CAUSES_FILE, INPUT, OUTPUT, CauseScorer
from fsdpclassify.training.examples import Example
from fsdpclassify.training.own_causes import Taught, extended, taught

Make = Callable[..., Example]
Encode = Callable[[list[str]], NDArray[np.float32]]
_DIMENSION = 8
_REMEDY = {"summary": "do", "steps": [], "longer_timeout_helps": False, "verify": [], "ops_request": None}


def _shipped() -> bytes:
    """A graph of two causes whose scores are those of the first two inputs."""
    weights = np.eye(_DIMENSION, 2, dtype=np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", [INPUT, "w"], ["product"]), helper.make_node("Softmax", ["product"], [OUTPUT])],
        "causes",
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["n", _DIMENSION])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["n", 2])],
        [helper.make_tensor("w", TensorProto.FLOAT, weights.shape, weights)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    data: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString(deterministic=True)
    return data


def _catalogue() -> bytes:
    causes = [
        {"id": name, "label": "desync", "title": "T", "separate_by": "s", "look_alike": [], "remedy": _REMEDY}
        for name in ("a", "b")
    ]
    content = {"causes": causes, "boundaries": {"desync": "b"}, "remedies": {"desync": _REMEDY}}
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


LINES = Taught(
    texts=("our words", "more of ours", "the other house"),
    labels=("desync", "desync", "house"),
    daily=("daily", "also daily"),
    others=tuple(f"other {i}" for i in range(30)),
)


def _read(folder: Path, graph: bytes, catalogue: bytes) -> tuple[CauseScorer, list[str]]:
    (folder / CAUSES_FILE).write_bytes(graph)
    (folder / CATALOGUE_FILE).write_bytes(catalogue)
    return CauseScorer(folder), [c.id for c in load_catalogue(folder).causes]


def test_own_wordings_get_a_column_a_label_and_others_keep_their_scores(encode: Encode, tmp_path: Path) -> None:
    before, _ = _read(tmp_path, _shipped(), _catalogue())
    vectors = encode([*LINES.texts, *LINES.daily, "other 3"])
    plain = before.score(vectors)
    after, causes = _read(tmp_path, *extended(_shipped(), _catalogue(), LINES, encode))
    scores = after.score(vectors)
    assert causes == ["a", "b", "own_desync", "own_house"]
    assert scores.shape == (6, 4)
    assert (scores[:2, 2] > 0.7).all()
    assert scores[2, 3] > 0.7
    assert (scores[3:, 2:] == 0.0).all()
    assert np.allclose(scores[3:, :2], plain[3:], atol=1e-6)
    assert scores.sum(axis=1) == pytest.approx(np.ones(6), abs=1e-5)
    assert after.score(vectors[:0]).shape == (0, 4)


def test_a_label_without_a_general_remedy_gets_an_empty_one(encode: Encode, tmp_path: Path) -> None:
    _read(tmp_path, *extended(_shipped(), _catalogue(), LINES, encode))
    remedies = {c.id: c.remedy.summary for c in load_catalogue(tmp_path).causes}
    assert (remedies["own_desync"], remedies["own_house"]) == ("do", None)


def test_a_second_run_replaces_the_columns_of_the_first(encode: Encode) -> None:
    first = extended(_shipped(), _catalogue(), LINES, encode)
    other = Taught(texts=("new",), labels=("straggler",), daily=("daily",), others=LINES.others)
    assert extended(*first, other, encode) == extended(_shipped(), _catalogue(), other, encode)


def test_without_own_wordings_the_shipped_graph_comes_back(encode: Encode) -> None:
    nothing = Taught(texts=(), labels=(), daily=("daily",), others=LINES.others)
    first = extended(_shipped(), _catalogue(), LINES, encode)
    assert extended(*first, nothing, encode) == (_shipped(), _catalogue())


def test_decisive_lines_teach_the_label_that_three_in_four_give_them(make_example: Make) -> None:
    own = [
        make_example("a", "desync", ("told", "shared", "daily"), (True, True, False)),
        make_example("b", "house", ("shared", "daily", "ours"), (True, False, True)),
        *(make_example(f"c{i}", "house", ("mostly",), (True,)) for i in range(3)),
        make_example("d", "desync", ("mostly",), (True,)),
    ]
    found = taught(own, ["daily", "told", "elsewhere"])
    assert dict(zip(found.texts, found.labels, strict=True)) == {"told": "desync", "ours": "house", "mostly": "house"}
    assert (found.daily, found.others) == (("daily",), ("elsewhere",))
