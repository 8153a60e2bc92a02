from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsdpclassify.facts import LINE_FACTS
from fsdpclassify.training import recipe
from fsdpclassify.training.examples import Example
from fsdpclassify.training.fit import LABELS, Encoded, FittedHead, Wordings, fit_incidents, fit_lines
from fsdpclassify.vector import LEDGER_FACTS
from train import ablate

_WHO, _WHEN = LINE_FACTS.index("rank_not_waiting"), LINE_FACTS.index("before")


def _item(label: str, number: int, rng: np.random.Generator) -> Encoded:
    """An incident whose one line names the label, and whose ledger says nothing about it."""
    vector = np.zeros((1, len(LABELS)), np.float32)
    vector[0, LABELS.index(label)] = 1.0
    facts = np.zeros((1, len(LINE_FACTS)), np.float32)
    facts[0, [_WHO, _WHEN]] = 1.0
    ledger = rng.random(len(LEDGER_FACTS)).astype(np.float32)
    example = Example(
        id=f"{label}-{number}", label=label, alt_label=None, cause=None, determinable=None,
        repository=f"r/{number}", found=True, texts=(f"because {label} {number % 3}",), facts=(tuple(facts[0]),),
        ledger=tuple(ledger), decisive=(True,), sha256=f"{label}{number}",
    )  # fmt: skip
    return Encoded(example=example, vectors=vector, facts=facts, ledger=ledger)


@pytest.fixture(scope="module")
def items() -> list[Encoded]:
    rng = np.random.default_rng(0)
    return [_item(label, n, rng) for label in LABELS for n in range(8)]


@pytest.fixture(scope="module")
def head(items: list[Encoded]) -> FittedHead:
    weights = [1.0] * len(items)
    return fit_incidents(fit_lines(items, weights), items, weights)


def test_a_variant_takes_away_one_side_and_leaves_the_other(items: list[Encoded]) -> None:
    text, ledger = ablate.text_only(items[0]), ablate.ledger_only(items[0])
    assert not text.ledger.any()
    assert text.vectors is items[0].vectors
    assert (ledger.vectors.shape, ledger.facts.shape) == ((0, len(LABELS)), (0, len(LINE_FACTS)))
    assert ledger.example.texts == ()
    assert ledger.ledger is items[0].ledger


def test_every_set_of_the_material_is_changed(items: list[Encoded], head: FittedHead) -> None:
    empty = Wordings(texts=(), vectors=np.zeros((0, len(LABELS)), np.float32), labels=())
    lines = fit_lines(items[::2], [1.0] * len(items[::2]))
    data = recipe.Material(
        simulated=tuple(items[:2]), validation=tuple(items[2:3]), real=tuple(items[3:6]), wordings=empty, lines=lines
    )
    other = ablate.changed(data, ablate.text_only)
    assert not any(i.ledger.any() for i in (*other.simulated, *other.validation, *other.real))
    assert [len(part) for part in (other.simulated, other.validation, other.real)] == [2, 1, 3]
    assert other.lines.full is lines.full
    assert other.lines.folds is lines.folds


def test_scores_count_first_labels_and_average_the_loss(items: list[Encoded]) -> None:
    chosen = tuple(i for i in items if i.example.label in LABELS[:2])[::8]
    rows = np.full((2, len(LABELS)), 0.1)
    rows[:, 0] = 0.4
    found = ablate.Answered(items=chosen, probabilities=rows).score()
    assert (found.incidents, found.accuracy) == (2, 0.5)
    assert found.log_loss == pytest.approx(-(np.log(0.4) + np.log(0.1)) / 2)


def test_where_only_the_text_tells_its_columns_are_missed_most(items: list[Encoded], head: FittedHead) -> None:
    drops = ablate.importance(head, items)
    assert "before_by_other" in drops[0].column
    assert drops[0].log_loss > 0
    assert [d.log_loss for d in drops] == sorted((d.log_loss for d in drops), reverse=True)


def test_a_column_that_never_varies_is_left_out(items: list[Encoded], head: FittedHead) -> None:
    same = [replace(i, ledger=np.full_like(i.ledger, 0.5)) for i in items]
    assert not {d.column for d in ablate.importance(head, same)} & set(LEDGER_FACTS)


def test_without_real_incidents_composed_ones_still_calibrate_and_no_real_one_is_learnt(items: list[Encoded]) -> None:
    authors = [replace(i, example=replace(i.example, repository=f"written/{n % 2}")) for n, i in enumerate(items)]
    weights = [1.0] * len(authors)
    empty = Wordings(texts=(), vectors=np.zeros((0, len(LABELS)), np.float32), labels=())
    mislabelled = [replace(i, example=replace(i.example, label=LABELS[0])) for i in items]
    data = recipe.Material(
        simulated=tuple(authors), validation=tuple(items), real=tuple(mislabelled), wordings=empty,
        lines=fit_lines(authors, weights),
    )  # fmt: skip
    public, validation = ablate._without_real(data, {i.example.sha256 for i in items})
    assert validation.accuracy > 0.9
    assert public.accuracy < 0.5  # their labels are wrong, and were not believed
