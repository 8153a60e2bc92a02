"""A line's weight is what the label's probability loses when the line is taken away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fsdpclassify.classifier import Classifier
from fsdpclassify.diagnosis import score
from fsdpclassify.evidence import Weighed, render, weigh
from fsdpclassify.features import Features, extract
from fsdpclassify.reading import find
from fsdpclassify.records import Incident, Line
from fsdpclassify.sources import collect, from_text
from fsdpclassify.vector import LEDGER_FACTS

ROOT = Path(__file__).resolve().parents[1]
LABELS = ("straggler", "desync", "other")
TIMEOUT = (
    "[rank{0}]:[E512 21:10:07.118820344 ProcessGroupNCCL.cpp:689] [Rank {0}] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=7, OpType={1}, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600013"
    " milliseconds before timing out."
)
Array = NDArray[np.float32]
Run = Callable[[Array, Array, Array], Array]


def _case(*lines: str) -> tuple[Incident, Features]:
    found = find(from_text(["\n".join(lines) + "\n"]))
    (incident,) = found.incidents
    return incident, extract(incident, found.kinds)


def _both(
    incident: Incident, features: Features, worth: Array, run: Run, label: str = "straggler"
) -> tuple[list[Weighed], float]:
    """`worth[n]` is the single number that stands for each line's vector."""
    n = len(features.window)
    evidence = np.zeros((n, len(LABELS)), np.float32)
    evidence[:, 1] = np.linspace(0.5, 0.4, n)
    ledger = np.asarray(features.ledger, np.float32)
    return weigh(incident, features, worth[:, None], np.zeros((n, 1), np.float32), ledger, evidence, run, LABELS, label)


def _weigh(incident: Incident, features: Features, worth: Array, run: Run, label: str = "straggler") -> list[Weighed]:
    return _both(incident, features, worth, run, label)[0]


def _by_words(vectors: Array, facts: Array, ledger: Array) -> Array:
    assert len(vectors) == len(facts)
    return np.array([0.2 + vectors.sum(), 0.0, 0.0], np.float32)


def test_a_line_weighs_what_goes_with_it_strongest_first_and_against_last() -> None:
    x, features = _case("[rank1]: alpha", "[rank1]: beta", "[rank1]: gamma", TIMEOUT.format(0, "ALLREDUCE"))
    worth = np.zeros(len(features.window), np.float32)
    for text, value in (("alpha", 0.1), ("beta", 0.3), ("gamma", -0.2)):
        worth[[row.line.body for row in features.window].index(text)] = value
    found = _weigh(x, features, worth, _by_words)
    assert [(w.line.body, round(w.weight, 5)) for w in found] == [("beta", 0.3), ("alpha", 0.1), ("gamma", -0.2)]
    assert all(features.window[w.row].line is w.line for w in found if w.row is not None)


def test_a_line_that_changes_next_to_nothing_is_not_shown() -> None:
    x, features = _case("[rank1]: alpha", TIMEOUT.format(0, "ALLREDUCE"))
    worth = np.full(len(features.window), 0.0049, np.float32)
    assert _weigh(x, features, worth, _by_words) == []


def test_at_most_eight_lines_of_which_two_against() -> None:
    texts = [f"[rank1]: {'abcdefghijklmnop'[i] * 3}" for i in range(15)]
    x, features = _case(*texts, TIMEOUT.format(0, "ALLREDUCE"))
    worth = np.array([0.1] * 10 + [-0.1] * (len(features.window) - 10), np.float32)
    weights = [w.weight for w in _weigh(x, features, worth, _by_words)]
    assert len(weights) == 8
    assert [w > 0 for w in weights] == [True] * 6 + [False] * 2


def test_the_structure_that_rests_on_a_line_goes_with_it() -> None:
    x, features = _case(TIMEOUT.format(0, "ALLREDUCE"), TIMEOUT.format(1, "BROADCAST"))
    column = LEDGER_FACTS.index("ops_differ")
    assert features.ledger[column] == 1.0

    def by_structure(vectors: Array, facts: Array, ledger: Array) -> Array:
        return np.array([0.0, 0.1 + 0.5 * ledger[column], 0.0], np.float32)

    worth = np.zeros(len(features.window), np.float32)
    found = _weigh(x, features, worth, by_structure, "desync")
    assert [w.line.number for w in found] == [1, 2]
    assert [w.weight for w in found] == pytest.approx([0.5, 0.5])
    assert {w.supports for w in found} == {"desync"}
    assert {w.why for w in found} == {"ranks stand in different calls: other operations or sizes"}


def test_a_line_against_the_label_supports_the_one_that_its_wording_is_nearest_to() -> None:
    x, features = _case("[rank1]: alpha", TIMEOUT.format(0, "ALLREDUCE"))
    worth = np.array([-0.2 * (row.line.body == "alpha") for row in features.window], np.float32)
    (found,) = _weigh(x, features, worth, _by_words)
    assert (found.supports, round(found.weight, 5)) == ("desync", -0.2)


