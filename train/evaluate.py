"""`python -m train evaluate --split SPLIT`: the product's own answers, scored, beside baselines in the same folds.

On `public` every answer comes from a bundle fitted without any incident of the same source repository, with
thresholds fitted without them too; the files are read through the whole product. The simulated test splits are
answered by the released bundle.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from fsdpclassify.classifier import Classifier
from fsdpclassify.decision import UNDETERMINED
from fsdpclassify.evaluation import evaluate_reports
from fsdpclassify.evaluation_text import evaluation_as_dict, render_evaluation
from fsdpclassify.labelled import LabelledIncident, load_all, neutral_logs
from fsdpclassify.records import Report
from fsdpclassify.training import recipe
from fsdpclassify.training.examples import Example, repository
from fsdpclassify.training.fit import LABELS
from train import dataset, pictures
from train.baselines import BASELINES, NO_TIMEOUT, Baseline, macro_f1
from train.build import assemble
from train.material import material
from train.tables import tables

_SPLITS = (dataset.PUBLIC, *dataset.SIMULATED, *dataset.LAB, dataset.WRITTEN, dataset.WRITTEN_TEST)
_REFERENCE = re.compile(r"inc-0(?:[0-3]\d|4[0-8])")


def main(argv: list[str]) -> int:
    """Print the tables for a split."""
    parser = argparse.ArgumentParser(prog="python -m train evaluate", description=__doc__)
    parser.add_argument("--split", default=dataset.PUBLIC, choices=_SPLITS)
    parser.add_argument("--mode", default="balanced")
    parser.add_argument(
        "--subset",
        choices=("all", "reference", "breadth"),
        default="all",
        help="public only: inc-001 to 048, or the rest",
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--tables", action="store_true", help="print the figures as Markdown tables")
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="write three pictures of the figures as SVG")
    parser.add_argument("--no-baselines", action="store_true")
    parser.add_argument("--corpus", type=Path, default=dataset.CORPUS, help="where the simulated splits lie")
    parser.add_argument(
        "--only-baselines", action="store_true", help="a simulated split without the product: is it too easy?"
    )
    options = parser.parse_args(argv)
    if options.split == dataset.PUBLIC:
        pairs, baselines = _public(options.mode, baselines=not options.no_baselines)
    elif options.split == dataset.WRITTEN:
        pairs, baselines = _written(options.mode), {}
    else:
        if options.only_baselines:
            incidents = load_all([dataset.folder_of(options.split, options.corpus)])
            answers = _baselines(options.split, options.corpus)
            sys.stdout.write(_baseline_table(answers, {i.id: i for i in incidents}).lstrip("\n"))
            return 0
        pairs = _simulated(options.split, options.mode, options.corpus)
        baselines = {} if options.no_baselines else _baselines(options.split, options.corpus)
    wanted = _subset(options.subset)
    pairs = [p for p in pairs if wanted(p[0].id)]
    result = evaluate_reports([i for i, _ in pairs], [r for _, r in pairs])
    if options.pictures is not None:
        pictures.write(result, options.pictures, f"{options.split}, {options.mode}")
    if options.tables:
        sys.stdout.write(tables(result))
        return 0
    if options.json:
        sys.stdout.write(json.dumps({"model": evaluation_as_dict(result)}, indent=1) + "\n")
        return 0
    sys.stdout.write(render_evaluation(result))
    table = _baseline_table(baselines, {i.id: i for i, _ in pairs})
    sys.stdout.write(table)
    return 0


def _subset(name: str):  # noqa: ANN202 - a predicate on ids
    if name == "all":
        return lambda _: True
    return lambda identifier: bool(_REFERENCE.fullmatch(identifier)) == (name == "reference")


def _answers(
    classifier: Classifier, incidents: Iterable[LabelledIncident], mode: str
) -> list[tuple[LabelledIncident, Report]]:
    pairs = []
    for incident in incidents:
        with neutral_logs(incident) as logs:
            pairs.append((incident, classifier.classify(logs, hung=incident.hung, mode=mode)))
    return pairs


#: By baseline and incident: what it concludes, and its first label, sure or not.
Predictions = dict[str, dict[str, tuple[str, str]]]


def _public(mode: str, *, baselines: bool) -> tuple[list[tuple[LabelledIncident, Report]], Predictions]:
    data = material()
    incidents = load_all([dataset.folder_of(dataset.PUBLIC)])
    everything = {e.id: e for e in dataset.examples(dataset.PUBLIC)}
    folds = recipe.out_of_fold(data)
    pairs: list[tuple[LabelledIncident, Report]] = []
    predictions: Predictions = {}
    known = {name for group in folds.groups for name in group}
    # Repositories in which no incident is seen are in no fold: their reports hold no verdict to leak into.
    leftover = tuple({repository(i.source or i.id) for i in incidents} - known)
    for number, (head, group) in enumerate(zip(folds.heads, folds.groups, strict=True)):
        members = set(group) | (set(leftover) if number == 0 else set())
        held = [i for i in incidents if repository(i.source or i.id) in members]
        rest = recipe.without(data, group)
        trained = recipe.calibrated(data, head, folds.raw, rest)
        with tempfile.TemporaryDirectory() as scratch:
            bundle = assemble(data, trained, Path(scratch) / "fold", shipped=False)
            pairs += _answers(Classifier.load(bundle), held, mode)
        if baselines:
            learned = [i.example for i in (*data.simulated, *rest)]
            _ask(predictions, learned, [everything[i.id] for i in held])
    return sorted(pairs, key=lambda p: p[0].id), predictions


def _written(mode: str) -> list[tuple[LabelledIncident, Report]]:
    """Composed incidents, each author's answered by a bundle that is fitted and calibrated without that author."""
    incidents = load_all([dataset.folder_of(dataset.WRITTEN)])
    pairs: list[tuple[LabelledIncident, Report]] = []
    for author in sorted({i.id[0] for i in incidents}):
        data = material(without=(f"{dataset.WRITTEN}/{author}",))
        raw = recipe.out_of_fold(data).raw
        trained = recipe.calibrated(data, recipe.fitted(data, data.real), raw, data.real)
        with tempfile.TemporaryDirectory() as scratch:
            bundle = assemble(data, trained, Path(scratch) / "fold", shipped=False)
            pairs += _answers(Classifier.load(bundle), [i for i in incidents if i.id[0] == author], mode)
    return pairs


