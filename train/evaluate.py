"""`python -m train evaluate --split SPLIT`: the product's own answers, scored, beside baselines in the same folds.

Several splits may be joined: `--split lab_test+public`. On `public` every answer comes from a bundle fitted without
any incident of the same source repository, with thresholds fitted without them too; the files are read through the
whole product. The simulated test splits are answered by the released bundle.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fsdpclassify.classifier import Classifier
from fsdpclassify.decision import MODES
from fsdpclassify.evaluation import Evaluation
from fsdpclassify.evaluation_answers import Reports, answered, evaluate_modes
from fsdpclassify.evaluation_text import evaluation_as_dict, render_evaluation
from fsdpclassify.labelled import LabelledIncident, load_all
from fsdpclassify.training import recipe
from fsdpclassify.training.examples import repository
from train import dataset, pictures
from train.baseline_table import Predictions, ask, baseline_table
from train.build import assemble
from train.material import material
from train.tables import tables

SPLITS = (dataset.PUBLIC, *dataset.SIMULATED, *dataset.LAB, dataset.WRITTEN, dataset.WRITTEN_TEST)
SUBSETS = ("all", "reference", "breadth")
_REFERENCE = re.compile(r"inc-0(?:[0-3]\d|4[0-8])")
_BREADTH = re.compile(r"inc-0(?:49|5\d|6\d|7[0-2])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Incidents with the reports about each in every mode, and what the baselines say of them."""

    pairs: tuple[tuple[LabelledIncident, Reports], ...]
    baselines: Predictions

    def of(self, wanted: Callable[[str], bool]) -> Answers:
        """Only the incidents whose ids are wanted."""
        return Answers(pairs=tuple(p for p in self.pairs if wanted(p[0].id)), baselines=self.baselines)

    def evaluated(self) -> dict[str, Evaluation]:
        """All figures by mode."""
        return evaluate_modes([i for i, _ in self.pairs], [r for _, r in self.pairs])


def main(argv: list[str]) -> int:
    """Print the tables for a split."""
    options = _options(argv)
    splits = options.split.split("+")
    if options.only_baselines:
        return _print_baselines(splits, options.corpus)
    found = answers(splits, options.corpus, baselines=not options.no_baselines).of(subset(options.subset))
    results = found.evaluated()
    result = results[options.mode]
    if options.pictures is not None:
        pictures.write(result, options.pictures, f"{options.split}, {options.mode}")
    if options.tables:
        sys.stdout.write(tables(result, results))
    elif options.json:
        sys.stdout.write(json.dumps({"model": evaluation_as_dict(result, results)}, indent=1) + "\n")
    else:
        table = baseline_table(found.baselines, {i.id: i for i, _ in found.pairs})
        sys.stdout.write(render_evaluation(result, results) + table)
    return 0


def _options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m train evaluate", description=__doc__)
    parser.add_argument("--split", default=dataset.PUBLIC, type=_split, help=f"one or more of {', '.join(SPLITS)}")
    parser.add_argument("--mode", default="balanced", choices=MODES)
    parser.add_argument("--subset", choices=SUBSETS, default="all", help="of public: inc-001 to 048, or the rest")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--tables", action="store_true", help="print the figures as Markdown tables")
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="write three pictures of the figures as SVG")
    parser.add_argument("--no-baselines", action="store_true")
    parser.add_argument("--corpus", type=Path, default=dataset.CORPUS, help="where the simulated splits lie")
    parser.add_argument("--only-baselines", action="store_true", help="without the product: is a split too easy?")
    options = parser.parse_args(argv)
    if options.only_baselines and dataset.PUBLIC in options.split.split("+"):
        parser.error("baselines on public are fitted in the folds of the product: leave --only-baselines out")
    return options


def _split(text: str) -> str:
    """Splits joined by `+`, each of them known and none named twice."""
    parts = text.split("+")
    if unknown := [part for part in parts if part not in SPLITS]:
        raise argparse.ArgumentTypeError(f"unknown split {unknown[0]!r}; one of {', '.join(SPLITS)}")
    if len(set(parts)) < len(parts):
        raise argparse.ArgumentTypeError("a split is named twice")
    return text


