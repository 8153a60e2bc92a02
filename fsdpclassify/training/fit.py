"""Examples -> a fitted head: line-level evidence, pooled with the ledger into an incident-level classifier."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from fsdpclassify.decision import UNDETERMINED
from fsdpclassify.facts import LINE_FACTS
from fsdpclassify.training.examples import Example
from fsdpclassify.training.pooling import Array, pool

#: The labels that the project ships; a bundle may hold more.
LABELS = ("straggler", "offload_latency", "fabric_congestion", "uneven_sharding", "desync", "rank_failure", "other")
NOTHING = "nothing"
_NOTHING_PER_EXAMPLE = 16
_FOLDS = 4
LINE_C = 3.0
INCIDENT_C = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """An example with its line vectors `[n, d]`, facts `[n, k]` and ledger `[m]` as float32."""

    example: Example
    vectors: Array
    facts: Array
    ledger: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Wordings:
    """Single messages (templates) with the label they speak for or `nothing`, and their vectors `[n, d]`.

    They teach wording only; when and by whom a line is printed is drawn from the incidents.
    """

    texts: tuple[str, ...]
    vectors: Array
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedHead:
    """The two estimators, the order of the labels, and the temperature by which log-probabilities are divided."""

    line: LogisticRegression
    incident: LogisticRegression
    labels: tuple[str, ...] = LABELS
    temperature: float = 1.0

    def line_evidence(self, item: Encoded) -> Array:
        """`[n, labels]`: how much each line, on its own, speaks for each label."""
        return _evidence(self.line, item, self.labels)

    def pooled(self, item: Encoded) -> Array:
        """The incident classifier's input row for one example."""
        return pool(self.line_evidence(item), item.facts, item.ledger)

    def probabilities(self, items: Sequence[Encoded]) -> NDArray[np.float64]:
        """Calibrated `[len(items), labels]`."""
        raw = _aligned(self.incident, np.stack([self.pooled(i) for i in items]), self.labels)
        return tempered(raw, self.temperature)

    def unseen(self, lines: FittedLines, items: Sequence[Encoded]) -> NDArray[np.float64]:
        """`[len(items), labels]`, uncalibrated, each line judged by a model that never saw its wording."""
        rows = np.stack([pool(lines.unseen(i), i.facts, i.ledger) for i in items])
        return _aligned(self.incident, rows, self.labels)


