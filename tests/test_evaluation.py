from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from fsdpclassify.evaluation import Count, evaluate_reports
from fsdpclassify.evaluation_outcome import judge
from fsdpclassify.evaluation_text import evaluation_as_dict, render_evaluation
from fsdpclassify.labelled import LabelledIncident
from fsdpclassify.records import Diagnosis, Evidence, FatalError, ModelInfo, Remedy, Report


def _incident(label: str, **changes: object) -> LabelledIncident:
    return LabelledIncident(**({"folder": Path("x"), "id": "inc", "label": label} | changes))


def _diagnosis(verdict: str, guess: str | None = None, probability: float = 0.8, **changes: object) -> Diagnosis:
    guess = guess or ("other" if verdict == "undetermined" else verdict)
    rest = [name for name in ("desync", "straggler", "other") if name != guess][:2]
    values: dict[str, Any] = {
        "verdict": verdict,
        "cause": None,
        "probability": probability,
        "probabilities": {guess: probability, **{name: (1 - probability) / 2 for name in rest}},
        "model_label": guess,
        "abstained_because": None,
        "collective": None,
        "world_size": None,
        "initiating_ranks": (),
        "initiating_nodes": (),
        "waiting_ranks": (),
        "failed_ranks": (),
        "evidence": (),
        "alternatives": (),
        "remedy": Remedy(),
        "collect_next": (),
        "ledger": (),
    }
    return Diagnosis(**(values | changes))


def _report(*found: Diagnosis, fatal: FatalError | None = None) -> Report:
    return Report(
        tool_version="0", model=ModelInfo(name="m", version="1", sha256=""), inputs=(), incidents=found,
        first_fatal_error=fatal, elapsed_ms=0,
    )  # fmt: skip


def _line(path: str, line: int) -> Evidence:
    return Evidence(path=path, line=line, rank=None, text="", supports="desync", weight=0.1, why="")


@pytest.mark.parametrize(
    ("label", "changes", "conclusion", "strict", "accepted"),
    [
        ("desync", {}, "desync", True, True),
        ("desync", {}, "straggler", False, False),
        ("desync", {"alt_label": "straggler"}, "straggler", False, True),
        ("desync", {}, "undetermined", False, False),
        ("desync", {"determinable_from_log": "partly"}, "undetermined", False, False),
        ("desync", {"determinable_from_log": "no"}, "undetermined", False, True),
        ("desync", {"determinable_from_log": "no"}, "straggler", False, False),
        ("other", {}, "undetermined", True, True),
        ("undetermined", {}, "undetermined", True, True),
        ("undetermined", {}, "desync", False, False),
        ("desync", {"alt_label": "other"}, "undetermined", False, True),
        ("no_timeout", {}, "undetermined", False, False),
    ],
)
def test_strict_and_accepted(
    label: str, changes: dict[str, Any], conclusion: str, strict: bool, accepted: bool
) -> None:
    outcome = judge(_incident(label, **changes), _report(_diagnosis(conclusion)))
    assert (outcome.strict, outcome.accepted) == (strict, accepted)


def test_no_incident_is_the_conclusion_no_timeout() -> None:
    assert judge(_incident("no_timeout"), _report()).strict
    missed = judge(_incident("desync", determinable_from_log="no"), _report())
    assert (missed.conclusion, missed.accepted) == ("no_timeout", False)


def test_the_last_incident_decides() -> None:
    report = _report(_diagnosis("straggler"), _diagnosis("desync"))
    assert judge(_incident("desync"), report).strict


def test_an_abstention_is_a_miss_and_no_false_positive() -> None:
    incidents = [_incident("desync"), _incident("desync"), _incident("straggler")]
    reports = [_report(_diagnosis(name)) for name in ("desync", "undetermined", "desync")]
    result = evaluate_reports(incidents, reports)
    desync = next(figures for figures in result.classes if figures.label == "desync")
    assert (desync.precision, desync.recall) == (0.5, 0.5)
    assert desync.f1 == 0.5
    straggler = next(figures for figures in result.classes if figures.label == "straggler")
    assert (straggler.precision, straggler.recall, straggler.f1) == (None, 0.0, 0.0)
    assert result.macro_f1 == 0.25
    assert result.abstained == Count(hits=1, total=3)
    assert result.named_right == Count(hits=1, total=2)
    assert result.confusion == {"desync": {"desync": 1, "undetermined": 1}, "straggler": {"desync": 1}}


