"""What is fitted on in numpy is what the graph computes."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from onnx import TensorProto, helper

from fsdpclassify.facts import LINE_FACTS
from fsdpclassify.training.pooling import MASKS, Array, mask_matrix, names, nodes, pool

CLASSES, LEDGER = 3, 4
WIDTH = len(MASKS) * CLASSES * 2 + LEDGER


@pytest.fixture(scope="module")
def runner() -> onnxruntime.InferenceSession:
    graph, tensors = nodes("evidence", "facts", "ledger", "out", CLASSES)
    shapes = {"evidence": ["n", CLASSES], "facts": ["n", len(LINE_FACTS)], "ledger": [LEDGER]}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    output = helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, WIDTH])
    model = helper.make_model(
        helper.make_graph(graph, "pool", inputs, [output], tensors),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def _graph(runner: onnxruntime.InferenceSession, evidence: Array, facts: Array, ledger: Array) -> Array:
    (out,) = runner.run(["out"], {"evidence": evidence, "facts": facts, "ledger": ledger})
    row: Array = out[0]
    return row


def _unit(shape: tuple[int, ...]) -> st.SearchStrategy[Array]:
    return arrays(np.float32, shape, elements=st.floats(0, 1, width=32))


@st.composite
def _windows(draw: st.DrawFn) -> tuple[Array, Array, Array]:
    n = draw(st.integers(0, 6))
    return draw(_unit((n, CLASSES))), draw(_unit((n, len(LINE_FACTS)))), draw(_unit((LEDGER,)))


@given(_windows())
def test_numpy_and_the_graph_agree(runner: onnxruntime.InferenceSession, window: tuple[Array, Array, Array]) -> None:
    expected = pool(*window)
    assert expected.shape == (WIDTH,)
    assert np.abs(_graph(runner, *window) - expected).max() <= 1e-5


def test_without_lines_only_the_ledger_is_left(runner: onnxruntime.InferenceSession) -> None:
    none = np.zeros((0, CLASSES), np.float32), np.zeros((0, len(LINE_FACTS)), np.float32)
    ledger = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    for row in (pool(*none, ledger), _graph(runner, *none, ledger)):
        assert row[:-LEDGER].tolist() == [0.0] * (WIDTH - LEDGER)
        assert row[-LEDGER:].tolist() == ledger.tolist()


def _facts(*given: tuple[str, ...]) -> Array:
    rows = np.zeros((len(given), len(LINE_FACTS)), np.float32)
    for row, held in zip(rows, given, strict=True):
        row[[LINE_FACTS.index(name) for name in held]] = 1.0
    return rows


@pytest.mark.parametrize(
    ("held", "mask"),
    [
        (("before", "rank_not_waiting"), "before_by_other"),
        (("during", "rank_not_waiting"), "before_by_other"),
        (("before", "rank_unknown"), "before_by_unknown"),
        (("during", "rank_waiting"), "before_by_waiting"),
        (("after", "rank_unknown"), "after_by_unknown"),
        (("before", "rank_failed_or_missing"), "before_by_gone"),
        (("after", "rank_not_waiting"), "after_by_other"),
        (("after", "rank_waiting"), "after_by_waiting"),
    ],
)
def test_a_line_counts_where_its_time_and_printer_say(held: tuple[str, ...], mask: str) -> None:
    row = pool(np.array([[0.25, 0.5, 0.0]], np.float32), _facts(held), np.zeros(LEDGER, np.float32))
    columns = names("abc", [f"fact {i}" for i in range(LEDGER)])
    found = {name: round(float(v), 5) for name, v in zip(columns, row, strict=True) if v}
    assert found == {f"max {mask}:a": 0.25, f"max {mask}:b": 0.5, f"sum {mask}:a": 0.2, f"sum {mask}:b": 0.33333}


def test_the_strongest_line_and_the_squashed_sum() -> None:
    held = ("before", "rank_unknown")
    evidence = np.array([[0.2, 0, 0], [0.8, 0, 0]], np.float32)
    row = pool(evidence, _facts(held, held), np.zeros(LEDGER, np.float32))
    found = dict(zip(names("abc", "wxyz"), row.tolist(), strict=True))
    assert found["max before_by_unknown:a"] == pytest.approx(0.8)
    assert found["sum before_by_unknown:a"] == pytest.approx(0.5)


def test_the_order_of_lines_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    evidence, facts = rng.random((5, CLASSES), np.float32), rng.random((5, len(LINE_FACTS)), np.float32)
    order = [3, 1, 4, 0, 2]
    ledger = np.zeros(LEDGER, np.float32)
    assert pool(evidence, facts, ledger) == pytest.approx(pool(evidence[order], facts[order], ledger), abs=1e-6)


def test_a_name_for_every_column() -> None:
    given = names(["a", "b"], ["fact"])
    assert len(given) == len(set(given)) == len(MASKS) * 2 * 2 + 1
    assert given[-1] == "fact"


def test_every_mask_has_a_time_and_a_printer() -> None:
    time, who = mask_matrix()
    assert (time.sum(axis=0) > 0).all()
    assert (who.sum(axis=0) > 0).all()
