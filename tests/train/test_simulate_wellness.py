"""Healthy tables beside a run: every label has them, they change nothing else, and citations follow the lines."""

from __future__ import annotations

import re
from random import Random

import pytest

from tests.train.making import runs, scenes, truth_of
from train.inventory import Family, load
from train.simulate import wellness
from train.simulate.wellness import TABLES, beside, shifted

SICK = re.compile(r"Down$|Polling|<inactive>|\b100% /|HW Slowdown|Uncorrectable Error|SYS|ERR!")


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_table_is_healthy_and_its_values_vary(name: str) -> None:
    answers = [TABLES[name](Random(seed)) for seed in range(12)]
    assert len({rows for _, rows in answers}) > 1
    assert not [row for _, rows in answers for row in rows if SICK.search(row)]


def test_swap_moves_nothing() -> None:
    for seed in range(20):
        rows = TABLES["vmstat"](Random(seed))[1][2:]
        assert rows
        assert all(row.split()[6:8] == ["0", "0"] and row.split()[2] == "0" for row in rows)


@pytest.mark.parametrize(("label", "cause"), [("straggler", "compile"), ("undetermined", None), ("no_timeout", None)])
def test_about_an_eighth_of_every_label_has_them(label: str, cause: str | None) -> None:
    seeds = [f"{label}/{cause}/{i}" for i in range(400)]
    found = sum(beside({"a.log": "x\n"}, Random(f"{seed}/tables"))[0] != {"a.log": "x\n"} for seed in seeds)
    assert 0.07 < found / 400 < 0.18


def test_nothing_but_tables_is_added_and_the_rest_moves_as_said() -> None:
    texts = {"a.log": "one\ntwo\n", "b.log": "three\r\n"}
    pasted = 0
    for seed in range(300):
        done, moved = beside(texts, Random(seed))
        for name, text in texts.items():
            first = text.split()[0]
            assert done[name].splitlines()[moved.get(name, 0)] == first
            assert text in done[name]
        pasted += bool(moved)
        assert len(done) - len(texts) <= 4
    assert pasted > 3


def test_citations_follow_their_lines() -> None:
    assert shifted(["a.log:3", "b:c.log:1"], {"a.log": 10}) == ["a.log:13", "b:c.log:1"]


def test_the_truth_cites_the_same_lines_with_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def cited(share: float) -> list[list[str]]:
        monkeypatch.setattr(wellness, "SHARE", share)
        made = [*scenes("rank_failure", "exception", 12), *runs("rank_failure", "exception", 3)]
        texts = [{name: text.splitlines() for name, text in one.files.items()} for one in made]
        places = [[place.rpartition(":") for place in truth_of(one)["decisive_lines"]] for one in made]
        return [[files[f][int(n) - 1] for f, _, n in found] for files, found in zip(texts, places, strict=True)]

    assert cited(1.0) == cited(0.0)
    assert any(cited(0.0))


def evidence() -> list[Family]:
    return [family for family in load().families if family.role == "evidence"]


def test_no_head_of_a_table_is_evidence() -> None:
    heads = re.compile(
        r"swpd|procs --|avg-cpu:|%util$|total +used +free|pgpgin/s|#bytes|CPU Affinity|PFC configuration"
    )
    assert not [
        family.id for family in evidence() if any(heads.search(text) for text in (*family.texts, *family.follow))
    ]


def test_exceptions_of_data_and_model_code_end_a_rank() -> None:
    raised = re.compile(
        r"^(StopIteration|KeyError|IndexError|zipfile\.|PIL\.|json\.decoder|UnicodeDecodeError|RuntimeError: "
        r"(stack expects|mat1|The size of tensor|PytorchStreamReader|CUDA error: device-side))"
    )
    found = [family for family in evidence() if any(raised.match(text) for text in family.texts)]
    assert len(found) > 8
    assert {family.label for family in found} == {"rank_failure"}
