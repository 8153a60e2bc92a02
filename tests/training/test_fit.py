from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from fsdpclassify.facts import LINE_FACTS
from fsdpclassify.training.examples import Example
from fsdpclassify.training.fit import LABELS, NOTHING, Encoded, Wordings, encode_all, fit_incidents, fit_lines
from fsdpclassify.vector import LEDGER_FACTS

Make = Callable[..., Example]
Encode = Callable[[list[str]], NDArray[np.float32]]


def test_every_line_gets_its_own_vector(make_example: Make, encode: Encode) -> None:
    one, two = encode_all([make_example("a", "desync", ("x", "y")), make_example("b", "desync", ("y",))], encode)
    assert one.vectors[1].tolist() == two.vectors[0].tolist() == encode(["y"])[0].tolist()
    assert one.vectors.dtype == one.facts.dtype == one.ledger.dtype == np.float32


def test_an_example_without_lines_keeps_the_width(make_example: Make, encode: Encode) -> None:
    one, none = encode_all([make_example("a", "desync"), make_example("b", "desync", (), ())], encode)
    assert none.vectors.shape == (0, one.vectors.shape[1])
    assert encode_all([], encode) == []


def test_a_decisive_line_speaks_for_its_label_and_noise_for_nothing(encoded: list[Encoded]) -> None:
    lines = fit_lines(encoded, [1.0] * len(encoded))
    head = fit_incidents(lines, encoded, [1.0] * len(encoded))
    for item in encoded:
        if item.example.label in LABELS:
            evidence = head.line_evidence(item)
            assert LABELS[int(evidence[0].argmax())] == item.example.label
            assert evidence[2].sum() < 0.5
    assert set(head.line.classes_) == {*LABELS, NOTHING}


BLANK = {"ledger": (0.0,) * len(LEDGER_FACTS)}


def _plain(make_example: Make, label: str, text: str) -> Example:
    facts = (tuple(float(name in ("before", "rank_unknown")) for name in LINE_FACTS),) * 2
    return make_example(text, label, (text, "noise"), (True, False), facts=facts, **BLANK)


def test_a_line_is_judged_by_a_model_that_never_saw_its_wording(make_example: Make, encode: Encode) -> None:
    items = encode_all([_plain(make_example, label, f"{label} {i}") for label in LABELS[:3] for i in range(4)], encode)
    lines = fit_lines(items, [1.0] * len(items), labels=LABELS[:3])
    head = fit_incidents(lines, items, [1.0] * len(items))
    for item in items:
        column = LABELS.index(item.example.label)
        assert head.line_evidence(item)[0, column] > lines.unseen(item)[0, column]


def test_a_label_with_a_single_wording_is_learnt_by_this_wording(make_example: Make, encode: Encode) -> None:
    labels = (*LABELS[:3], "quota")
    known = [_plain(make_example, label, f"{label} {i}") for label in LABELS[:3] for i in range(4)]
    items = encode_all([*known, *[_plain(make_example, "quota", "the quota is spent")] * 5], encode)
    lines = fit_lines(items, [1.0] * len(items), labels=labels)
    row = lines.unseen(items[-1])[0]
    assert labels[int(row.argmax())] == "quota"
    assert row.sum() <= 1.0 + 1e-6
    head = fit_incidents(lines, items, [1.0] * len(items))
    with_words, without = encode_all(
        [_plain(make_example, "quota", "the quota is spent"), _plain(make_example, "quota", "noise")], encode
    )
    told, silent = head.probabilities([with_words, without])
    assert labels[int(told.argmax())] == "quota"
    assert told[-1] > silent[-1] + 0.2


def test_the_same_examples_give_the_same_head(encoded: list[Encoded]) -> None:
    weights = [1.0] * len(encoded)
    one, two = (fit_incidents(fit_lines(encoded, weights), encoded, weights) for _ in range(2))
    assert one.probabilities(encoded).tolist() == two.probabilities(encoded).tolist()


def test_weights_move_the_head(encoded: list[Encoded]) -> None:
    lines = fit_lines(encoded, [1.0] * len(encoded))
    heavy = [50.0 if i.example.label == "desync" else 1.0 for i in encoded]
    column = LABELS.index("desync")
    plain, moved = (
        fit_incidents(lines, encoded, w).probabilities(encoded)[:, column] for w in ([1.0] * len(encoded), heavy)
    )
    assert moved.mean() > plain.mean()


def test_undetermined_incidents_teach_the_prior_of_the_others(make_example: Make, encode: Encode) -> None:
    ledger = (0.0,) * len(LEDGER_FACTS)
    labels = ["desync"] * 6 + ["straggler"] * 2
    named = [make_example(f"n{i}", label, (f"because {label} {i}",), ledger=ledger) for i, label in enumerate(labels)]
    blank = [make_example(f"u{i}", "undetermined", (), (), ledger=ledger) for i in range(40)]
    items = encode_all([*named, *blank], encode)
    lines = fit_lines(items, [1.0] * len(items), labels=("straggler", "desync"))
    head = fit_incidents(lines, items, [1.0] * len(items))
    assert head.probabilities(items[-1:])[0] == pytest.approx([0.25, 0.75], abs=0.05)


def test_incidents_that_were_not_found_teach_nothing(
    encoded: list[Encoded], make_example: Make, encode: Encode
) -> None:
    (lost,) = encode_all([make_example("lost", "ours", found=False)], encode)
    weights = [1.0] * len(encoded)
    one = fit_incidents(fit_lines(encoded, weights), encoded, weights)
    two = fit_incidents(fit_lines([*encoded, lost], [*weights, 9.0]), [*encoded, lost], [*weights, 9.0])
    assert one.probabilities(encoded).tolist() == two.probabilities(encoded).tolist()


def test_wordings_teach_lines_that_no_incident_holds(
    encoded: list[Encoded], encode: Encode, make_example: Make
) -> None:
    text = "a message from the inventory"
    wordings = Wordings(texts=(text,) * 12, vectors=encode([text] * 12), labels=("desync",) * 12)
    (item,) = encode_all([make_example("new", "desync", (text,))], encode)
    weights = [1.0] * len(encoded)
    column = LABELS.index("desync")
    plain, taught = (
        fit_incidents(fit_lines(encoded, weights, w), encoded, weights).line_evidence(item)[0, column]
        for w in (None, wordings)
    )
    assert taught > max(plain, 0.5)


def test_labels_of_a_user_come_after_those_shipped(encoded: list[Encoded], make_example: Make, encode: Encode) -> None:
    own = encode_all([make_example(f"own{i}", "quota", ("the quota is spent",)) for i in range(6)], encode)
    items, labels = [*encoded, *own], (*LABELS, "quota")
    lines = fit_lines(items, [1.0] * len(items), labels=labels)
    head = fit_incidents(lines, items, [1.0] * len(items))
    assert head.labels == labels
    assert labels[int(head.probabilities(own[:1])[0].argmax())] == "quota"


def test_rows_sum_to_one(encoded: list[Encoded]) -> None:
    head = fit_incidents(fit_lines(encoded, [1.0] * len(encoded)), encoded, [1.0] * len(encoded))
    assert head.probabilities(encoded).sum(axis=1) == pytest.approx(np.ones(len(encoded)))
