"""What is said beside the verdict: nothing is advised where nothing was concluded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fsdpclassify import diagnosis
from fsdpclassify.catalogue import Catalogue, Cause
from fsdpclassify.diagnosis import Model, diagnose
from fsdpclassify.evidence import Weighed
from fsdpclassify.features import LEDGER_FACTS, LINE_FACTS
from fsdpclassify.reading import find
from fsdpclassify.records import Abstention, Diagnosis, Line, Remedy
from fsdpclassify.sources import from_text

Array = NDArray[np.float32]
LABELS = ("straggler", "rank_failure", "other")
OOM = "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
TIMEOUT = (
    "[rank0]:[E512 21:10:07.118820344 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600013"
    " milliseconds before timing out."
)
CATALOGUE = Catalogue(
    causes=(
        Cause(
            id="gpu_oom", label="rank_failure", title="A rank ran out of GPU memory", separate_by="s", look_alike=(),
            remedy=Remedy(summary="Less memory.", steps=("smaller batch",)),
        ),
        Cause(
            id="teardown", label="other", title="Teardown", separate_by="s", look_alike=(),
            remedy=Remedy(summary="Destroy the group.", steps=("destroy",)),
        ),
    ),
    boundaries={"straggler": "late"},
)  # fmt: skip


@dataclass(slots=True)
class FakeModel:
    """A bundle whose first label is `label` with probability `p`, all of it resting on the words OOM and Rank."""

    label: str = "rank_failure"
    p: float = 0.9
    threshold: float = 0.5
    minimum_evidence: float = 0.02
    weight_of_words: float = 0.2
    weight_of_structure: float = 0.0
    words: frozenset[str] | None = None

    def model(self) -> Model:
        thresholds = {m: dict.fromkeys(LABELS, self.threshold) for m in ("balanced", "high-precision")}
        thresholds["best-guess"] = dict.fromkeys(LABELS, 0.0)
        limits = {"minimum_evidence": self.minimum_evidence, "minimum_known": 0.3}
        manifest = SimpleNamespace(labels=LABELS, thresholds=thresholds, out_of_scope=limits)
        encoder = SimpleNamespace(dimension=2, encode=lambda texts: np.array([[1, "memory" in t] for t in texts]))
        causes = SimpleNamespace(score=lambda v: np.array([[row[1], 0.3] for row in v]).reshape(len(v), 2))
        parts: Any = {"manifest": manifest, "encoder": encoder, "causes": causes, "head": SimpleNamespace(run=self.run)}
        return Model(catalogue=CATALOGUE, words=self.words, **parts)

    def run(self, vectors: Array, facts: Array, ledger: Array) -> tuple[Array, Array]:
        words = float(vectors[:, 1].sum() > 0)
        structure = float(ledger[LEDGER_FACTS.index("early_oom")])
        p = self.p - self.weight_of_words * (1.0 - words) - self.weight_of_structure * (1.0 - structure)
        rest = (1.0 - p) / (len(LABELS) - 1)
        probabilities = np.array([p if name == self.label else rest for name in LABELS], np.float32)
        evidence = np.tile(np.array([[0.1, 0.2, 0.1]], np.float32), (len(vectors), 1))
        return probabilities, evidence


def _diagnose(fake: FakeModel, *lines: str, mode: str = "balanced") -> Diagnosis:
    found = find(from_text(["\n".join(lines) + "\n"]))
    (incident,) = found.incidents
    return diagnose(
        fake.model(), incident, found.kinds, ["train.log"], mode=mode, mask=lambda t: t.replace("2.00", "*")
    )


def test_a_verdict_brings_its_cause_its_remedy_and_its_ranks() -> None:
    found = _diagnose(FakeModel(), OOM, TIMEOUT)
    assert (found.verdict, found.model_label, found.abstained_because) == ("rank_failure", "rank_failure", None)
    assert found.cause == "gpu_oom"
    assert found.remedy.summary == "Less memory."
    assert found.initiating_ranks == found.failed_ranks == (2,)
    assert found.waiting_ranks == (0,)
    assert len(found.collect_next) <= 2


def test_an_undetermined_incident_brings_none_of_them_but_says_what_to_record() -> None:
    found = _diagnose(FakeModel(threshold=0.95), OOM, TIMEOUT)
    assert (found.verdict, found.model_label) == ("undetermined", "rank_failure")
    assert found.abstained_because is Abstention.LOW_CONFIDENCE
    assert (found.cause, found.remedy, found.initiating_nodes) == (None, Remedy(), ())
    assert found.initiating_ranks == (2,)  # which rank failed is shown, whatever the model thinks of it
    assert found.collect_next
    assert found.failed_ranks == (2,)


def test_out_of_scope_may_name_a_cause_and_still_advises_nothing() -> None:
    found = _diagnose(FakeModel(label="other"), OOM, TIMEOUT)
    assert found.abstained_because is Abstention.OUT_OF_SCOPE
    assert found.cause == "teardown"
    assert found.remedy == Remedy()


@pytest.mark.parametrize(("mode", "verdict"), [("best-guess", "straggler"), ("balanced", "undetermined")])
def test_without_any_evidence_only_best_guess_names_a_cause(mode: str, verdict: str) -> None:
    found = _diagnose(FakeModel(label="straggler", weight_of_words=0.0), TIMEOUT, mode=mode)
    assert found.verdict == verdict
    assert found.abstained_because is (None if mode == "best-guess" else Abstention.NO_EVIDENCE)


def test_best_guess_follows_the_first_label_even_against_all_lines() -> None:
    guess = FakeModel(label="straggler", weight_of_words=-0.1)
    lines = ("[rank1]: pinned memory is slow today", TIMEOUT)
    assert _diagnose(guess, *lines, mode="best-guess").verdict == "straggler"
    assert _diagnose(guess, *lines).abstained_because is Abstention.NO_EVIDENCE


def test_a_printed_structural_fact_is_evidence_without_any_wording() -> None:
    bare = FakeModel(weight_of_words=0.0)
    assert _diagnose(bare, OOM, TIMEOUT).abstained_because is Abstention.NO_EVIDENCE
    (first, *_) = (found := _diagnose(FakeModel(weight_of_words=0.0, weight_of_structure=0.3), OOM, TIMEOUT)).evidence
    assert found.verdict == "rank_failure"
    assert (first.line, round(first.weight, 3)) == (1, 0.3)


def test_probabilities_carry_every_label_and_that_of_the_first() -> None:
    found = _diagnose(FakeModel(), OOM, TIMEOUT)
    assert set(found.probabilities) == set(LABELS)
    assert found.probability == found.probabilities["rank_failure"] == pytest.approx(0.9)
    assert [a.label for a in found.alternatives] == ["straggler", "other"] or found.alternatives == ()


def test_evidence_is_masked_and_lies_in_the_named_input() -> None:
    (first, *_) = _diagnose(FakeModel(), OOM, TIMEOUT).evidence
    assert (first.path, first.line, first.rank) == ("train.log", 1, 2)
    assert "allocate * GiB" in first.text
    assert first.weight == pytest.approx(0.2, abs=1e-3)
    assert first.why == "an error before the wait was given up, on a rank not shown waiting"


def _reason(score: float, weight: float = 0.2, why: str | None = None, row: int | None = 0) -> str:
    line = Line(source=0, number=1, text="x", body="x")
    weighed = Weighed(line=line, row=row, supports="rank_failure", weight=weight, why=why)
    return diagnosis._reason(weighed, np.array([[score, 0.9]], np.float32), CATALOGUE)


def test_why_a_line_counts() -> None:
    assert _reason(0.9, why="a printed fact") == "a printed fact"
    assert _reason(0.31) == "reads like: a rank ran out of GPU memory"
    assert _reason(0.29) == "the model's reading: its words, when and by whom printed"
    assert _reason(0.29, weight=-0.2) == "speaks against it"
    assert _reason(0.9, row=None) == "the model's reading: its words, when and by whom printed"


def test_the_model_sees_the_documented_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[tuple[int, ...], ...]] = []
    fake = FakeModel()
    model = fake.model()

    def run(vectors: Array, facts: Array, ledger: Array) -> tuple[Array, Array]:
        seen.append((vectors.shape, facts.shape, ledger.shape))
        return fake.run(vectors, facts, ledger)

    found = find(from_text([f"{OOM}\n{TIMEOUT}\n"]))
    diagnosis.score(replace(model, head=SimpleNamespace(run=run)), found.incidents[0], found.kinds)  # type: ignore[arg-type]
    assert seen == [((2, 2), (2, len(LINE_FACTS)), (len(LEDGER_FACTS),))]


def test_paths_are_indexed_by_source() -> None:
    found = find(from_text(["starting\n", f"{OOM}\n{TIMEOUT}\n"]))
    shown = diagnose(FakeModel().model(), found.incidents[0], found.kinds, ["a", "b"], mode="balanced", mask=str)
    assert {e.path for e in shown.evidence} == {"b"}


KNOWN = frozenset({"step", "num", "loss", "low", "memory", "on", "rank"})
STEP, MEMORY = "[rank2]: step 5 loss 2.1", "[rank2]: low memory on rank"


def _told(*lines: str, mode: str = "balanced", words: frozenset[str] | None = KNOWN) -> Diagnosis:
    return _diagnose(FakeModel(words=words), *lines, TIMEOUT, mode=mode)


def test_a_log_in_unknown_words_is_out_of_scope_however_sure_the_model_is() -> None:
    found = _told("[rank2]: orlop kiln warmed", "[rank2]: capstan memory wound")
    assert (found.verdict, found.abstained_because) == ("undetermined", Abstention.OUT_OF_SCOPE)
    assert (found.model_label, found.probability) == ("rank_failure", pytest.approx(0.9))


def test_enough_known_lines_or_no_vocabulary_leave_the_verdict() -> None:
    assert _told(STEP, "[rank2]: orlop memory warmed").verdict == "rank_failure"
    assert _told("[rank2]: orlop memory warmed", words=None).verdict == "rank_failure"


def test_a_clear_line_in_known_words_speaks_in_any_jargon() -> None:
    jargon = ("[rank2]: orlop kiln warmed", "[rank2]: capstan hawser wound", "[rank2]: gantry swivelled aft")
    assert _told(*jargon, MEMORY).verdict == "rank_failure"


def test_a_structural_fact_needs_no_known_word() -> None:
    assert _told(OOM, words=frozenset()).verdict == "rank_failure"


def test_a_best_guess_is_given_for_any_text() -> None:
    assert _told("[rank2]: orlop kiln memory", mode="best-guess").verdict == "rank_failure"
