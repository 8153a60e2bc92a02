from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fsdpclassify import bundle
from fsdpclassify.evaluation_answers import evaluate_modes
from fsdpclassify.labelled import LabelledIncident
from tests.test_evaluation_answers import INCIDENTS, REPORTS
from train import card, dataset, measured
from train.card_tables import figures_section, thresholds_section
from train.evaluate import SPLITS, Answers, _options, subset

OPTIONS = "--split lab_test+public"


@pytest.fixture(scope="module")
def block() -> dict[str, Any]:
    """Three incidents: all named as best guesses, two in balanced, one in high-precision."""
    return measured.block(evaluate_modes(INCIDENTS, REPORTS))


def test_a_block_holds_counts_by_mode_and_figures_with_their_intervals(block: dict[str, Any]) -> None:
    assert (block["causes_strict"], block["ranks_exact"], block["ece"]) == ([2, 3], [0, 0], None)
    assert [mode["named"] for mode in block["modes"].values()] == [[3, 3], [2, 3], [1, 3]]
    assert [mode["accepted"] for mode in block["modes"].values()] == [[2, 3], [2, 2], [1, 1]]
    value, low, high = block["macro_f1"]
    assert (value, low <= value <= high) == (0.5, True)


def test_figures_are_tables_whose_rows_have_as_many_cells_as_their_heads(block: dict[str, Any]) -> None:
    text = figures_section({OPTIONS: block}, [(OPTIONS, "both"), ("--split val", "not measured")])
    tables = [part.splitlines() for part in text.split("\n\n") if part.startswith("|")]
    assert [len(rows) for rows in tables] == [3, 3, 3]
    assert all(len({row.count("|") for row in rows}) == 1 for rows in tables)
    assert f"| both | `{OPTIONS}` | 2 of 3 | 2 of 3 |" in text
    assert "1 of 3 | 1 of 1, 1.000 (0.21 to 1.00) |" in text
    assert "not measured" not in text


def test_a_bundle_that_was_not_measured_says_so() -> None:
    assert "python -m train card" in figures_section({}, [(OPTIONS, "both")])


def test_thresholds_stand_beside_those_of_other_mixes_where_these_are_known() -> None:
    manifest = bundle.read_manifest(dataset.BUNDLE)
    plain = thresholds_section(manifest, {})
    assert plain.count("\n") == len(manifest.labels) + 1
    shares = dict.fromkeys((*manifest.labels, "undetermined"), 0.125)
    mix = {"prior": shares, "balanced": dict.fromkeys(manifest.labels, 0.42), "high-precision": {}}
    text = thresholds_section(manifest, dict.fromkeys(("shipped", "uniform", "measured"), mix))
    assert plain in text
    assert "| desync | 0.125 | 0.42 | – | 0.125 | 0.42 | – | 0.125 | 0.42 | – |" in text
    assert "| undetermined | 0.125 | – | – |" in text


def test_the_card_is_made_of_the_manifest_s_numbers(block: dict[str, Any]) -> None:
    manifest = bundle.read_manifest(dataset.BUNDLE)
    told = replace(manifest, metrics={card.HELD_OUT: {measured.SETS[0].options: block}})
    text = card.card_bytes(told, {"head.onnx": b"12345"}).decode()
    assert f"| {measured.SETS[0].title} | `{measured.SETS[0].options}` | 2 of 3 |" in text
    assert "- `head.onnx`: 5 bytes" in text
    assert "Not measured yet" in card.card_bytes(replace(manifest, metrics={}), {}).decode()


def test_each_set_can_be_printed_by_the_options_beside_it() -> None:
    for each in measured.SETS:
        options = _options(each.options.split())
        assert (options.split.split("+"), options.subset) == (list(each.splits), each.subset)


def test_each_split_is_answered_once_and_joined_as_its_set_says() -> None:
    asked: list[str] = []

    def ask(split: str) -> Answers:
        asked.append(split)
        incidents = [replace(each, id=f"inc-0{k}0") for k, each in enumerate(INCIDENTS)]
        return Answers(pairs=tuple(zip(incidents, REPORTS, strict=True)), baselines={})

    found = measured.measure(ask)
    assert sorted(asked) == sorted(set(asked))
    assert found["--split lab_test"]["causes_strict"] == [2, 3]
    assert found[OPTIONS]["causes_strict"] == [4, 6]
    assert found["--split public --subset reference"]["causes_strict"] == [2, 3]
    assert found["--split public --subset breadth"]["causes_strict"] == [0, 0]


@pytest.mark.parametrize("text", ["lab_test+nothing", "public+public", ""])
def test_unknown_splits_and_splits_named_twice_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _options(["--split", text])
    assert "split" in capsys.readouterr().err


def test_baselines_alone_are_not_asked_about_incidents_that_they_learnt_from() -> None:
    assert _options(["--split", "lab_test", "--only-baselines"]).only_baselines
    with pytest.raises(SystemExit):
        _options(["--split", "lab_test+public", "--only-baselines"])


def test_a_subset_is_of_public_incidents_by_their_numbers() -> None:
    ids = [f"inc-{n:03d}" for n in range(1, 73)] + ["lab-15fe37ca"]
    assert sum(map(subset("reference"), ids)) == 48
    assert sum(map(subset("breadth"), ids)) == 24
    assert sum(map(subset("all"), ids)) == 73


def test_every_split_has_a_name_of_its_own() -> None:
    assert len(set(SPLITS)) == len(SPLITS)
    answers = Answers(pairs=((LabelledIncident(folder=Path(), id="x", label="desync"), {}),), baselines={})
    assert answers.of(lambda _: False).pairs == ()
