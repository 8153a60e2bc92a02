"""`python -m train ablate`: what the text, the ledger and the real incidents each bring, and which columns carry it.

Each variant is fitted and calibrated like a release. `public` is answered out of fold (by source repository), `val`
by the head fitted on everything the variant may see. The line level is the release's own in every variant: text that
is left out never reaches the incident level. Answers are first labels, so no threshold enters.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fsdpclassify.evaluation import Count
from fsdpclassify.training import pooling, recipe
from fsdpclassify.training.fit import LABELS, Encoded, FittedHead, tempered
from fsdpclassify.training.remembered import RememberedLines
from fsdpclassify.vector import LEDGER_FACTS
from train.dataset import PUBLIC, examples
from train.material import material

STRONGEST = 20
_REPEATS = 5
Change = Callable[[Encoded], Encoded]
Probabilities = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """First labels of one variant on one set of incidents that carry a label of the model."""

    incidents: int
    accuracy: float
    log_loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """How much worse log loss and accuracy get when one column is shuffled among the incidents."""

    column: str
    log_loss: float
    accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Labelled incidents with the probabilities `[len(items), labels]` that some head gave them."""

    items: tuple[Encoded, ...]
    probabilities: Probabilities

    def score(self) -> Score:
        """Accuracy of first labels and mean log loss."""
        truth = np.array([LABELS.index(i.example.label) for i in self.items])
        return _score(self.probabilities, truth)


def main(argv: list[str]) -> int:
    """Print one row a variant and the strongest columns of the whole."""
    parser = argparse.ArgumentParser(prog="python -m train ablate", description=__doc__)
    parser.add_argument("--no-importance", action="store_true", help="leave the shuffled columns out")
    options = parser.parse_args(argv)
    data = material()
    public = {e.sha256 for e in examples(PUBLIC)}
    print(f"{'variant':<22} {'public (out of fold)':>41} {'val, lab_val':>41}")
    for name, change in VARIANTS.items():
        _show(name, *_variant(changed(data, change), public))
    _show("without real incidents", *_without_real(data, public))
    if not options.no_importance:
        head = recipe.fitted(data, data.real)
        for drop in importance(head, _labelled(data.validation))[:STRONGEST]:
            print(f"  {drop.column:<52} log loss {drop.log_loss:+.4f}  accuracy {-drop.accuracy:+.4f}")
    return 0


def text_only(item: Encoded) -> Encoded:
    """Without what the ledger says."""
    return replace(item, ledger=np.zeros_like(item.ledger))


def ledger_only(item: Encoded) -> Encoded:
    """Without any line."""
    bare = replace(item.example, texts=(), facts=(), decisive=())
    return replace(item, example=bare, vectors=item.vectors[:0], facts=item.facts[:0])


VARIANTS: dict[str, Change] = {"text only": text_only, "ledger only": ledger_only, "both": lambda item: item}


def changed(data: recipe.Material, change: Change) -> recipe.Material:
    """The material with every incident changed; the line level stays, and is asked once about each."""
    return replace(
        data,
        lines=RememberedLines.of(data.lines),
        simulated=tuple(map(change, data.simulated)),
        validation=tuple(map(change, data.validation)),
        real=tuple(map(change, data.real)),
    )


def _variant(data: recipe.Material, public: set[str]) -> tuple[Score, Score]:
    folds = recipe.out_of_fold(data)
    whole = recipe.calibrated(data, recipe.fitted(data, data.real), folds.raw, data.real).head
    held = [i for i in _labelled(data.real) if i.example.sha256 in public]
    # One temperature for all folds: a single number, fitted on validation and predictions that are out of fold.
    rows = tempered(np.stack([folds.raw[i.example.sha256] for i in held]), whole.temperature)
    return Answered(items=tuple(held), probabilities=rows).score(), _asked(whole, data.validation)


def _without_real(data: recipe.Material, public: set[str]) -> tuple[Score, Score]:
    bare = replace(data, real=())
    raw = recipe.out_of_fold(bare).raw  # no fold is left: only composed incidents, each blind to its author
    head = recipe.calibrated(bare, recipe.fitted(bare, []), raw, []).head
    return _asked(head, [i for i in data.real if i.example.sha256 in public]), _asked(head, data.validation)


def _asked(head: FittedHead, items: Sequence[Encoded]) -> Score:
    known = _labelled(items)
    return Answered(items=tuple(known), probabilities=head.probabilities(known)).score()


def _labelled(items: Sequence[Encoded]) -> list[Encoded]:
    return [i for i in items if i.example.label in LABELS]


def importance(head: FittedHead, items: Sequence[Encoded], *, seed: int = 0) -> list[Drop]:
    """Every pooled column, the ones that are missed most first; columns that never vary are left out."""
    rng = np.random.default_rng(seed)
    rows = np.stack([head.pooled(i) for i in items])
    truth = np.array([head.labels.index(i.example.label) for i in items])
    base = _score(_of_rows(head, rows), truth)
    drops = []
    for column, name in enumerate(pooling.names(head.labels, LEDGER_FACTS)):
        if np.ptp(rows[:, column]) > 0:
            shuffled = [_score(_of_rows(head, _shuffled(rows, column, rng)), truth) for _ in range(_REPEATS)]
            loss = float(np.mean([s.log_loss for s in shuffled])) - base.log_loss
            accuracy = base.accuracy - float(np.mean([s.accuracy for s in shuffled]))
            drops.append(Drop(column=name, log_loss=loss, accuracy=accuracy))
    return sorted(drops, key=lambda d: -d.log_loss)


def _shuffled(rows: NDArray[np.float32], column: int, rng: np.random.Generator) -> NDArray[np.float32]:
    other = rows.copy()
    other[:, column] = rng.permutation(other[:, column])
    return other


def _of_rows(head: FittedHead, rows: NDArray[np.float32]) -> Probabilities:
    order = [list(head.incident.classes_).index(name) for name in head.labels]
    return tempered(head.incident.predict_proba(rows)[:, order], head.temperature)


def _score(probabilities: Probabilities, truth: NDArray[np.int64]) -> Score:
    told = probabilities[np.arange(len(truth)), truth]
    return Score(
        incidents=len(truth),
        accuracy=float((probabilities.argmax(axis=1) == truth).mean()),
        log_loss=float(-np.log(np.maximum(told, 1e-12)).mean()),
    )


def _show(name: str, *scores: Score) -> None:
    told = [f"{s.accuracy:.3f} {_interval(s)} of {s.incidents}, log loss {s.log_loss:.3f}" for s in scores]
    print(f"{name:<22} " + " ".join(f"{text:>41}" for text in told))


def _interval(score: Score) -> str:
    """The 95 % Wilson interval of the accuracy."""
    low, high = Count(hits=round(score.accuracy * score.incidents), total=score.incidents).interval
    return f"({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