def subset(name: str) -> Callable[[str], bool]:
    """Whether an id is one of the subset: of public incidents the reference set or the later ones."""
    if name == "all":
        return lambda _: True
    pattern = _REFERENCE if name == "reference" else _BREADTH
    return lambda identifier: bool(pattern.fullmatch(identifier))


def answers(splits: Sequence[str], corpus: Path = dataset.CORPUS, *, baselines: bool) -> Answers:
    """What the product and, if wanted, the baselines answer on all splits together."""
    parts = [_of_split(split, corpus, baselines=baselines) for split in splits]
    predictions: Predictions = {}
    for part in parts:
        for name, told in part.baselines.items():
            predictions.setdefault(name, {}).update(told)
    return Answers(pairs=tuple(pair for part in parts for pair in part.pairs), baselines=predictions)


def _of_split(split: str, corpus: Path, *, baselines: bool) -> Answers:
    if split == dataset.PUBLIC:
        return _public(baselines=baselines)
    if split == dataset.WRITTEN:
        return Answers(pairs=tuple(_written()), baselines={})
    incidents = load_all([dataset.folder_of(split, corpus)])
    pairs = tuple(_asked(Classifier.load(dataset.BUNDLE), incidents))
    return Answers(pairs=pairs, baselines=_baselines(split, corpus) if baselines else {})


def _print_baselines(splits: Sequence[str], corpus: Path) -> int:
    for split in splits:
        incidents = load_all([dataset.folder_of(split, corpus)])
        table = baseline_table(_baselines(split, corpus), {i.id: i for i in incidents})
        sys.stdout.write(table.lstrip("\n"))
    return 0


def _asked(classifier: Classifier, incidents: Iterable[LabelledIncident]) -> Iterable[tuple[LabelledIncident, Reports]]:
    return ((incident, answered(classifier, incident)) for incident in incidents)


def _public(*, baselines: bool) -> Answers:
    data = material()
    incidents = load_all([dataset.folder_of(dataset.PUBLIC)])
    everything = {e.id: e for e in dataset.examples(dataset.PUBLIC)}
    folds = recipe.out_of_fold(data)
    pairs: list[tuple[LabelledIncident, Reports]] = []
    predictions: Predictions = {}
    known = {name for group in folds.groups for name in group}
    # Repositories in which no incident is seen are in no fold: their reports hold no verdict to leak into.
    leftover = {repository(i.source or i.id) for i in incidents} - known
    for number, (head, group) in enumerate(zip(folds.heads, folds.groups, strict=True)):
        members = set(group) | (leftover if number == 0 else set())
        held = [i for i in incidents if repository(i.source or i.id) in members]
        if not held:
            continue
        rest = recipe.without(data, group)
        pairs += _by_fold(data, recipe.calibrated(data, head, folds.raw, rest), held)
        if baselines:
            learned = [i.example for i in (*data.simulated, *rest)]
            ask(predictions, learned, [everything[i.id] for i in held])
    return Answers(pairs=tuple(sorted(pairs, key=lambda p: p[0].id)), baselines=predictions)


def _by_fold(
    data: recipe.Material, trained: recipe.Trained, held: Sequence[LabelledIncident]
) -> list[tuple[LabelledIncident, Reports]]:
    with tempfile.TemporaryDirectory() as scratch:
        bundle = assemble(data, trained, Path(scratch) / "fold", shipped=False)
        return list(_asked(Classifier.load(bundle), held))


def _written() -> Iterable[tuple[LabelledIncident, Reports]]:
    """Composed incidents, each author's answered by a bundle that is fitted and calibrated without that author."""
    incidents = load_all([dataset.folder_of(dataset.WRITTEN)])
    for author in sorted({i.id[0] for i in incidents}):
        data = material(without=(f"{dataset.WRITTEN}/{author}",))
        raw = recipe.out_of_fold(data).raw
        trained = recipe.calibrated(data, recipe.fitted(data, data.real), raw, data.real)
        yield from _by_fold(data, trained, [i for i in incidents if i.id[0] == author])


def _baselines(split: str, corpus: Path) -> Predictions:
    """The baselines, fitted on what the released bundle is fitted on, asked about another split."""
    predictions: Predictions = {}
    learned = [e for s in ("train", dataset.PUBLIC) for e in dataset.examples(s, corpus) if e.found]
    ask(predictions, learned, dataset.examples(split, corpus))
    return predictions
