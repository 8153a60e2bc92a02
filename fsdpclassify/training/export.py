"""A fitted head -> `head.onnx`, checked against the estimators it came from.

scikit-learn's estimators are converted by skl2onnx; pooling, label order and temperature are joined to
them in one graph. Isotonic calibration and temperature estimators do not convert exactly, which is why
the temperature is a plain division in the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, compose, helper, numpy_helper
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType
from sklearn.linear_model import LogisticRegression

from fsdpclassify.facts import LINE_FACTS
from fsdpclassify.head import Head
from fsdpclassify.training.fit import Encoded, FittedHead
from fsdpclassify.training.pooling import nodes as pooling_nodes

OPSET = 17
PARITY = 1e-4
_ML = 3


def head_graph(head: FittedHead, dimension: int, ledger: int) -> ModelProto:
    """The whole head as one ONNX model: inputs and outputs as in the bundle's contract."""
    labels = head.labels
    line, line_out = _converted(head.line, dimension + len(LINE_FACTS), "line_")
    incident, incident_out = _converted(head.incident, head.incident.n_features_in_, "incident_")
    pooling, pooled_tensors = pooling_nodes("line_evidence", "line_facts", "ledger", "incident_x", len(labels))
    tensors = [
        numpy_helper.from_array(_order(head.line, labels, padded=True), "line_order"),
        numpy_helper.from_array(np.array([0, 0, 0, 1], np.int64), "line_pad"),
        numpy_helper.from_array(_order(head.incident, labels), "label_order"),
        numpy_helper.from_array(np.array([1e-9], np.float32), "floor"),
        numpy_helper.from_array(np.array([head.temperature], np.float32), "temperature"),
        numpy_helper.from_array(np.array([-1], np.int64), "flat"),
    ]
    made = helper.make_node
    steps: list[NodeProto] = [
        made("Concat", ["lines", "line_facts"], ["line_x"], axis=1),
        *line.graph.node,
        made("Pad", [line_out, "line_pad"], ["line_padded"]),
        made("Gather", ["line_padded", "line_order"], ["line_evidence"], axis=1),
        *pooling,
        *incident.graph.node,
        made("Gather", [incident_out, "label_order"], ["ordered"], axis=1),
        made("Max", ["ordered", "floor"], ["positive"]),
        made("Log", ["positive"], ["log_probabilities"]),
        made("Div", ["log_probabilities", "temperature"], ["tempered"]),
        made("Softmax", ["tempered"], ["softened"], axis=1),
        made("Reshape", ["softened", "flat"], ["probabilities"]),
    ]
    graph = helper.make_graph(
        steps,
        "fsdpclassify_head",
        [
            helper.make_tensor_value_info("lines", TensorProto.FLOAT, ["n", dimension]),
            helper.make_tensor_value_info("line_facts", TensorProto.FLOAT, ["n", len(LINE_FACTS)]),
            helper.make_tensor_value_info("ledger", TensorProto.FLOAT, [ledger]),
        ],
        [
            helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [len(labels)]),
            helper.make_tensor_value_info("line_evidence", TensorProto.FLOAT, ["n", len(labels)]),
        ],
        [*line.graph.initializer, *incident.graph.initializer, *pooled_tensors, *tensors],
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", _ML)]
    model = helper.make_model(graph, opset_imports=opsets, producer_name="fsdpclassify", ir_version=8)
    onnx.checker.check_model(model)
    return model


def _converted(estimator: LogisticRegression, width: int, prefix: str) -> tuple[ModelProto, str]:
    """`estimator` as a graph whose input is `<prefix>x`; returns it and the name of its probabilities."""
    model = to_onnx(
        estimator,
        initial_types=[("x", FloatTensorType([None, width]))],
        options={id(estimator): {"zipmap": False}},
        target_opset={"": OPSET, "ai.onnx.ml": _ML},
    )
    renamed = compose.add_prefix(model, prefix)
    return renamed, renamed.graph.output[1].name


def _order(estimator: LogisticRegression, labels: Sequence[str], *, padded: bool = False) -> np.ndarray:
    """Where each label stands among the estimator's own (sorted) classes.

    With `padded`, a label that the estimator never saw stands at a column of zeros behind them (no line speaks
    for it alone); else every label must have been seen.
    """
    classes = [str(c) for c in estimator.classes_]
    unseen = [name for name in labels if name not in classes]
    if unseen and not padded:
        message = f"no training incident carries {', '.join(unseen)}; every label of a bundle needs some"
        raise ValueError(message)
    return np.array([classes.index(name) if name in classes else len(classes) for name in labels], np.int64)


def save(model: ModelProto, path: Path) -> None:
    """Write the graph with deterministic bytes."""
    path.write_bytes(model.SerializeToString(deterministic=True))


def parity(head: FittedHead, bundle: Path, items: Sequence[Encoded]) -> float:
    """The largest difference between the graph in `bundle` and the estimators over `items`."""
    session = Head(bundle)
    expected = head.probabilities(items)
    worst = 0.0
    for item, row in zip(items, expected, strict=True):
        probabilities, evidence = session.run(item.vectors, item.facts, item.ledger)
        worst = max(worst, float(np.abs(probabilities - row).max()))
        if len(evidence):
            worst = max(worst, float(np.abs(evidence - head.line_evidence(item)).max()))
    return worst
