"""Heads refitted on a candidate's vectors, and their first labels on incidents that they were not fitted on.

Only `val`, `lab_val` and composed incidents are asked (those by heads blind to their author and line models blind to
their wording): the choice of an encoder must leave the test splits unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from fsdpclassify.training import recipe
from fsdpclassify.training.examples import Example
from fsdpclassify.training.fit import LABELS, NOTHING, Encoded, Wordings, encode_all, fit_lines, tempered
from fsdpclassify.training.remembered import RememberedLines
from train.baselines import macro_f1
from train.dataset import PUBLIC, WRITTEN, examples
from train.encoders.distil import Floats
from train.encoders.wordings import Lines
from train.material import _line_weight

Encode = Callable[[list[str]], Floats]
SETS = ("val", "lab_val", WRITTEN)
_LINE_C = 20.0
_DRAWS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """True classes `[n]` and probabilities `[n, classes]` on one set."""

    truth: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    classes: tuple[str, ...] = LABELS

    def first(self) -> NDArray[np.int64]:
        """The likeliest class of each."""
        return np.asarray(self.probabilities.argmax(axis=1), np.int64)

    def macro_f1(self) -> float:
        """The mean F1 over classes that occur."""
        return _f1(self.truth, self.first(), self.classes)

    def accuracy(self) -> float:
        """The share of right first labels."""
        return float((self.truth == self.first()).mean())

    def losses(self) -> NDArray[np.float64]:
        """The log loss of each."""
        told = self.probabilities[np.arange(len(self.truth)), self.truth]
        return -np.log(np.maximum(told, 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How much one candidate's answers differ from another's on the same incidents, with 95 % intervals."""

    f1: tuple[float, float, float]
    loss: tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The examples in which the package sees an incident, by split."""

    train: tuple[Example, ...]
    val: tuple[Example, ...]
    lab_val: tuple[Example, ...]
    real: tuple[Example, ...]
    written: tuple[Example, ...]

    @classmethod
    def read(cls) -> Sources:
        """From the cache of features, or from the rendered files."""
        real = (*_found(PUBLIC), *_found("lab_train"))
        return cls(
            train=_found("train"), val=_found("val"), lab_val=_found("lab_val"), real=real, written=_found(WRITTEN)
        )

    def texts(self) -> list[str]:
        """Every distinct template of every example, sorted."""
        parts = (self.train, self.val, self.lab_val, self.real, self.written)
        return sorted({text for part in parts for example in part for text in example.texts})


def _found(split: str) -> tuple[Example, ...]:
    return tuple(e for e in examples(split) if e.found)


def asked_lines(encode: Encode, learnt: Lines, asked: Lines) -> Answers:
    """What a regression on the vectors of `learnt` says of the wordings in `asked`, `nothing` being a class."""
    classes = (*LABELS, NOTHING)
    model = LogisticRegression(C=_LINE_C, max_iter=300)
    with threadpool_limits(limits=1):  # sums have one order, whatever the machine
        model.fit(encode(list(learnt.texts)), learnt.labels)
    scores = model.predict_proba(encode(list(asked.texts)))
    columns = [list(model.classes_).index(name) for name in classes]
    truth = np.array([classes.index(name) for name in asked.labels], np.int64)
    return Answers(truth=truth, probabilities=scores[:, columns], classes=classes)


def judged(encode: Encode, sources: Sources, learnt: Lines) -> dict[str, Answers]:
    """First labels on each of `SETS` by heads that are fitted on `encode`'s vectors as for a release."""
    data = _material(encode, sources, learnt)
    raw = recipe.out_of_fold(data).raw
    head = recipe.calibrated(data, recipe.fitted(data, data.real), raw, data.real).head
    known = {e.sha256 for e in sources.lab_val}
    parts = {
        "val": [i for i in data.validation if i.example.sha256 not in known],
        "lab_val": [i for i in data.validation if i.example.sha256 in known],
    }
    found = {name: _answers(items, head.probabilities(items)) for name, items in parts.items()}
    return {**found, WRITTEN: _by_author(data, raw, head.temperature)}


def _material(encode: Encode, sources: Sources, learnt: Lines) -> recipe.Material:
    """As `train.material`, on other vectors."""
    wordings = Wordings(texts=learnt.texts, vectors=encode(list(learnt.texts)), labels=learnt.labels)
    made = encode_all([*sources.train, *sources.written], encode)
    return recipe.Material(
        simulated=tuple(made),
        validation=tuple(encode_all([*sources.val, *sources.lab_val], encode)),
        real=tuple(encode_all(sources.real, encode)),
        wordings=wordings,
        lines=RememberedLines.of(fit_lines(made, [_line_weight(i) for i in made], wordings)),
    )


def _by_author(data: recipe.Material, raw: recipe.Raw, temperature: float) -> Answers:
    """Composed incidents by heads that are blind to their author and line models blind to their wording."""
    items = recipe.composed(data)
    return _answers(items, tempered(np.stack([raw[i.example.sha256] for i in items]), temperature))


def _answers(items: Sequence[Encoded], probabilities: NDArray[np.float64]) -> Answers:
    """Those that carry a label which their log shows."""
    keep = [n for n, i in enumerate(items) if i.example.label in LABELS and i.example.determinable != "no"]
    truth = np.array([LABELS.index(items[n].example.label) for n in keep], np.int64)
    return Answers(truth=truth, probabilities=tempered(probabilities[keep], 1.0))


def difference(base: Answers, other: Answers, seed: int = 0) -> Difference:
    """`other` minus `base`, and the middle 95 % of the same over incidents drawn with replacement."""
    rng = np.random.default_rng(seed)
    draws = rng.integers(0, len(base.truth), (_DRAWS, len(base.truth)))
    one, two = base.first(), other.first()
    f1 = [
        _f1(base.truth[d], two[d], base.classes) - _f1(base.truth[d], one[d], base.classes)
        for d in draws[: _DRAWS // 2]
    ]
    change = other.losses() - base.losses()
    return Difference(
        f1=(other.macro_f1() - base.macro_f1(), *_middle(np.asarray(f1))),
        loss=(float(change.mean()), *_middle(change[draws].mean(axis=1))),
    )


def _middle(values: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def _f1(truth: NDArray[np.int64], said: NDArray[np.int64], classes: Sequence[str]) -> float:
    return macro_f1([(classes[t], classes[s]) for t, s in zip(truth, said, strict=True)], classes)
