"""A user's own wordings join the cause graph: a bundle that was taught them must also be able to read them.

A verdict needs a line that reads like some cause of its label, and shipped causes know nothing of a house's own
programs. For each label whose incidents taught wordings, the catalogue gets an entry `own_<label>` and the graph a
column: the shipped columns are scaled by what the own ones leave over, so that no row sums to more than 1.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, checker, compose, helper, numpy_helper
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from fsdpclassify.causes import INPUT, OUTPUT
from fsdpclassify.training.examples import Example
from fsdpclassify.training.export import OPSET
from fsdpclassify.training.novel import CLEAR
from fsdpclassify.training.pooling import Array

_PREFIX, _SHIPPED = "own_", "shipped_scores"
_NONE = "none"
#: As for the shipped columns: wordings are few and to be told apart sharply.
_C = 20.0
#: For how many rows the wordings of one label count together.
_ROWS = 40.0

_NO_REMEDY: dict[str, Any] = {
    "summary": None,
    "steps": [],
    "longer_timeout_helps": False,
    "verify": [],
    "ops_request": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Taught:
    """Wordings that speak for a label in a user's own incidents, and those that speak for none: what else the same
    incidents hold (`daily`), and what other incidents do.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    daily: tuple[str, ...]
    others: tuple[str, ...]


def taught(own: Sequence[Example], others: Sequence[str]) -> Taught:
    """The decisive lines of `own` that speak for one label clearly enough, against every other line."""
    speaks: dict[str, Counter[str]] = {}
    for example in own:
        for text, decisive in zip(example.texts, example.decisive, strict=True):
            if decisive:
                speaks.setdefault(text, Counter())[example.label] += 1
    first = {text: labels.most_common(1)[0] for text, labels in sorted(speaks.items())}
    clear = {text: label for text, (label, count) in first.items() if count >= CLEAR * speaks[text].total()}
    daily = {text for example in own for text in example.texts} - speaks.keys()
    return Taught(
        texts=tuple(clear),
        labels=tuple(clear.values()),
        daily=tuple(sorted(daily)),
        others=tuple(sorted(set(others) - daily - speaks.keys())),
    )


def extended(
    graph: bytes, catalogue: bytes, lines: Taught, encode: Callable[[list[str]], Array]
) -> tuple[bytes, bytes]:
    """`causes.onnx` and `catalogue.json` with the own columns in place of those of an earlier run, if any."""
    shipped, content = _without_own(onnx.load_from_string(graph)), json.loads(catalogue)
    content["causes"] = [c for c in content["causes"] if not c["id"].startswith(_PREFIX)]
    if lines.texts and (lines.daily or lines.others):
        model = _fitted(lines, encode)
        labels = [str(name) for name in model.classes_ if name != _NONE]
        shipped = _joined(shipped, model, labels)
        content["causes"] += [_entry(label, content) for label in labels]
    checker.check_model(shipped)
    return shipped.SerializeToString(deterministic=True), _as_json(content)


def _fitted(lines: Taught, encode: Callable[[list[str]], Array]) -> LogisticRegression:
    """Every label counts alike; so do, against all of them, a house's daily lines and those of other houses."""
    silent = (*lines.daily, *lines.others)
    names = [*lines.labels, *[_NONE] * len(silent)]
    sizes, labels = Counter(lines.labels), len(set(lines.labels))
    weights = [_ROWS / sizes[name] for name in lines.labels]
    weights += [_ROWS * labels / len(part) for part in (lines.daily, lines.others) for _ in part]
    model = LogisticRegression(C=_C, max_iter=200, tol=1e-3)
    with threadpool_limits(limits=1):
        model.fit(encode([*lines.texts, *silent]), names, sample_weight=weights)
    return model