@pytest.mark.parametrize(
    ("truth", "named", "exact", "wrong"),
    [
        ((1,), (1,), True, False),
        ((1,), (), False, False),
        ((1,), (1, 2), False, True),
        ((1, 2), (1,), False, False),
        ((), (3,), None, True),
        ((), (), None, False),
        (None, (3,), None, None),
    ],
)
def test_guilty_ranks(
    truth: tuple[int, ...] | None, named: tuple[int, ...], exact: bool | None, wrong: bool | None
) -> None:
    incident = _incident("desync", initiating_ranks=truth)
    outcome = judge(incident, _report(_diagnosis("desync", initiating_ranks=named)))
    assert (outcome.ranks_exact, outcome.ranks_wrong) == (exact, wrong)


def test_waiting_ranks_are_judged_only_where_stated() -> None:
    found = _report(_diagnosis("desync", waiting_ranks=(2, 0)))
    assert judge(_incident("desync", waiting_ranks=(0, 2)), found).waiting_exact is True
    assert judge(_incident("desync", waiting_ranks=()), found).waiting_exact is False
    assert judge(_incident("desync"), found).waiting_exact is None


def test_evidence_hits_count_the_first_three_lines() -> None:
    shown = tuple(_line("a.log", n) for n in (9, 8, 7, 1))
    report = _report(_diagnosis("desync", evidence=shown))
    assert judge(_incident("desync", decisive_lines=(("a.log", 7),)), report).evidence_hit is True
    assert judge(_incident("desync", decisive_lines=(("a.log", 1),)), report).evidence_hit is False
    assert judge(_incident("desync", decisive_lines=(("b.log", 7),)), report).evidence_hit is False
    assert judge(_incident("desync"), report).evidence_hit is None
    assert judge(_incident("desync", decisive_lines=(("a.log", 7),)), _report()).evidence_hit is False


def test_of_no_timeout_the_first_fatal_error_is_the_evidence() -> None:
    incident = _incident("no_timeout", decisive_lines=(("a.log", 4),))
    fatal = FatalError(path="a.log", line=4, rank=None, text="")
    outcome = judge(incident, _report(fatal=fatal))
    assert (outcome.fatal_hit, outcome.evidence_hit) == (True, None)
    assert judge(incident, _report()).fatal_hit is False


def test_brier_and_log_loss_by_hand() -> None:
    result = evaluate_reports([_incident("desync")], [_report(_diagnosis("straggler", probability=0.8))])
    assert result.brier == pytest.approx(0.8**2 + 0.9**2 + 0.1**2)
    assert result.log_loss == pytest.approx(-math.log(0.1))


def test_probabilities_are_not_judged_where_the_model_lacks_the_label() -> None:
    result = evaluate_reports([_incident("undetermined")], [_report(_diagnosis("undetermined"))])
    assert result.brier is None
    assert result.log_loss is None
    assert result.calibration == ()
    assert "no incident has a label" in render_evaluation(result)


def test_a_probability_of_zero_gives_a_finite_loss() -> None:
    found = _diagnosis("straggler", probability=1.0)
    assert math.isfinite(evaluate_reports([_incident("desync")], [_report(found)]).log_loss or math.nan)


def test_calibration_bins_hold_means_and_shares() -> None:
    reports = [_report(_diagnosis("desync", probability=p)) for p in (0.81, 0.99, 1.0, 0.5)]
    labels = ["desync", "straggler", "desync", "desync"]
    result = evaluate_reports([_incident(label) for label in labels], reports)
    low, high = result.calibration
    assert (low.low, low.high, low.count, low.right) == (0.4, 0.6, 1, 1.0)
    assert high.count == 3
    assert high.mean_probability == pytest.approx((0.81 + 0.99 + 1.0) / 3)
    assert high.right == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"),
    [(8, 10, 0.490162, 0.943318), (0, 10, 0.0, 0.277533), (10, 10, 0.722467, 1.0), (0, 0, 0.0, 1.0)],
)
def test_wilson_intervals(hits: int, total: int, low: float, high: float) -> None:
    assert Count(hits=hits, total=total).interval == pytest.approx((low, high), abs=1e-5)


