"""The graph that ships is the head that was fitted: same numbers, same order of labels, same bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from fsdpclassify.facts import LINE_FACTS
from fsdpclassify.head import HEAD_FILE, INPUTS, OUTPUTS, Head
from fsdpclassify.training.assemble import Provenance, carried_over, head_bytes, manifest_of
from fsdpclassify.training.examples import Example
from fsdpclassify.training.export import PARITY, head_graph, parity, save
from fsdpclassify.training.fit import LABELS, Encoded, FittedHead, encode_all, fit_incidents, fit_lines
from fsdpclassify.vector import LEDGER_FACTS

Make = Callable[..., Example]
Encode = Callable[[list[str]], NDArray[np.float32]]


@pytest.fixture(scope="module")
def head(encoded: list[Encoded]) -> FittedHead:
    weights = [1.0] * len(encoded)
    return replace(fit_incidents(fit_lines(encoded, weights), encoded, weights), temperature=1.7)


@pytest.fixture
def folder(head: FittedHead, encoded: list[Encoded], tmp_path: Path) -> Path:
    (tmp_path / HEAD_FILE).write_bytes(head_bytes(head, encoded[0].vectors.shape[1]))
    return tmp_path


def test_the_graph_agrees_with_the_estimators(
    head: FittedHead, folder: Path, encoded: list[Encoded], make_example: Make, encode: Encode
) -> None:
    (none,) = encode_all([make_example("none", "desync", (), ())], lambda texts: encode(["x"]))
    none = replace(none, vectors=np.zeros((0, encoded[0].vectors.shape[1]), np.float32))
    assert parity(head, folder, [*encoded, none]) <= PARITY


def test_parity_sees_another_head(head: FittedHead, folder: Path, encoded: list[Encoded]) -> None:
    assert parity(replace(head, temperature=1.0), folder, encoded) > PARITY
    assert parity(replace(head, labels=tuple(reversed(head.labels))), folder, encoded) > PARITY


def test_outputs_follow_the_order_of_the_labels_and_not_the_alphabet(
    head: FittedHead, folder: Path, encoded: list[Encoded]
) -> None:
    assert list(LABELS) != sorted(LABELS)
    exported = Head(folder)
    for item in encoded:
        if item.example.label in LABELS:
            probabilities, evidence = exported.run(item.vectors, item.facts, item.ledger)
            assert LABELS[int(probabilities.argmax())] == item.example.label
            assert LABELS[int(evidence[0].argmax())] == item.example.label
            assert probabilities.sum() == pytest.approx(1.0, abs=1e-5)


def test_the_temperature_lies_in_the_graph(head: FittedHead, encoded: list[Encoded], tmp_path: Path) -> None:
    item = encoded[0]
    tops = []
    for t in (0.5, 1.0, 3.0):
        save(head_graph(replace(head, temperature=t), item.vectors.shape[1], len(LEDGER_FACTS)), tmp_path / HEAD_FILE)
        tops.append(float(Head(tmp_path).run(item.vectors, item.facts, item.ledger)[0].max()))
    assert tops[0] > tops[1] > tops[2]


def test_the_same_head_gives_the_same_bytes(head: FittedHead, encoded: list[Encoded]) -> None:
    d = encoded[0].vectors.shape[1]
    weights = [1.0] * len(encoded)
    again = replace(fit_incidents(fit_lines(encoded, weights), encoded, weights), temperature=1.7)
    assert head_bytes(head, d) == head_bytes(again, d)


def test_inputs_and_outputs_are_those_of_the_contract(folder: Path) -> None:
    graph = onnx.load(folder / HEAD_FILE).graph

    def shapes(values: list[onnx.ValueInfoProto]) -> dict[str, list[int | str]]:
        return {v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in values}

    assert shapes(list(graph.input)) == {
        "lines": ["n", 8], "line_facts": ["n", len(LINE_FACTS)], "ledger": [len(LEDGER_FACTS)]
    }  # fmt: skip
    assert shapes(list(graph.output)) == {"probabilities": [len(LABELS)], "line_evidence": ["n", len(LABELS)]}
    assert tuple(v.name for v in graph.input) == INPUTS
    assert tuple(v.name for v in graph.output) == OUTPUTS


def test_a_label_for_which_no_line_speaks_has_evidence_zero(
    encoded: list[Encoded], make_example: Make, encode: Encode, tmp_path: Path
) -> None:
    silent = encode_all([make_example(f"s{i}", "silent", ("noise",), (False,)) for i in range(6)], encode)
    items, labels = [*encoded, *silent], ("silent", *LABELS)
    weights = [1.0] * len(items)
    head = fit_incidents(fit_lines(items, weights, labels=labels), items, weights)
    (tmp_path / HEAD_FILE).write_bytes(head_bytes(head, items[0].vectors.shape[1]))
    assert parity(head, tmp_path, items) <= PARITY
    _, evidence = Head(tmp_path).run(items[0].vectors, items[0].facts, items[0].ledger)
    assert evidence[:, 0].tolist() == [0.0] * len(evidence)
    assert evidence[0].argmax() == labels.index(items[0].example.label)


def test_a_label_that_nothing_carries_is_refused_by_name(head: FittedHead) -> None:
    with pytest.raises(ValueError, match="no training incident carries ours"):
        head_graph(replace(head, labels=(*head.labels, "ours")), 8, len(LEDGER_FACTS))


def test_a_manifest_lists_each_training_incident_once() -> None:
    found = manifest_of(
        Provenance(
            name="n", version="1", data_sha256="0" * 64, code_sha256="1" * 64,
            training=("b" * 64, "a" * 64, "b" * 64), metrics={},
        ),
        ("x", "y"), {"x": 1 / 3}, {"balanced": {"x": 0.5, "y": 0.5}},
    )  # fmt: skip
    assert found.training == ("a" * 64, "b" * 64)
    assert found.prior == {"x": 0.333333, "y": 0.0}
    assert found.outputs[HEAD_FILE] == OUTPUTS
    assert set(found.library_versions) >= {"numpy", "scikit-learn", "onnxruntime"}


def test_files_are_carried_over_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    assert carried_over(tmp_path, ("a",)) == {"a": b"1"}
    with pytest.raises(FileNotFoundError):
        carried_over(tmp_path, ("b",))
