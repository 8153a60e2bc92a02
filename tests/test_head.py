from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from fsdpclassify.encoder import Encoder
from fsdpclassify.errors import BundleError
from fsdpclassify.facts import LINE_FACTS
from fsdpclassify.head import HEAD_FILE, INPUTS, Head, facts_array
from fsdpclassify.vector import LEDGER_FACTS

SHIPPED = Path(__file__).resolve().parents[1] / "models" / "default"


@pytest.fixture
def summing(tmp_path: Path) -> Path:
    """A head whose evidence is the lines themselves and whose probabilities are the ledger plus their sum."""
    made = helper.make_node
    nodes = [
        made("Identity", ["lines"], ["line_evidence"]),
        made("ReduceSum", ["lines", "axis"], ["total"], keepdims=0),
        made("Add", ["total", "ledger"], ["probabilities"]),
        made("ReduceSum", ["line_facts", "axis"], ["unused"], keepdims=0),
    ]
    shapes = {"lines": ["n", 2], "line_facts": ["n", 3], "ledger": [2]}
    values = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shapes[name]) for name in INPUTS}
    outputs = {"probabilities": [2], "line_evidence": ["n", 2]}
    graph = helper.make_graph(
        nodes, "g", list(values.values()),
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(np.array([0], np.int64), "axis")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / HEAD_FILE).write_bytes(model.SerializeToString())
    return tmp_path


def _rows(*rows: tuple[float, ...], width: int) -> np.ndarray:
    return np.array(rows, np.float32).reshape(len(rows), width)


def test_probabilities_come_first_and_line_evidence_second(summing: Path) -> None:
    lines = _rows((1.0, 2.0), (3.0, 4.0), width=2)
    probabilities, evidence = Head(summing).run(lines, _rows((0, 0, 0), (0, 0, 0), width=3), np.ones(2, np.float32))
    assert probabilities.tolist() == [5.0, 7.0]
    assert evidence.tolist() == lines.tolist()


def test_an_incident_may_have_no_lines(summing: Path) -> None:
    probabilities, evidence = Head(summing).run(_rows(width=2), _rows(width=3), np.array([0.5, 0.25], np.float32))
    assert probabilities.tolist() == [0.5, 0.25]
    assert evidence.shape == (0, 2)


def test_a_pickled_head_is_its_folder_and_answers_the_same(summing: Path) -> None:
    head = Head(summing)
    data = pickle.dumps(head)
    assert len(data) < 1000
    given = _rows((1.0, 2.0), width=2), _rows((0, 0, 0), width=3), np.zeros(2, np.float32)
    assert pickle.loads(data).run(*given)[0].tolist() == head.run(*given)[0].tolist()


@pytest.mark.parametrize("data", [b"", b"junk"])
def test_a_graph_that_cannot_be_loaded_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    (tmp_path / HEAD_FILE).write_bytes(data)
    with pytest.raises(BundleError, match=r"head\.onnx: the graph cannot be loaded"):
        Head(tmp_path)


def test_a_missing_graph_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"head\.onnx"):
        Head(tmp_path)


def test_facts_have_their_width_also_without_rows() -> None:
    assert facts_array([], 4).shape == (0, 4)
    assert facts_array([(1, 2)], 2).dtype == np.float32
    with pytest.raises(ValueError, match="reshape"):
        facts_array([(1, 2)], 3)


@pytest.mark.model
def test_the_released_head_takes_what_the_package_computes() -> None:
    head, d = Head(SHIPPED), Encoder(SHIPPED).dimension
    rng = np.random.default_rng(0)
    for n in (0, 1, 7):
        lines = rng.normal(size=(n, d)).astype(np.float32)
        facts = rng.random((n, len(LINE_FACTS)), np.float32)
        probabilities, evidence = head.run(lines, facts, rng.random(len(LEDGER_FACTS), np.float32))
        assert probabilities.sum() == pytest.approx(1.0, abs=1e-5)
        assert (probabilities >= 0).all()
        assert evidence.shape == (n, len(probabilities))
