"""What the model must beat: majority, 25 patterns, TF-IDF with logistic regression, the ledger by itself, and, where
the extra `encoder` is installed, the nearest symptom sentence by MiniLM.

Every baseline is fitted in the same folds as the model and abstains by the same kind of threshold, so that the
figures compare like with like. `fit` takes examples and texts, `predict` returns a conclusion for each example.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from fsdpclassify.decision import UNDETERMINED
from fsdpclassify.training.examples import Example
from fsdpclassify.training.fit import LABELS
from train.nearest import NearestSymptom, is_installed

NO_TIMEOUT = "no_timeout"
_ABSTAIN_BELOW = 0.4


class Baseline(Protocol):
    """A way to answer that is fitted on some examples and asked about others."""

    name: str

    def fit(self, examples: Sequence[Example]) -> None:
        """Learn from examples in which an incident was found."""

    def predict(self, example: Example) -> str:
        """A label, or `undetermined`."""

    def guess(self, example: Example) -> str:
        """The first label, sure or not; `undetermined` where there is none."""


class Majority:
    """Always the commonest cause."""

    name = "majority"

    def fit(self, examples: Sequence[Example]) -> None:
        """Count labels."""
        self._answer = Counter(e.label for e in examples if e.label in LABELS[:-1]).most_common(1)[0][0]

    def predict(self, example: Example) -> str:
        """The commonest."""
        return self._answer

    guess = predict


#: In order of trust; written from the message formats alone. The first that matches any line answers.
PATTERNS: tuple[tuple[str, str], ...] = (
    ("desync", r"Detected mismatch between collectives"),
    ("fabric_congestion", r"Got completion (?:from peer|with)"),
    ("fabric_congestion", r"No route to host|Network is unreachable"),
    ("fabric_congestion", r"failed ?: ?Connection timed out"),
    ("fabric_congestion", r"NET/OFI .*(?:error|Unable)"),
    ("fabric_congestion", r"IO_PAGE_FAULT|link (?:is )?down|Link down"),
    ("rank_failure", r"out of memory"),
    ("rank_failure", r"OOM[ -]?[Kk]ill|oom-kill|oom_kill"),
    ("rank_failure", r"DataLoader worker \(pid.*killed"),
    ("rank_failure", r"Xid|fallen off the bus|GPU Hang"),
    ("rank_failure", r"Connection closed by (?:remote )?peer|died unexpectedly|process has died"),
    ("rank_failure", r"NODE FAILURE|PREEMPTION|death signal"),
    ("rank_failure", r"(?:Value|Key|Type|Attribute|Index|Assertion|FileNotFound|Runtime)Error: (?!NCCL|\[|Socket)"),
    ("straggler", r"[Tt]okeniz"),
    ("straggler", r"[Ss]aving (?:model )?checkpoint|save_checkpoint|[Cc]onsolidat"),
    ("straggler", r"[Ee]valuat|[Vv]alidat"),
    ("straggler", r"torch\.compile|[Cc]ompiling|[Rr]ecompil"),
    ("straggler", r"[Bb]uilding .*ind(?:ex|ices)|[Pp]reprocess"),
    ("straggler", r"main_process_first|wait_for_everyone"),
    ("straggler", r"Map(?: \(num_proc|:)|examples/s"),
    ("offload_latency", r"swap(?!pable)|[Oo]ffload(?:ing|ed)? .*\d"),
    ("offload_latency", r"pinned|page-locked"),
    ("uneven_sharding", r"STAGE_PARAMS|imbalance|expert load"),
    ("desync", r"exhausted|run out of data|early stop|StopIteration"),
    ("fabric_congestion", r"NCCL WARN"),
)


class Rules:
    """Twenty-five patterns over the printed lines."""

    name = "rules"

    def fit(self, examples: Sequence[Example]) -> None:
        """Nothing is learnt."""
        self._compiled = [(label, re.compile(pattern)) for label, pattern in PATTERNS]

    def predict(self, example: Example) -> str:
        """The label of the first pattern that matches any line."""
        text = "\n".join(example.texts)
        return next((label for label, pattern in self._compiled if pattern.search(text)), UNDETERMINED)

    guess = predict


class TfIdf:
    """Word TF-IDF of the window and logistic regression."""

    name = "tf-idf + logistic regression"

    def fit(self, examples: Sequence[Example]) -> None:
        """Fit on examples with one of the labels."""
        known = [e for e in examples if e.label in LABELS]
        self._words = TfidfVectorizer(sublinear_tf=True, min_df=1, ngram_range=(1, 2), max_features=60_000)
        rows = self._words.fit_transform(["\n".join(e.texts) for e in known])
        self._model = LogisticRegression(C=10.0, max_iter=300, class_weight="balanced").fit(
            rows, [e.label for e in known]
        )

    def predict(self, example: Example) -> str:
        """The likeliest label, or abstention when it is unlikely or `other`."""
        return _concluded(self._model, self._rows(example))

    def guess(self, example: Example) -> str:
        """The likeliest label."""
        return str(self._model.predict(self._rows(example))[0])

    def _rows(self, example: Example) -> object:
        return self._words.transform(["\n".join(example.texts)])


class LedgerOnly:
    """The ledger vector and logistic regression: what structure says without any wording."""

    name = "ledger only"

    def fit(self, examples: Sequence[Example]) -> None:
        """Fit on examples with one of the labels."""
        known = [e for e in examples if e.label in LABELS]
        self._model = LogisticRegression(max_iter=400).fit(
            np.array([e.ledger for e in known]), [e.label for e in known]
        )

    def predict(self, example: Example) -> str:
        """As for the other baselines."""
        return _concluded(self._model, np.array([example.ledger]))

    def guess(self, example: Example) -> str:
        """The likeliest label."""
        return str(self._model.predict(np.array([example.ledger]))[0])


def _concluded(model: LogisticRegression, rows: object) -> str:
    scores = model.predict_proba(rows)[0]
    label = str(model.classes_[int(scores.argmax())])
    return UNDETERMINED if label == "other" or scores.max() < _ABSTAIN_BELOW else label


def macro_f1(pairs: Sequence[tuple[str, str]], labels: Sequence[str] = LABELS) -> float:
    """The mean F1 over those of `labels` that occur as truth; pairs are (truth, answer)."""
    scores = []
    for label in labels:
        hits = sum(truth == answer == label for truth, answer in pairs)
        said, meant = sum(answer == label for _, answer in pairs), sum(truth == label for truth, _ in pairs)
        if meant:
            scores.append(2 * hits / (said + meant))
    return sum(scores) / len(scores) if scores else 0.0


BASELINES: tuple[type[Baseline], ...] = (Majority, Rules, TfIdf, LedgerOnly)


def available() -> tuple[type[Baseline], ...]:
    """Those that need no extra, and the one by MiniLM if it can be asked."""
    return (*BASELINES, NearestSymptom) if is_installed() else BASELINES
