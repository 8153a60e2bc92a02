from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fsdpclassify.classifier import Classifier
from fsdpclassify.errors import UsageError
from fsdpclassify.evaluation_answers import answered, evaluate_modes, mode_figures
from fsdpclassify.evaluation_text import evaluation_as_dict, render_evaluation
from fsdpclassify.labelled import LabelledIncident, load
from fsdpclassify.sources import from_text

LABELS = ("desync", "straggler")
SHIPPED = Path(__file__).parent.parent / "data" / "incidents" / "inc-001"


def _incident(number: int, label: str) -> LabelledIncident:
    return LabelledIncident(folder=Path(), id=f"i{number}", label=label)


def _report(verdict: str) -> Any:  # noqa: ANN401
    told: dict[str, Any] = dict.fromkeys(("initiating_ranks", "waiting_ranks", "evidence"), ())
    found = SimpleNamespace(
        verdict=verdict, model_label="desync", probability=0.6, probabilities={"desync": 0.6, "straggler": 0.4},
        cause=None, **told,
    )  # fmt: skip
    return SimpleNamespace(incidents=(found,), first_fatal_error=None)


def _modes(guess: str, balanced: str, sure: str) -> dict[str, Any]:
    return {"best-guess": _report(guess), "balanced": _report(balanced), "high-precision": _report(sure)}


INCIDENTS = [_incident(0, "desync"), _incident(1, "desync"), _incident(2, "straggler")]
REPORTS = [
    _modes("desync", "desync", "desync"),
    _modes("desync", "desync", "undetermined"),
    _modes("desync", "undetermined", "undetermined"),
]


def test_each_mode_is_scored_by_itself() -> None:
    rows = mode_figures(evaluate_modes(INCIDENTS, REPORTS))
    assert [(r.mode, r.covered.hits, r.right.hits, r.right.total) for r in rows] == [
        ("best-guess", 3, 2, 3), ("balanced", 2, 2, 2), ("high-precision", 1, 1, 1),
    ]  # fmt: skip
    assert [r.strictly_right.total for r in rows] == [3, 2, 1]
    assert all(r.covered.total == 3 for r in rows)


def test_best_guesses_stand_beside_the_verdicts_and_modes_in_a_table() -> None:
    modes = evaluate_modes(INCIDENTS, REPORTS)
    text = render_evaluation(modes["balanced"], modes)
    assert "  with a cause, strict                     2/3  0.667  [0.21, 0.94]         2/3  0.667\n" in text
    assert "  high-precision   named 1/3  0.333  [0.06, 0.79]     accepted 1/1  1.000  [0.21, 1.00]" in text
    rows = json.loads(json.dumps(evaluation_as_dict(modes["balanced"], modes)))["modes"]
    assert [(row["mode"], row["covered"]["hits"]) for row in rows] == [
        ("best-guess", 3), ("balanced", 2), ("high-precision", 1),
    ]  # fmt: skip


def test_a_best_guess_has_no_column_beside_itself() -> None:
    modes = evaluate_modes(INCIDENTS, REPORTS)
    assert render_evaluation(modes["best-guess"], modes).startswith("Verdicts\n")


def test_modes_that_were_not_asked_have_no_figures() -> None:
    reports = [{"balanced": each["balanced"]} for each in REPORTS]
    assert list(evaluate_modes(INCIDENTS, reports)) == ["balanced"]


def test_every_mode_answers_like_classify_with_it() -> None:
    classifier, incident = Classifier.load(), load(SHIPPED)
    found = answered(classifier, incident)
    for mode, report in found.items():
        alone = classifier.classify(incident.logs, hung=incident.hung, mode=mode)
        assert [d.verdict for d in report.incidents] == [d.verdict for d in alone.incidents]
        assert report.incidents[-1].evidence == alone.incidents[-1].evidence


def test_an_unknown_mode_is_refused_before_anything_is_read() -> None:
    with pytest.raises(UsageError, match="loud"):
        Classifier.load().classify_modes(from_text(["x"]), ("balanced", "loud"))
