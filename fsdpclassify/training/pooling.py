"""Line evidence [n, e] and line facts [n, k] -> one pooled row, in numpy for fitting and as ONNX nodes for the graph.

Evidence is pooled apart by who printed the line and when: the same words mean one thing on the rank that
did not come and another on a rank that waits, or after the timeout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

from fsdpclassify.facts import LINE_FACTS

Array = NDArray[np.float32]

#: Each mask is a product of facts: (facts summed for the time) x (facts summed for the printer).
MASKS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("before_by_other", ("before", "during"), ("rank_not_waiting",)),
    ("before_by_unknown", ("before", "during"), ("rank_unknown",)),
    ("before_by_waiting", ("before", "during"), ("rank_waiting",)),
    ("before_by_gone", ("before", "during"), ("rank_failed_or_missing",)),
    ("after_by_other", ("after",), ("rank_not_waiting",)),
    ("after_by_unknown", ("after",), ("rank_unknown",)),
    ("after_by_waiting", ("after",), ("rank_waiting",)),
)


def mask_matrix() -> tuple[Array, Array]:
    """Two 0/1 matrices [k, masks]: facts @ time gives when, facts @ who gives by whom."""
    k = len(LINE_FACTS)
    time, who = np.zeros((k, len(MASKS)), np.float32), np.zeros((k, len(MASKS)), np.float32)
    for column, (_, times, printers) in enumerate(MASKS):
        for name in times:
            time[LINE_FACTS.index(name), column] = 1.0
        for name in printers:
            who[LINE_FACTS.index(name), column] = 1.0
    return time, who


def pool(evidence: Array, facts: Array, ledger: Array) -> Array:
    """Maxima and squashed sums of each evidence column under each mask, then the ledger: [masks * e * 2 + m]."""
    time, who = mask_matrix()
    masks = (facts @ time) * (facts @ who)
    weighted = evidence[:, None, :] * masks[:, :, None]
    weighted = np.concatenate([weighted, np.zeros((1, *weighted.shape[1:]), np.float32)])
    top = weighted.max(axis=0).ravel()
    total = weighted.sum(axis=0).ravel()
    return np.concatenate([top, total / (1.0 + total), ledger]).astype(np.float32)


def nodes(evidence: str, facts: str, ledger: str, out: str, classes: int) -> tuple[list[NodeProto], list[TensorProto]]:
    """The same as graph nodes: tensors `evidence [n, e]`, `facts [n, k]`, `ledger [m]` -> `out [1, p]`."""
    time, who = mask_matrix()
    masks = len(MASKS)
    tensors: dict[str, NDArray[Any]] = {
        "pool_time": time,
        "pool_who": who,
        "pool_zero": np.zeros((1, masks, classes), np.float32),
        "pool_one": np.ones((1,), np.float32),
        "pool_axis0": np.array([0], np.int64),
        "pool_axis1": np.array([1], np.int64),
        "pool_axis2": np.array([2], np.int64),
        "pool_flat": np.array([1, masks * classes], np.int64),
        "pool_row": np.array([1, -1], np.int64),
    }
    made = helper.make_node
    graph = [
        made("MatMul", [facts, "pool_time"], ["pool_when"]),
        made("MatMul", [facts, "pool_who"], ["pool_whom"]),
        made("Mul", ["pool_when", "pool_whom"], ["pool_masks"]),
        made("Unsqueeze", ["pool_masks", "pool_axis2"], ["pool_masks3"]),
        made("Unsqueeze", [evidence, "pool_axis1"], ["pool_evidence3"]),
        made("Mul", ["pool_masks3", "pool_evidence3"], ["pool_weighted"]),
        made("Concat", ["pool_weighted", "pool_zero"], ["pool_padded"], axis=0),
        made("ReduceMax", ["pool_padded"], ["pool_top3"], axes=[0], keepdims=1),
        made("ReduceSum", ["pool_padded", "pool_axis0"], ["pool_total3"], keepdims=1),
        made("Reshape", ["pool_top3", "pool_flat"], ["pool_top"]),
        made("Reshape", ["pool_total3", "pool_flat"], ["pool_total"]),
        made("Add", ["pool_total", "pool_one"], ["pool_total1"]),
        made("Div", ["pool_total", "pool_total1"], ["pool_squashed"]),
        made("Reshape", [ledger, "pool_row"], ["pool_ledger"]),
        made("Concat", ["pool_top", "pool_squashed", "pool_ledger"], [out], axis=1),
    ]
    return graph, [numpy_helper.from_array(value, name) for name, value in tensors.items()]


def names(classes: Sequence[str], ledger: Sequence[str]) -> list[str]:
    """A name for each pooled column, for reports."""
    pairs = [f"{mask[0]}:{c}" for mask in MASKS for c in classes]
    return [f"max {p}" for p in pairs] + [f"sum {p}" for p in pairs] + list(ledger)
