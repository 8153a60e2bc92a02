from __future__ import annotations

import re
from pathlib import Path

import pytest

from fsdpclassify.facts import LINE_FACTS
from fsdpclassify.labelled import LabelledIncident
from fsdpclassify.training.examples import Example
from fsdpclassify.training.fit import LABELS
from fsdpclassify.vector import LEDGER_FACTS
from train.baseline_table import baseline_table
from train.baselines import BASELINES, PATTERNS, Baseline, LedgerOnly, Majority, Rules, TfIdf, macro_f1


def _example(label: str, *texts: str, column: int = 0, number: int = 0) -> Example:
    ledger = [0.0] * len(LEDGER_FACTS)
    ledger[column] = 1.0
    return Example(
        id=f"{label}-{number}", label=label, alt_label=None, cause=None, determinable=None, repository="r", found=True,
        texts=texts, facts=((0.0,) * len(LINE_FACTS),) * len(texts), ledger=tuple(ledger),
        decisive=(False,) * len(texts), sha256="0" * 64,
    )  # fmt: skip


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    """Eight incidents of each label that differ in one word and in one ledger fact."""
    return [
        _example(label, f"word{label} here", "noise", column=i, number=n)
        for i, label in enumerate(LABELS)
        for n in range(8)
    ]


def _fitted(kind: type[Baseline], examples: list[Example]) -> Baseline:
    baseline = kind()
    baseline.fit(examples)
    return baseline


def test_each_baseline_has_its_own_name() -> None:
    assert len({b.name for b in BASELINES}) == len(BASELINES) == 4


@pytest.mark.parametrize("kind", BASELINES)
def test_a_baseline_answers_a_cause_or_undetermined(kind: type[Baseline], examples: list[Example]) -> None:
    baseline = _fitted(kind, [*examples, _example("undetermined", "noise")])
    for e in (*examples, _example("desync"), _example("desync", "nothing known")):
        assert baseline.predict(e) in {*LABELS[:-1], "undetermined"}


def test_the_majority_is_that_of_the_causes(examples: list[Example]) -> None:
    more = [_example("desync", "x"), *[_example("other", "x")] * 50, *[_example("undetermined", "x")] * 50]
    assert _fitted(Majority, [*examples, *more]).predict(examples[0]) == "desync"


@pytest.mark.parametrize("kind", [TfIdf, LedgerOnly])
def test_what_can_be_learnt_is_learnt(kind: type[Baseline], examples: list[Example]) -> None:
    baseline = _fitted(kind, examples)
    for i, label in enumerate(LABELS):
        expected = "undetermined" if label == "other" else label
        assert baseline.predict(_example(label, f"word{label} here", "noise", column=i)) == expected


def test_each_half_of_the_features_is_blind_to_the_other(examples: list[Example]) -> None:
    crossed = _example("desync", "worddesync here", "noise", column=LABELS.index("straggler"))
    assert _fitted(TfIdf, examples).predict(crossed) == "desync"
    assert _fitted(LedgerOnly, examples).predict(crossed) == "straggler"


def test_a_guess_is_made_where_a_baseline_abstains(examples: list[Example]) -> None:
    unknown = _example("desync", "nothing known")
    assert _fitted(TfIdf, examples).predict(unknown) == "undetermined"
    assert _fitted(TfIdf, examples).guess(unknown) in LABELS
    other = _example("other", "wordother here", column=LABELS.index("other"))
    assert _fitted(LedgerOnly, examples).guess(other) == "other"


def test_macro_f1_is_the_mean_over_the_labels_that_occur() -> None:
    pairs = [("desync", "desync"), ("desync", "straggler"), ("straggler", "straggler"), ("other", "desync")]
    # desync: 1 hit of 2 said and 2 meant; straggler: 1 of 2 and 1; other: none.
    assert macro_f1(pairs) == pytest.approx((0.5 + 2 / 3 + 0.0) / 3)
    assert macro_f1([]) == 0.0


def test_the_table_scores_what_is_concluded_and_the_first_label() -> None:
    known = {"a": LabelledIncident(folder=Path(), id="a", label="desync")}
    row = baseline_table({"ledger only": {"a": ("undetermined", "desync")}}, known).splitlines()[-2]
    assert row.split()[:6] == ["ledger", "only", "0", "/", "0", "of"]
    assert row.endswith("1.000")


def test_an_unsure_baseline_abstains(examples: list[Example]) -> None:
    assert _fitted(TfIdf, examples).predict(_example("desync", "nothing known")) == "undetermined"


def test_twenty_five_patterns_for_causes_that_exist() -> None:
    assert len(PATTERNS) == 25
    assert {label for label, _ in PATTERNS} == set(LABELS[:-1])
    for _, pattern in PATTERNS:
        re.compile(pattern)


@pytest.mark.parametrize(
    ("texts", "label"),
    [
        (("CUDA out of memory. Tried to allocate",), "rank_failure"),
        (("Detected mismatch between collectives on rank", "CUDA out of memory"), "desync"),
        (("CUDA out of memory", "Detected mismatch between collectives on rank"), "desync"),
        (("Got completion from peer with status=12",), "fabric_congestion"),
        (("Tokenizing train",), "straggler"),
        (("all is well",), "undetermined"),
        ((), "undetermined"),
    ],
)
def test_the_first_pattern_in_order_of_trust_answers(texts: tuple[str, ...], label: str) -> None:
    assert _fitted(Rules, []).predict(_example("desync", *texts)) == label