def test_seen_incidents_are_set_apart(tmp_path: Path) -> None:
    from fsdpclassify.labelled import content_sha256

    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text("x")
    known = _incident("desync", folder=tmp_path)
    (tmp_path / "new" / "logs").mkdir(parents=True)
    fresh = _incident("desync", folder=tmp_path / "new", id="fresh")
    reports = [_report(_diagnosis("desync")), _report(_diagnosis("straggler"))]
    result = evaluate_reports([known, fresh], reports, seen=frozenset({content_sha256(known)}))
    assert result.overall.strict == Count(hits=1, total=2)
    assert result.unseen.strict == Count(hits=0, total=1)
    assert render_evaluation(result).startswith("1 of 2 incidents were seen in training\n")


def _mixed() -> tuple[list[LabelledIncident], list[Report]]:
    """Two rank failures (one abstained on), a straggler and another timeout called one, a quiet log, no timeout."""
    rows = [
        ("rank_failure", "rank_failure", "gpu_oom", "gpu_oom"),
        ("rank_failure", "undetermined", "gpu_oom", None),
        ("straggler", "rank_failure", "checkpoint", "gpu_oom"),
        ("other", "rank_failure", None, None),
        ("undetermined", "undetermined", None, None),
        ("straggler", "straggler", "checkpoint", "data_loading"),
    ]
    incidents = [_incident(label, id=f"i{n}", cause_id=cause) for n, (label, _, cause, _) in enumerate(rows)]
    reports = [_report(_diagnosis(verdict, cause=told)) for _, verdict, _, told in rows]
    return [*incidents, _incident("no_timeout", id="quiet")], [*reports, _report()]


def test_what_is_named_and_how_falsely_by_hand() -> None:
    result = evaluate_reports(*_mixed())
    assert (result.covered.hits, result.covered.total) == (4, 6)
    assert (result.named_right.hits, result.named_right.total) == (2, 4)
    assert (result.false_rank_failure.hits, result.false_rank_failure.total) == (2, 5)
    assert (result.quiet_abstained.hits, result.quiet_abstained.total) == (1, 2)


def test_finer_causes_are_judged_where_the_label_is_a_right_verdict() -> None:
    result = evaluate_reports(*_mixed())
    rows = [(f.label, f.cause, f.strict.hits, f.strict.total, f.named.hits, f.named.total) for f in result.by_cause]
    assert rows == [("rank_failure", "gpu_oom", 1, 2, 1, 1), ("straggler", "checkpoint", 1, 2, 0, 1)]
    assert (result.cause_exact.hits, result.cause_exact.total) == (1, 2)
    assert "  rank_failure: gpu_oom                                         2       1         1          1/1\n" in (
        render_evaluation(result)
    )


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        evaluate_reports([_incident("desync")], [])


def test_text_and_json_hold_the_figures() -> None:
    incidents = [
        _incident("desync", determinable_from_log="yes", initiating_ranks=(1,), decisive_lines=(("a", 1),)),
        _incident("no_timeout", id="quiet"),
        _incident("straggler", id="missed\x1b[31m"),
    ]
    reports = [
        _report(_diagnosis("desync", initiating_ranks=(1,), evidence=(_line("a", 1),))),
        _report(),
        _report(_diagnosis("undetermined", guess="desync", probability=0.4)),
    ]
    result = evaluate_reports(incidents, reports)
    text = render_evaluation(result)
    assert "  all, strict                              2/3  0.667  [0.21, 0.94]\n" in text
    assert "  no_timeout recognised                    1/1" in text
    assert "straggler answered undetermined (first guess desync 0.40)" in text
    assert "\x1b" not in text
    value = json.loads(json.dumps(evaluation_as_dict(result), allow_nan=False))
    assert value["schema_version"] == 1
    assert value["overall"]["strict"]["hits"] == 2
    assert value["by_determinable"]["yes"]["accepted"]["share"] == 1.0
    assert [row["id"] for row in value["incidents"]][1] == "quiet"


def test_nothing_to_evaluate_is_no_crash() -> None:
    result = evaluate_reports([], [])
    assert result.macro_f1 == 0.0
    assert "Verdicts" in render_evaluation(result)