def _joined(shipped: ModelProto, model: LogisticRegression, labels: Sequence[str]) -> ModelProto:
    """Shipped scores scaled by what the own columns leave over, then these: by how much a share passes one half,
    doubled. With a few wordings learnt, any sentence of the same house gets some share; only theirs get most of it.
    """
    width = next(iter(shipped.graph.input)).type.tensor_type.shape.dim[1].dim_value
    columns = next(iter(shipped.graph.output)).type.tensor_type.shape.dim[1].dim_value
    own = compose.add_prefix(
        to_onnx(
            model,
            initial_types=[("x", FloatTensorType([None, width]))],
            options={id(model): {"zipmap": False}},
            target_opset={"": OPSET, "ai.onnx.ml": 3},
        ),
        _PREFIX,
    )
    classes = [str(name) for name in model.classes_]
    order = np.array([classes.index(name) for name in labels], np.int64)
    _rename_output(shipped, OUTPUT, _SHIPPED)
    made = helper.make_node
    shipped.graph.node.extend(
        [
            made("Identity", [INPUT], [f"{_PREFIX}x"]),
            *own.graph.node,
            made("Gather", [own.graph.output[1].name, f"{_PREFIX}order"], [f"{_PREFIX}shares"], axis=1),
            made("Mul", [f"{_PREFIX}shares", f"{_PREFIX}two"], [f"{_PREFIX}twice"]),
            made("Sub", [f"{_PREFIX}twice", f"{_PREFIX}one"], [f"{_PREFIX}above"]),
            made("Relu", [f"{_PREFIX}above"], [f"{_PREFIX}columns"]),
            made("ReduceSum", [f"{_PREFIX}columns", f"{_PREFIX}axis"], [f"{_PREFIX}sum"], keepdims=1),
            made("Sub", [f"{_PREFIX}one", f"{_PREFIX}sum"], [f"{_PREFIX}rest"]),
            made("Mul", [_SHIPPED, f"{_PREFIX}rest"], [f"{_PREFIX}scaled"]),
            made("Concat", [f"{_PREFIX}scaled", f"{_PREFIX}columns"], [OUTPUT], axis=1),
        ]
    )
    tensors: dict[str, NDArray[Any]] = {
        f"{_PREFIX}order": order,
        f"{_PREFIX}axis": np.array([1], np.int64),
        f"{_PREFIX}one": np.array([1.0], np.float32),
        f"{_PREFIX}two": np.array([2.0], np.float32),
    }
    shipped.graph.initializer.extend(own.graph.initializer)
    shipped.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in tensors.items())
    _set_output(shipped, columns + len(labels))
    return shipped


def _without_own(model: ModelProto) -> ModelProto:
    """The graph as it was shipped."""
    if not any(_SHIPPED in node.output for node in model.graph.node):
        return model
    kept_nodes = [n for n in model.graph.node if not any(o.startswith(_PREFIX) or o == OUTPUT for o in n.output)]
    kept_tensors = [t for t in model.graph.initializer if not t.name.startswith(_PREFIX)]
    dropped = [t for t in model.graph.initializer if t.name == f"{_PREFIX}order"]
    columns = model.graph.output[0].type.tensor_type.shape.dim[1].dim_value - dropped[0].dims[0]
    for field, kept in ((model.graph.node, kept_nodes), (model.graph.initializer, kept_tensors)):
        copies: list[Any] = [type(item).FromString(item.SerializeToString()) for item in kept]
        del field[:]
        field.extend(copies)
    _rename_output(model, _SHIPPED, OUTPUT)
    _set_output(model, columns)
    return model


def _rename_output(model: ModelProto, old: str, new: str) -> None:
    for node in model.graph.node:
        node.output[:] = [new if name == old else name for name in node.output]


def _set_output(model: ModelProto, columns: int) -> None:
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["n", columns]))


def _entry(label: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """What the catalogue says of a house's own wordings: the general remedy of the label, if it has one."""
    return {
        "id": f"{_PREFIX}{label}",
        "label": label,
        "title": f"A line of your own incidents labelled {label}",
        "separate_by": content["boundaries"].get(label, ""),
        "look_alike": [],
        "remedy": content["remedies"].get(label, _NO_REMEDY),
    }


def _as_json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
