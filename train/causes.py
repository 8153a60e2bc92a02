"""The line inventory -> `causes.onnx` and `catalogue.json`: which finer cause the text of a line speaks for."""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Callable, Sequence

import numpy as np
from onnx import TensorProto, checker, compose, helper
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType
from sklearn.linear_model import LogisticRegression

from fsdpclassify.causes import INPUT, OUTPUT
from fsdpclassify.templating import template
from fsdpclassify.training.export import OPSET
from fsdpclassify.training.fit import NOTHING
from fsdpclassify.training.pooling import Array
from train.dataset import DATA
from train.inventory import Inventory, load
from train.simulate.plan import split_lines
from train.slots import render
from train.zeroed import zeroed

Encode = Callable[[list[str]], Array]
_RENDERS = 2
_NONE = "none"


def catalogue_bytes(inventory: Inventory) -> bytes:
    """What a bundle carries of the taxonomy."""
    causes = [
        {
            "id": c.id,
            "label": c.label,
            "title": c.title,
            "separate_by": c.separate_by,
            "look_alike": sorted({other.label for n in c.look_alike if (other := inventory.cause(n))}),
            "remedy": {
                "summary": c.remedy.summary,
                "steps": list(c.remedy.steps),
                "longer_timeout_helps": c.remedy.longer_timeout_helps,
                "verify": list(c.remedy.verify),
                "ops_request": c.remedy.ops_request,
            },
        }
        for c in inventory.causes
    ]
    boundaries = {label.id: label.boundary for label in inventory.labels}
    remedies = tomllib.loads((DATA / "remedies.toml").read_text(encoding="utf-8"))
    content = {"causes": causes, "boundaries": boundaries, "remedies": remedies}
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def wording_texts(inventory: Inventory, split: str | None = None, seed: int = 0) -> tuple[list[str], list[str]]:
    """Templates of every family (or those that the simulator keeps for `split`) and the label each speaks for."""
    texts, labels = [], []
    for family in inventory.families if split is None else split_lines(inventory, split).families():
        rng = random.Random(f"{seed}:{family.id}")
        speaks = family.label if family.role == "evidence" else None
        for text in family.texts:
            line = render(text, rng, {})
            texts.append(template(line))
            labels.append(speaks or NOTHING)
            if speaks and (nothing := zeroed(line)):
                texts.append(template(nothing))
                labels.append(NOTHING)
    return texts, labels


def rendered(inventory: Inventory, seed: int = 0) -> tuple[list[str], list[str]]:
    """Templates of every family's texts with the id of the cause they speak for, `none` for all other roles."""
    texts, causes = [], []
    for family in inventory.families:
        rng = random.Random(f"{seed}:{family.id}")
        name = family.cause if family.role == "evidence" and family.cause else _NONE
        for text in family.texts:
            for _ in range(_RENDERS):
                texts.append(template(render(text, rng, {})))
                causes.append(name)
    return texts, causes


def causes_graph(inventory: Inventory, encode: Encode) -> bytes:
    """Fit a multinomial regression on the inventory and export it with one column for each catalogue entry."""
    texts, names = rendered(inventory)
    model = LogisticRegression(C=20.0, max_iter=200, tol=1e-3)
    model.fit(encode(texts), names)
    return _exported(model, [c.id for c in inventory.causes])


def _exported(model: LogisticRegression, order: Sequence[str]) -> bytes:
    graph = compose.add_prefix(
        to_onnx(
            model,
            initial_types=[("x", FloatTensorType([None, model.n_features_in_]))],
            options={id(model): {"zipmap": False}},
            target_opset={"": OPSET, "ai.onnx.ml": 3},
        ),
        "c_",
    )
    known = [str(c) for c in model.classes_]
    # A cause without a line of its own gets the column of zeros behind the last class.
    index = np.array([known.index(c) if c in known else len(known) for c in order], np.int64)
    made = helper.make_node
    nodes = [
        made("Identity", [INPUT], ["c_x"]),
        *graph.graph.node,
        made("Pad", [graph.graph.output[1].name, "pads"], ["padded"]),
        made("Gather", ["padded", "index"], [OUTPUT], axis=1),
    ]
    built = helper.make_model(
        helper.make_graph(
            nodes,
            "fsdpclassify_causes",
            [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["n", int(model.n_features_in_)])],
            [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["n", len(order)])],
            [
                *graph.graph.initializer,
                helper.make_tensor("pads", TensorProto.INT64, [4], [0, 0, 0, 1]),
                helper.make_tensor("index", TensorProto.INT64, [len(order)], index),
            ],
        ),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", 3)],
        producer_name="fsdpclassify",
        ir_version=8,
    )
    checker.check_model(built)
    data: bytes = built.SerializeToString(deterministic=True)
    return data


def load_inventory() -> Inventory:
    """The inventory of the checkout."""
    return load()
