"""Static candidates as ONNX graphs: pools of integer rows, each summed over a line, made unit length and joined.

A pool sums the rows of the line's tokens, and, where it has buckets, those of its pairs of neighbouring tokens: a
pair's row is `vocabulary + (first * _FIRST + second * _SECOND) % buckets`. Rows are int8 with an integer
factor, so partial sums stay below 2**24 and are exact in float32 in any order: no other line and no padding can
change a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from train.encoders.distil import OPSET, Floats, quantise

_FIRST, _SECOND = 1_000_003, 7_919


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A table `[vocabulary + buckets, width]` of float32 before quantisation."""

    table: Floats
    buckets: int = 0

    @property
    def vocabulary(self) -> int:
        """How many rows belong to single tokens."""
        return len(self.table) - self.buckets


def extended(ids: Sequence[int], vocabulary: int, buckets: int) -> list[int]:
    """The rows that a line's tokens choose, those of pairs behind those of tokens."""
    if not buckets:
        return list(ids)
    return [*ids, *(vocabulary + (a * _FIRST + b * _SECOND) % buckets for a, b in pairwise(ids))]


def exact(pools: Sequence[Pool], tokens: Sequence[Sequence[int]]) -> Floats:
    """What the graph computes, from the tables before quantisation: `[len(tokens), width of all]`."""
    blocks = []
    for pool in pools:
        rows = [extended(ids, pool.vocabulary, pool.buckets) for ids in tokens]
        sums = np.stack([pool.table[row].sum(axis=0) for row in rows])
        blocks.append(sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-6))
    return (np.hstack(blocks) / np.sqrt(len(pools))).astype(np.float32)


def graph(pools: Sequence[Pool]) -> Any:  # noqa: ANN401  (onnx is untyped)
    """The ONNX model: `input_ids` and `attention_mask` `[n, t]` to `vectors` `[n, width of all]`."""
    from onnx import TensorProto, helper, numpy_helper

    nodes: list[Any] = []
    constants: dict[str, NDArray[Any]] = _shared_constants(len(pools))
    nodes.append(helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT))
    for number, pool in enumerate(pools):
        made, own = _pool_nodes(pool, f"p{number}_")
        nodes += made
        constants |= own
    nodes.append(helper.make_node("Concat", [f"p{n}_unit" for n in range(len(pools))], ["joined"], axis=1))
    nodes.append(helper.make_node("Mul", ["joined", "share"], ["vectors"]))
    ids = [helper.make_tensor_value_info(n, TensorProto.INT64, ["n", "t"]) for n in ("input_ids", "attention_mask")]
    width = sum(pool.table.shape[1] for pool in pools)
    out = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", width])
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    body = helper.make_graph(nodes, "line_encoder", ids, [out], tensors)
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def _shared_constants(pools: int) -> dict[str, NDArray[Any]]:
    return {
        "tiny": np.array(1e-6, np.float32),
        "share": np.array(1 / np.sqrt(pools), np.float32),
        "zero1": np.array([0], np.int64),
        "one1": np.array([1], np.int64),
        "two1": np.array([2], np.int64),
        "last1": np.array([-1], np.int64),
        "far1": np.array([2**31], np.int64),
        "first": np.array(_FIRST, np.int64),
        "second": np.array(_SECOND, np.int64),
    }


def _pool_nodes(pool: Pool, at: str) -> tuple[list[Any], dict[str, NDArray[Any]]]:
    """The nodes that end in `{at}unit` `[n, width]`."""
    from onnx import TensorProto, helper

    rows, factors = quantise(pool.table)
    constants: dict[str, NDArray[Any]] = {f"{at}rows": rows, f"{at}factors": factors[:, None]}
    nodes = []
    ids, mask = "input_ids", "mask"
    if pool.buckets:
        constants |= {
            f"{at}buckets": np.array(pool.buckets, np.int64),
            f"{at}base": np.array(pool.vocabulary, np.int64),
        }
        nodes += _pair_nodes(at)
        ids, mask = f"{at}ids", f"{at}mask"
    steps: list[tuple[str, list[str], str, dict[str, Any]]] = [
        ("Gather", [f"{at}rows", ids], "row8", {}),
        ("Cast", [f"{at}row8"], "row", {"to": TensorProto.FLOAT}),
        ("Gather", [f"{at}factors", ids], "factor8", {}),
        ("Cast", [f"{at}factor8"], "factor", {"to": TensorProto.FLOAT}),
        ("Unsqueeze", [mask, "two1"], "mask3", {}),
        ("Mul", [f"{at}factor", f"{at}mask3"], "weight", {}),
        ("Mul", [f"{at}row", f"{at}weight"], "weighted", {}),
        ("ReduceSum", [f"{at}weighted", "one1"], "sum", {"keepdims": 0}),
        ("ReduceL2", [f"{at}sum"], "length", {"axes": [1], "keepdims": 1}),
        ("Max", [f"{at}length", "tiny"], "divisor", {}),
        ("Div", [f"{at}sum", f"{at}divisor"], "unit", {}),
    ]
    nodes += [helper.make_node(op, inputs, [at + output], **more) for op, inputs, output, more in steps]
    return nodes, constants


def _pair_nodes(at: str) -> list[Any]:
    """The nodes that put the buckets of neighbouring tokens behind the tokens, and the same for the mask."""
    from onnx import helper

    steps: list[tuple[str, list[str], str, dict[str, Any]]] = [
        ("Slice", ["input_ids", "zero1", "last1", "one1"], "left", {}),
        ("Slice", ["input_ids", "one1", "far1", "one1"], "right", {}),
        ("Mul", [f"{at}left", "first"], "left_times", {}),
        ("Mul", [f"{at}right", "second"], "right_times", {}),
        ("Add", [f"{at}left_times", f"{at}right_times"], "hash", {}),
        ("Mod", [f"{at}hash", f"{at}buckets"], "bucket", {}),
        ("Add", [f"{at}bucket", f"{at}base"], "pair", {}),
        ("Concat", ["input_ids", f"{at}pair"], "ids", {"axis": 1}),
        # A pair counts where its second token does: padding only ever follows.
        ("Slice", ["mask", "one1", "far1", "one1"], "mask_right", {}),
        ("Concat", ["mask", f"{at}mask_right"], "mask", {"axis": 1}),
    ]
    return [helper.make_node(op, inputs, [at + output], **more) for op, inputs, output, more in steps]