def _simulated(split: str, mode: str, corpus: Path) -> list[tuple[LabelledIncident, Report]]:
    return _answers(Classifier.load(dataset.BUNDLE), load_all([dataset.folder_of(split, corpus)]), mode)


def _baselines(split: str, corpus: Path) -> Predictions:
    """The baselines, fitted on what the released bundle is fitted on, asked about another split."""
    predictions: Predictions = {}
    learned = [e for s in ("train", dataset.PUBLIC) for e in dataset.examples(s, corpus) if e.found]
    _ask(predictions, learned, dataset.examples(split, corpus))
    return predictions


def _ask(predictions: Predictions, learned: Sequence[Example], asked: Sequence[Example]) -> None:
    for kind in BASELINES:
        baseline: Baseline = kind()
        baseline.fit(learned)
        answers = predictions.setdefault(baseline.name, {})
        for example in asked:
            answers[example.id] = (
                (baseline.predict(example), baseline.guess(example)) if example.found else (NO_TIMEOUT, NO_TIMEOUT)
            )


def _baseline_table(predictions: Predictions, incidents: dict[str, LabelledIncident]) -> str:
    if not predictions:
        return ""
    lines = [
        "",
        "Baselines in the same folds: strict / accepted with a cause; other and undetermined abstained; no_timeout;",
        "macro-F1 of their first labels over the classes, whether they would conclude them or not",
    ]
    for name, answers in predictions.items():
        concluded = {key: answer for key, (answer, _) in answers.items()}
        pairs = [(incident.label, answers[key][1]) for key, incident in incidents.items() if incident.label in LABELS]
        lines.append(f"  {name:<30} {_figures(concluded, incidents)}   {macro_f1(pairs):.3f}")
    return "\n".join(lines) + "\n"


def _figures(answers: dict[str, str], incidents: dict[str, LabelledIncident]) -> str:
    causes = [i for i in incidents.values() if i.label not in ("other", UNDETERMINED, NO_TIMEOUT)]
    quiet = [i for i in incidents.values() if i.label in ("other", UNDETERMINED)]
    none = [i for i in incidents.values() if i.label == NO_TIMEOUT]
    strict = sum(answers[i.id] == i.label for i in causes)
    accepted = sum(
        answers[i.id] in (i.label, i.alt_label) or (i.determinable_from_log == "no" and answers[i.id] == UNDETERMINED)
        for i in causes
    )
    abstained = sum(answers[i.id] == UNDETERMINED for i in quiet)
    clear = sum(answers[i.id] == NO_TIMEOUT for i in none)
    return f"{strict:>3} / {accepted:>3} of {len(causes)}   {abstained:>3} of {len(quiet)}   {clear:>3} of {len(none)}"