def tempered(probabilities: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """Softmax of log-probabilities over a temperature; rows sum to 1."""
    logits = np.log(np.maximum(probabilities, 1e-9)) / temperature
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    normalised: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return normalised


def _aligned(model: LogisticRegression, rows: NDArray[np.float32], classes: Sequence[str]) -> NDArray[np.float64]:
    """`predict_proba` with one column for each of `classes`, zeros for those the model never saw."""
    out = np.zeros((len(rows), len(classes)))
    scores = model.predict_proba(rows)
    for column, name in enumerate(model.classes_):
        out[:, classes.index(name)] = scores[:, column]
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedLines:
    """The line classifier, and for each fold of wordings one that never saw that fold."""

    full: LogisticRegression
    folds: tuple[LogisticRegression, ...]
    labels: tuple[str, ...] = LABELS

    def unseen(self, item: Encoded) -> Array:
        """Line evidence in which every line is judged by a model that never saw its wording.

        Wordings met in training would look more telling to the incident level than new ones ever will. A label
        with one wording has no such model: its share comes from the full one, or it could never be learnt.
        """
        out = np.zeros((len(item.example.texts), len(self.labels)), np.float32)
        folds = _folds(item.example.texts)
        for number, model in enumerate(self.folds):
            if (mine := folds == number).any():
                out[mine] = _evidence(model, item, self.labels)[mine]
                absent = [i for i, name in enumerate(self.labels) if name not in model.classes_]
                if absent:
                    share = _evidence(self.full, item, self.labels)[mine][:, absent]
                    out[mine] *= 1.0 - share.sum(axis=1, keepdims=True)
                    out[np.ix_(mine, absent)] = share
        return out


def fit_lines(
    items: Sequence[Encoded],
    weights: Sequence[float],
    wordings: Wordings | None = None,
    *,
    labels: tuple[str, ...] = LABELS,
    seed: int = 0,
    c: float = LINE_C,
) -> FittedLines:
    """Fit the line level: decisive lines speak for their incident's label, all others for nothing."""
    usable = [(i, w) for i, w in zip(items, weights, strict=True) if i.example.found]
    rows = _line_rows(usable, labels, seed)
    if wordings is not None and len(wordings.labels):
        rows = rows.joined(wordings, np.random.default_rng(seed + 1))
    full = rows.fitted(c, None, None)
    return FittedLines(full=full, folds=tuple(rows.fitted(c, fold, full) for fold in range(_FOLDS)), labels=labels)


def fit_incidents(
    lines: FittedLines, items: Sequence[Encoded], weights: Sequence[float], *, c: float = INCIDENT_C
) -> FittedHead:
    """Fit the incident level on pooled line evidence and ledgers; `weights` say how much each incident counts.

    Incidents labelled `undetermined`, and those whose log does not show their label, teach that without
    evidence every label keeps its prior: they enter once for each label, weighted by the prior of the others.
    """
    usable = [(i, w) for i, w in zip(items, weights, strict=True) if i.example.found]
    pooled = np.stack([pool(lines.unseen(i), i.facts, i.ledger) for i, _ in usable])
    x, y, w = _with_prior(pooled, [_shown_label(i.example) for i, _ in usable], [w for _, w in usable], lines.labels)
    incident = LogisticRegression(C=c, max_iter=400)
    _fit(incident, x, y, w)
    return FittedHead(line=lines.full, incident=incident, labels=lines.labels)


def _shown_label(example: Example) -> str:
    """What the log shows: a label that only its author knows would teach to guess where nothing is to be seen."""
    return UNDETERMINED if example.determinable == "no" else example.label


def _fit(model: LogisticRegression, x: NDArray[np.float32], y: Sequence[str], weights: NDArray[Any]) -> None:
    """Fit on one thread: such small matrices gain nothing from more, and sums have one order on every machine."""
    with threadpool_limits(limits=1):
        model.fit(x, y, sample_weight=weights)


def _folds(texts: Sequence[str]) -> NDArray[np.int64]:
    """The fold of each template, the same wherever it occurs."""
    return np.array([zlib.crc32(t.encode()) % _FOLDS for t in texts], np.int64)


def _evidence(model: LogisticRegression, item: Encoded, labels: tuple[str, ...]) -> Array:
    if not len(item.vectors):
        return np.zeros((0, len(labels)), np.float32)
    scores = _aligned(model, np.hstack([item.vectors, item.facts]), (*labels, NOTHING))
    return scores[:, : len(labels)].astype(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Rows of the line level: inputs `[n, d]` and `[n, k]`, names of what they speak for, weights, templates."""

    vectors: Array
    facts: Array
    names: tuple[str, ...]
    weights: tuple[float, ...]
    texts: tuple[str, ...]

    def joined(self, wordings: Wordings, rng: np.random.Generator) -> _Rows:
        """These rows and the wordings, whose facts are drawn from rows with the same name."""
        return _Rows(
            vectors=np.vstack([self.vectors, wordings.vectors]),
            facts=np.vstack([self.facts, _drawn_facts(self.facts, self.names, wordings.labels, rng)]),
            names=(*self.names, *wordings.labels),
            weights=(*self.weights, *[1.0] * len(wordings.labels)),
            texts=(*self.texts, *wordings.texts),
        )

    def fitted(self, c: float, without: int | None, near: LogisticRegression | None) -> LogisticRegression:
        """The line classifier on all rows, or on those whose wording is not in fold `without`, begun at `near`."""
        keep = np.ones(len(self.texts), bool) if without is None else _folds(self.texts) != without
        names = np.asarray(self.names)[keep]
        # A label with a single wording is absent from the fold that leaves this wording out.
        warm = near is not None and set(near.classes_) == set(names)
        model = LogisticRegression(C=c, max_iter=200, tol=1e-3, warm_start=warm)
        if near is not None and warm:
            model.coef_, model.intercept_, model.classes_ = near.coef_.copy(), near.intercept_.copy(), near.classes_
        x = np.hstack([self.vectors, self.facts]).astype(np.float32)
        _fit(model, x[keep], names, np.asarray(self.weights, np.float32)[keep])
        return model


def _line_rows(usable: Sequence[tuple[Encoded, float]], labels: tuple[str, ...], seed: int) -> _Rows:
    """Decisive lines with their incident's label, and some of the others as `nothing`."""
    vectors: list[Array] = []
    facts: list[Array] = []
    names: list[str] = []
    weights: list[float] = []
    texts: list[str] = []
    for item, weight in usable:
        flags = np.asarray(item.example.decisive, bool)
        label = item.example.label if item.example.label in labels else NOTHING
        silent = np.flatnonzero(~flags)
        # Each incident draws by its own hash: another incident more or less changes no draw.
        rng = np.random.default_rng(zlib.crc32(item.example.sha256.encode()) + seed)
        picked = rng.choice(silent, min(len(silent), _NOTHING_PER_EXAMPLE), replace=False) if len(silent) else silent
        for rows, name in ((np.flatnonzero(flags), label), (picked, NOTHING)):
            vectors.append(item.vectors[rows])
            facts.append(item.facts[rows])
            names += [name] * len(rows)
            weights += [weight] * len(rows)
            texts += [item.example.texts[r] for r in rows]
    return _Rows(
        vectors=np.vstack(vectors),
        facts=np.vstack(facts),
        names=tuple(names),
        weights=tuple(weights),
        texts=tuple(texts),
    )


def _drawn_facts(facts: Array, names: Sequence[str], wanted: Sequence[str], rng: np.random.Generator) -> Array:
    """Facts for lines without an incident: those of a random line with the same label, else of any line."""
    pools = {name: np.flatnonzero(np.asarray(names) == name) for name in set(wanted)}
    every = np.arange(len(names))
    return facts[[int(rng.choice(pools[name] if len(pools[name]) else every)) for name in wanted]]


def _with_prior(
    rows: NDArray[np.float32], given: Sequence[str], weights: Sequence[float], labels: tuple[str, ...]
) -> tuple[NDArray[np.float32], list[str], NDArray[np.float64]]:
    known = [name for name in given if name in labels]
    prior = {name: known.count(name) / max(len(known), 1) for name in labels}
    x, y, w = [], [], []
    for row, label, weight in zip(rows, given, weights, strict=True):
        parts = [(label, 1.0)] if label in labels else [(n, p) for n, p in prior.items() if p > 0]
        for name, share in parts:
            x.append(row)
            y.append(name)
            w.append(weight * share)
    return np.stack(x), y, np.asarray(w)


def encode_all(examples: Sequence[Example], encode: Callable[[list[str]], Array]) -> list[Encoded]:
    """Vectors for every line of every example; `encode` maps a list of texts to `[n, d]`."""
    texts = sorted({t for e in examples for t in e.texts})
    table = dict(zip(texts, encode(texts), strict=True)) if texts else {}
    width = len(next(iter(table.values()))) if table else 0
    return [
        Encoded(
            example=e,
            vectors=np.array([table[t] for t in e.texts], np.float32).reshape(len(e.texts), width),
            facts=np.array(e.facts, np.float32).reshape(len(e.texts), len(LINE_FACTS)),
            ledger=np.array(e.ledger, np.float32),
        )
        for e in examples
    ]