def test_a_line_outside_the_window_against_the_label_supports_the_rival() -> None:
    lines = [TIMEOUT.format(r, "ALLREDUCE" if r else "BROADCAST") for r in range(3)]
    x, features = _case(*lines)
    column = LEDGER_FACTS.index("ops_differ")

    def against(vectors: Array, facts: Array, ledger: Array) -> Array:
        return np.array([0.6 - 0.3 * ledger[column], 0.1, 0.2], np.float32)

    found = _weigh(x, features, np.zeros(len(features.window), np.float32), against)
    assert found
    for w in found:
        assert w.weight < 0
        assert w.supports == ("other" if w.row is None else "desync")


def test_the_support_is_what_all_lines_together_add() -> None:
    x, features = _case("[rank1]: alpha", "[rank1]: beta", TIMEOUT.format(0, "ALLREDUCE"))
    worth = np.array([0.1 * (row.line.rank == 1) for row in features.window], np.float32)
    assert _both(x, features, worth, _by_words)[1] == pytest.approx(0.2)
    assert _both(x, features, -worth, _by_words)[1] == pytest.approx(-0.2)


def _any_will_do(vectors: Array, facts: Array, ledger: Array) -> Array:
    return np.array([0.3 + 0.5 * float(vectors.max(initial=0.0)), 0.0, 0.0], np.float32)


def test_lines_that_say_the_same_are_shown_although_none_is_missed() -> None:
    x, features = _case(
        *(f"[rank1]: {word}" for word in ("alpha", "beta", "gamma", "delta")), TIMEOUT.format(0, "ALLREDUCE")
    )
    words = {"alpha": 0.5, "beta": 0.5, "gamma": 0.5, "delta": 0.4}
    worth = np.array([words.get(row.line.body, 0.0) for row in features.window], np.float32)
    found, support = _both(x, features, worth, _any_will_do)
    assert support == pytest.approx(0.25)
    assert [w.line.body for w in found] == ["alpha", "beta", "gamma"]
    assert [w.weight for w in found] == [0.0] * 3
    assert {w.supports for w in found} == {"straggler"}


def test_taking_lines_away_leaves_the_given_arrays_alone() -> None:
    x, features = _case(TIMEOUT.format(0, "ALLREDUCE"), TIMEOUT.format(1, "BROADCAST"))
    seen: list[Array] = []

    def keep(vectors: Array, facts: Array, ledger: Array) -> Array:
        seen.append(ledger)
        return np.zeros(3, np.float32)

    _weigh(x, features, np.zeros(len(features.window), np.float32), keep)
    assert seen[0].tolist() == np.asarray(features.ledger, np.float32).tolist()


def _weighed(text: str, weight: float = 0.12344) -> Weighed:
    line = Line(source=1, number=12, text=text, body=text, rank=3)
    return Weighed(line=line, row=0, supports="desync", weight=weight, why=None)


def test_a_rendered_line_is_masked_before_it_is_cut() -> None:
    (shown,) = render(
        [_weighed("  " + "x" * 495 + "secret  ")], ["a", "b"], ["why"], lambda t: t.replace("secret", "***")
    )
    assert shown.text == "x" * 495 + "***"
    (long,) = render([_weighed("y" * 900)], ["a", "b"], ["why"], str)
    assert len(long.text) == 500
    assert (shown.path, shown.line, shown.rank, shown.supports, shown.weight, shown.why) == (
        "b", 12, 3, "desync", 0.1234, "why",
    )  # fmt: skip


def test_every_line_needs_its_reason() -> None:
    with pytest.raises(ValueError, match="zip"):
        render([_weighed("x")], ["a", "b"], [], str)


@pytest.mark.model
@pytest.mark.parametrize("name", ["inc-003", "inc-019", "inc-027", "inc-043"])
def test_with_the_released_bundle_a_weight_is_the_loss_of_probability(name: str) -> None:
    model = Classifier.load(ROOT / "models" / "default")._model
    found = find(collect([ROOT / "data" / "incidents" / name / "logs"]))
    incident = found.incidents[-1]
    scored = score(model, incident, found.kinds)
    label = max(scored.probabilities, key=lambda k: scored.probabilities[k])
    weighed, support = weigh(
        incident, scored.features, scored.vectors, scored.facts, scored.ledger, scored.line_evidence,
        lambda v, f, g: model.head.run(v, f, g)[0], model.manifest.labels, label,
    )  # fmt: skip
    wordings = [w for w in weighed if w.why is None and w.row is not None]
    for w in wordings:
        keep = [i for i in range(len(scored.vectors)) if i != w.row]
        left, _ = model.head.run(scored.vectors[keep], scored.facts[keep], scored.ledger)
        rest = float(left[model.manifest.labels.index(label)])
        assert w.weight == pytest.approx(scored.probabilities[label] - rest, abs=1e-6)
    # A clear incident rests on its lines; an unclear one may rest on what is left when they are gone.
    clear = name in ("inc-019", "inc-027")
    assert bool(weighed) and support > 0.1 if clear else -1.0 <= support <= 1.0
