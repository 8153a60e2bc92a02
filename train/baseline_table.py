"""The baselines asked and printed: what each concludes about the incidents of a split, and its first labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fsdpclassify.decision import UNDETERMINED
from fsdpclassify.labelled import LabelledIncident
from fsdpclassify.training.examples import Example
from fsdpclassify.training.fit import LABELS
from train.baselines import NO_TIMEOUT, Baseline, available, macro_f1
from train.nearest import NAME

#: By baseline and incident: what it concludes, and its first label, sure or not.
Predictions = dict[str, dict[str, tuple[str, str]]]


def ask(predictions: Predictions, learned: Sequence[Example], asked: Sequence[Example]) -> None:
    """Fit every baseline on `learned` and add its answers about `asked` to `predictions`."""
    for kind in available():
        baseline: Baseline = kind()
        baseline.fit(learned)
        answers = predictions.setdefault(baseline.name, {})
        for example in asked:
            answers[example.id] = (
                (baseline.predict(example), baseline.guess(example)) if example.found else (NO_TIMEOUT, NO_TIMEOUT)
            )


def baseline_table(predictions: Predictions, incidents: Mapping[str, LabelledIncident]) -> str:
    """One row a baseline; empty where none was asked."""
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
    if NAME not in predictions:
        lines.append(f"  {NAME:<30} not asked: needs the extra encoder")
    return "\n".join(lines) + "\n"


def _figures(answers: Mapping[str, str], incidents: Mapping[str, LabelledIncident]) -> str:
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
