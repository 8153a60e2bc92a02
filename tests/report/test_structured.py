from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from fsdpclassify.records import Abstention, Diagnosis, Evidence, FatalError, InputRow, InputStatus, Report
from fsdpclassify.report import report_as_dict, score_as_dict, to_json
from fsdpclassify.report.structured import iso, load_schema, one_line


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = load_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_a_verdict_validates_and_survives_json(
    validator: Draft202012Validator, make_report: Callable[..., Report]
) -> None:
    written = to_json(report_as_dict(make_report()))
    validator.validate(json.loads(written))
    assert written.endswith("\n")


def test_undetermined_and_no_timeout_validate(
    validator: Draft202012Validator, make_report: Callable[..., Report], undetermined: Diagnosis
) -> None:
    fatal = FatalError(path="a.log", line=7, rank=None, text="CUDA out of memory")
    validator.validate(report_as_dict(make_report(incidents=(undetermined,))))
    validator.validate(report_as_dict(make_report(incidents=(), first_fatal_error=fatal)))
    validator.validate(report_as_dict(make_report(incidents=(), inputs=())))


def test_every_key_is_present_when_nothing_is_known(
    validator: Draft202012Validator,
    make_report: Callable[..., Report],
    make_diagnosis: Callable[..., Diagnosis],
) -> None:
    bare = make_diagnosis(collective=None, world_size=None, evidence=(), alternatives=(), ledger=(), waiting_ranks=())
    value = report_as_dict(make_report(incidents=(bare,)))
    validator.validate(value)
    assert value["incidents"][0]["collective"] is None


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda v: v.pop("elapsed_ms"), "elapsed_ms"),
        (lambda v: v.update(surprise=1), "surprise"),
        (lambda v: v["incidents"][0].update(verdict="other"), "other"),
        (lambda v: v["incidents"][0]["ledger"][0].pop("dump"), "dump"),
        (lambda v: v["incidents"][0].update(verdict="undetermined"), "null"),
        (lambda v: v.update(first_fatal_error={"path": "a", "line": 1, "rank": None, "text": ""}), "null"),
        (lambda v: v["incidents"][0]["evidence"][0].update(line=0), "minimum"),
        (lambda v: v["incidents"][0]["evidence"][0].update(text="x" * 501), "long"),
    ],
)
def test_the_schema_refuses_what_the_contract_forbids(
    validator: Draft202012Validator,
    make_report: Callable[..., Report],
    change: Callable[[dict[str, Any]], object],
    where: str,
) -> None:
    value = report_as_dict(make_report())
    change(value)
    assert not validator.is_valid(value)
    assert where in str([error.message for error in validator.iter_errors(value)])


def test_the_first_fatal_error_is_null_beside_an_incident(make_report: Callable[..., Report]) -> None:
    fatal = FatalError(path="a.log", line=7, rank=None, text="boom")
    assert report_as_dict(make_report(first_fatal_error=fatal))["first_fatal_error"] is None


def test_times_are_iso_only_where_the_log_printed_a_date(
    make_report: Callable[..., Report], make_diagnosis: Callable[..., Diagnosis]
) -> None:
    dated = report_as_dict(make_report())["incidents"][0]
    assert dated["collective"]["onset"] == "2026-03-05T04:11:09"
    assert dated["collective"]["detected"] == "2026-03-05T04:21:09.250"
    assert dated["ledger"][0]["log_end"] == "2026-03-05T04:21:10"
    timed = make_diagnosis(collective=replace(make_diagnosis().collective, dated=False))
    undated = report_as_dict(make_report(incidents=(timed,)))["incidents"][0]
    assert undated["collective"]["onset"] is None
    assert undated["ledger"][0]["log_end"] is None


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), 1e300, -1e300])
def test_impossible_times_become_null(seconds: float) -> None:
    assert iso(seconds, dated=True) is None


def test_numbers_that_json_cannot_hold_become_null(make_report: Callable[..., Report]) -> None:
    assert report_as_dict(make_report())["incidents"][0]["ledger"][0]["step_trend"] is None


def test_rank_lists_ascend(make_report: Callable[..., Report], make_diagnosis: Callable[..., Diagnosis]) -> None:
    found = make_diagnosis(waiting_ranks=(3, 0, 2))
    assert report_as_dict(make_report(incidents=(found,)))["incidents"][0]["waiting_ranks"] == [0, 2, 3]


def test_why_and_status_are_plain_texts(make_report: Callable[..., Report], undetermined: Diagnosis) -> None:
    row = InputRow(path="x", kind=None, bytes=0, lines=0, status=InputStatus.UNREADABLE, message="denied")
    value = report_as_dict(make_report(incidents=(undetermined,), inputs=(row,)))
    assert type(value["incidents"][0]["abstained_because"]) is str
    assert value["inputs"][0] == {
        "path": "x", "kind": None, "bytes": 0, "lines": 0, "status": "unreadable", "message": "denied"
    }  # fmt: skip


def test_score_names_the_likeliest_label_and_null_without_an_incident() -> None:
    assert score_as_dict({"other": 0.6, "desync": 0.4})["label"] == "other"
    assert score_as_dict({}) == {"schema_version": 1, "label": None, "probabilities": {}}


@given(st.text(max_size=700))
def test_any_text_becomes_ascii_json_of_one_line(text: str) -> None:
    shown = one_line(text)
    assert "\n" not in shown
    assert len(shown) <= 500
    written = to_json({"text": shown})
    assert written.isascii()
    assert json.loads(written)["text"] == shown


def test_no_control_character_of_a_log_is_written_raw(
    make_report: Callable[..., Report], make_diagnosis: Callable[..., Diagnosis]
) -> None:
    evil = Evidence(
        path="\x1b]0;owned\x07.log", line=1, rank=None, text="\x1b[2J\x9b31m\u202e\x00", supports="desync",
        weight=0.1, why="",
    )  # fmt: skip
    written = to_json(report_as_dict(make_report(incidents=(make_diagnosis(evidence=(evil,)),))))
    assert not any(ord(char) < 32 and char != "\n" for char in written)
    assert written.isascii()


def test_every_reason_to_abstain_is_in_the_schema() -> None:
    allowed = load_schema()["$defs"]["incident"]["properties"]["abstained_because"]["enum"]
    assert {str(reason) for reason in Abstention} <= set(allowed)
