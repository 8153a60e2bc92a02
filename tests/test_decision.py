from __future__ import annotations

import pytest

from fsdpclassify import manifest
from fsdpclassify.decision import MODES, UNDETERMINED, Verdict, decide
from fsdpclassify.records import Abstention

LABELS = ("straggler", "desync", "other")
THRESHOLDS = {"straggler": 0.7, "desync": 0.5, "other": 0.0}


def _decide(straggler: float, desync: float, **changes: float | bool) -> Verdict:
    given = dict(zip(LABELS, (straggler, desync, 1.0 - straggler - desync), strict=True))
    options = {"evidence": 1.0, "unlike": False, "minimum_evidence": 0.02} | changes
    return decide(given, THRESHOLDS, **options)


def test_a_sure_label_becomes_the_verdict() -> None:
    assert _decide(0.8, 0.1) == Verdict(
        verdict="straggler", model_label="straggler", probability=0.8, abstained_because=None
    )


@pytest.mark.parametrize(("p", "verdict"), [(0.70, "straggler"), (0.699, UNDETERMINED)])
def test_the_threshold_itself_suffices(p: float, verdict: str) -> None:
    assert _decide(p, 0.1).verdict == verdict


def test_each_label_has_its_own_threshold() -> None:
    assert _decide(0.1, 0.6).verdict == "desync"
    assert _decide(0.6, 0.1).abstained_because is Abstention.LOW_CONFIDENCE


def test_a_label_without_threshold_needs_one_half() -> None:
    options = {"evidence": 1.0, "unlike": False, "minimum_evidence": 0.0}
    assert decide({"ours": 0.5, "other": 0.5}, {}, **options).verdict == "ours"
    assert decide({"ours": 0.49, "other": 0.01}, {}, **options).abstained_because is Abstention.LOW_CONFIDENCE


def test_other_is_never_a_verdict_however_sure() -> None:
    found = _decide(0.0, 0.0)
    assert (found.verdict, found.model_label, found.probability) == (UNDETERMINED, "other", 1.0)
    assert found.abstained_because is Abstention.OUT_OF_SCOPE


def test_text_unlike_the_training_data_is_out_of_scope() -> None:
    assert _decide(0.9, 0.05, unlike=True).abstained_because is Abstention.OUT_OF_SCOPE


@pytest.mark.parametrize(("evidence", "verdict"), [(0.02, "straggler"), (0.019, UNDETERMINED)])
def test_a_label_that_rests_on_nothing_is_no_verdict(evidence: float, verdict: str) -> None:
    found = _decide(0.9, 0.05, evidence=evidence)
    assert found.verdict == verdict
    assert found.abstained_because is (None if verdict == "straggler" else Abstention.NO_EVIDENCE)


def test_the_weightiest_reason_is_given() -> None:
    nothing_holds = {"unlike": True, "evidence": 0.0}
    assert _decide(0.5, 0.3, **nothing_holds).abstained_because is Abstention.LOW_CONFIDENCE
    assert _decide(0.9, 0.05, **nothing_holds).abstained_because is Abstention.OUT_OF_SCOPE
    assert _decide(0.1, 0.1, **nothing_holds).abstained_because is Abstention.OUT_OF_SCOPE


def test_an_abstention_keeps_what_the_model_said() -> None:
    found = _decide(0.6, 0.3)
    assert (found.model_label, found.probability) == ("straggler", 0.6)


def test_the_modes_are_those_of_a_manifest() -> None:
    assert set(MODES) == set(manifest.MODES)
