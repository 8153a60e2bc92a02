"""What tells the label: found, ranked, judged; and no log holds a word that only its maker knows."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fsdpclassify.facts import LINE_FACTS
from fsdpclassify.training.examples import Example
from fsdpclassify.vector import LEDGER_FACTS
from train import leaks
from train.dataset import DATA
from train.inventory import load
from train.lab.faults import load_faults
from train.simulate.build import build, inventory
from train.simulate.plan import jobs


def example(label: str, text: str, number: int, ledger: dict[int, float] | None = None) -> Example:
    values = [0.0] * len(LEDGER_FACTS)
    for place, value in (ledger or {}).items():
        values[place] = value
    return Example(
        id=f"{label}{number}", label=label, alt_label=None, cause=None, determinable=None, repository="r", found=True,
        texts=(text,), facts=((0.0,) * len(LINE_FACTS),), ledger=tuple(values), decisive=(False,), sha256="0" * 64,
    )  # fmt: skip


def test_information_is_the_entropy_of_what_tells_all_and_nothing_of_what_tells_nothing() -> None:
    labels = np.array(["a", "b"] * 200)
    assert leaks.information(labels == "a", labels) == pytest.approx(1.0, abs=0.01)
    assert leaks.information(np.array([0, 0, 1, 1] * 100), labels) == 0.0


def test_the_token_and_the_column_that_tell_come_first() -> None:
    examples = [example("desync", "common oddword", i, {3: 0.7}) for i in range(30)]
    examples += [example("straggler", "common", i) for i in range(30)]
    first = leaks.tokens(examples)[0]
    assert (first.name, first.shares[0]) == ("oddword", ("desync", 1.0))
    assert leaks.columns(examples)[0].name == LEDGER_FACTS[3]


def test_the_report_shows_what_nobody_judged_first() -> None:
    rows = [leaks.Telling(name=n, kind="token", bits=b, shares=(("desync", 1.0),)) for n, b in (("x", 0.5), ("y", 0.1))]
    text = leaks.table(rows, {("token", "x"): "legitimate because it is a test"})
    assert text.index("**unjudged**") < text.index("legitimate because it is a test")


def test_a_judgement_says_why(tmp_path: Path) -> None:
    path = tmp_path / "leaks.toml"
    path.write_text('[token]\nx = "fine"\n[column]\n')
    with pytest.raises(ValueError, match="x: a judgement begins with"):
        leaks.judgements(path)


def test_all_columns_of_the_ledger_are_judged() -> None:
    judged = leaks.judgements()
    assert [name for name in LEDGER_FACTS if ("column", name) not in judged] == []


LOGS = "\n".join(
    text for job in jobs(inventory(), 11, 0.02) if job.index % 3 == 0 for text in build(job).files.values()
)


def test_no_log_betrays_the_simulator() -> None:
    assert len(LOGS) > 50_000
    assert leaks.markers(LOGS) == []


def test_no_recording_betrays_the_lab() -> None:
    paths = [path for path in sorted((DATA / "lab").glob("*/*/logs/**/*")) if path.is_file()]
    found = {path.name: leaks.markers(path.read_text("utf-8", "replace")) for path in paths}
    assert paths
    assert {name: words for name, words in found.items() if words} == {}


@pytest.mark.parametrize(
    "planted",
    [
        "offload_latency",
        "fewer_batches_on_one_rank",
        "main_only_collective",
        "{rank}",
        "{long:hms}",
        "simulated",
        "fault injected",
        "Injecting",
    ],
)
def test_a_planted_marker_is_found(planted: str) -> None:
    lines = LOGS.split("\n")
    lines[len(lines) // 2] += f" {planted}"
    assert leaks.markers("\n".join(lines)) != []


def test_every_name_of_a_label_cause_or_fault_in_snake_case_is_a_marker() -> None:
    names = [label.id for label in load().labels] + [cause.id for cause in load().causes]
    names += [fault.name for fault in load_faults()]
    for name in names:
        if "_" in name and name not in leaks.ORDINARY:
            assert leaks.markers(f"a line with {name}: here") == [name]


def test_what_is_taken_for_an_ordinary_word_is_the_name_of_something() -> None:
    names = {cause.id for cause in load().causes} | {fault.name for fault in load_faults()}
    assert names >= leaks.ORDINARY
    assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in leaks.ORDINARY)
