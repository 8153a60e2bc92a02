"""The Python interface on the released bundle: what goes in, what comes out, and that nothing is guessed."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import fsdpclassify as fc
from fsdpclassify.bundle import manifest_sha256, read_manifest
from fsdpclassify.classifier import Classifier
from fsdpclassify.errors import BundleError, SourceError, UsageError
from fsdpclassify.records import Abstention, Diagnosis, InputStatus, Report
from fsdpclassify.sources import from_text

pytestmark = pytest.mark.model

ROOT = Path(__file__).resolve().parents[1]
BUNDLE = ROOT / "models" / "default"
INCIDENTS = ROOT / "data" / "incidents"
NAMES = ("inc-003", "inc-013", "inc-020", "inc-027", "inc-030", "inc-047")
TIMEOUT = (
    "[rank0]:[E512 21:10:07.118820344 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600013"
    " milliseconds before timing out.\n"
)
OOM = "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier.load(BUNDLE)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "trainer.log"
    path.write_text(OOM + TIMEOUT)
    return path


def _timeless(report: Report) -> Report:
    return replace(report, elapsed_ms=0)


def test_the_report_names_tool_and_model(classifier: Classifier) -> None:
    report, manifest = classifier.classify(TIMEOUT), read_manifest(BUNDLE)
    assert report.tool_version == fc.__version__
    assert (report.model.name, report.model.version) == (manifest.name, manifest.version)
    assert report.model.sha256 == manifest_sha256(BUNDLE)
    assert classifier.labels == manifest.labels


def test_text_bytes_path_and_paths_give_one_answer(classifier: Classifier, log: Path) -> None:
    found = classifier.classify(log)
    assert [d.verdict for d in found.incidents] == ["rank_failure"]
    assert found == replace(classifier.classify([log]), elapsed_ms=found.elapsed_ms)
    assert found == replace(classifier.classify(iter([log])), elapsed_ms=found.elapsed_ms)
    for text in (OOM + TIMEOUT, (OOM + TIMEOUT).encode()):
        given = classifier.classify(text)
        assert [row.path for row in given.inputs] == ["<text>"]
        assert given.incidents[0].probabilities == found.incidents[0].probabilities
        assert [(e.line, e.weight) for e in given.incidents[0].evidence] == [
            (e.line, e.weight) for e in found.incidents[0].evidence
        ]


def test_a_path_in_a_text_is_text(classifier: Classifier, log: Path) -> None:
    report = classifier.classify(str(log))
    assert (report.incidents, report.inputs[0].path) == ((), "<text>")
    assert classifier.score(str(log)) == {}
    assert classifier.classify_paths([str(log)]).incidents


@pytest.mark.parametrize("wrong", [["a.log"], [b"x"], [None], [Path("a"), "b"]])
def test_an_iterable_of_texts_is_refused(classifier: Classifier, wrong: list[object]) -> None:
    with pytest.raises(TypeError, match=r"wrap paths in pathlib\.Path"):
        classifier.classify(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_score_is_classify_s_probabilities_and_sums_to_one(classifier: Classifier, name: str) -> None:
    logs = INCIDENTS / name / "logs"
    report, scores = classifier.classify(logs), classifier.score(logs)
    assert scores == (report.incidents[-1].probabilities if report.incidents else {})
    assert classifier.score_paths([logs]) == scores
    if scores:
        assert tuple(scores) == classifier.labels
        assert sum(scores.values()) == pytest.approx(1.0, abs=1e-5)


def test_hung_turns_the_end_of_a_log_into_an_incident(classifier: Classifier) -> None:
    text = "[rank0]: step 1 loss 2.1\n[rank0]: step 2 loss 2.0\n"
    assert classifier.classify(text).incidents == ()
    assert classifier.score(text) == {}
    assert classifier.inspect(text).incidents == ()
    assert len(classifier.classify(text, hung=True).incidents) == 1
    assert set(classifier.score(text, hung=True)) == set(classifier.labels)
    assert len(classifier.inspect(text, hung=True).incidents) == 1


PHRASES = {
    "AllGather timed out waiting for work on rank 3": (3,),
    "FSDP forward pass hangs at param all-gather: wait() never completes on rank 5": (5,),
    "NCCL timeout error during FSDP parameter shard collection": (),
    "FSDP reduce_scatter backward hook timed out waiting for gradient sync": (),
}


@pytest.mark.parametrize(("phrase", "waiting"), PHRASES.items())
def test_each_phrase_alone_is_one_undetermined_incident(
    classifier: Classifier, phrase: str, waiting: tuple[int, ...]
) -> None:
    for text in (phrase, phrase + "\n", f"noise\n{phrase}\nnoise\n"):
        (found,) = classifier.classify(text).incidents
        assert found.verdict == "undetermined"
        assert found.waiting_ranks == waiting
        assert found.initiating_ranks == ()
        assert found.remedy.summary is None
        assert found.collect_next


def test_memory_of_one_rank_alone_is_no_incident(classifier: Classifier) -> None:
    text = "Rank 2 shows CUDA memory 0 bytes allocated while other ranks have full utilization\n"
    assert classifier.classify(text).incidents == ()


@pytest.mark.parametrize("text", ["", b"", "\n", " \n\t\n", "all is well\n"])
def test_a_text_without_an_incident(classifier: Classifier, text: str | bytes) -> None:
    report = classifier.classify(text)
    assert (report.incidents, report.first_fatal_error) == ((), None)


def test_a_crash_without_a_waiting_rank_is_a_fatal_error(classifier: Classifier) -> None:
    fatal = classifier.classify(OOM).first_fatal_error
    assert fatal is not None
    assert (fatal.line, fatal.rank) == (1, 2)


def test_two_threads_answer_like_one(classifier: Classifier) -> None:
    work = [INCIDENTS / name / "logs" for name in NAMES] * 4
    alone = [_timeless(classifier.classify(logs)) for logs in work]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda logs: _timeless(classifier.classify(logs)), work))
    assert together == alone


def test_a_pickled_classifier_answers_the_same(classifier: Classifier, log: Path) -> None:
    copy = pickle.loads(pickle.dumps(classifier))
    assert (copy.info, copy.labels) == (classifier.info, classifier.labels)
    assert _timeless(copy.classify(log)) == _timeless(classifier.classify(log))


def test_a_second_look_gives_the_same_answer(classifier: Classifier, log: Path) -> None:
    assert _timeless(classifier.classify(log)) == _timeless(classifier.classify(log))
    assert _timeless(Classifier.load(BUNDLE).classify(log)) == _timeless(classifier.classify(log))


def _modes(classifier: Classifier) -> Iterator[tuple[Diagnosis, Diagnosis, Diagnosis]]:
    for folder in sorted(INCIDENTS.iterdir()):
        reports = [classifier.classify(folder / "logs", mode=m) for m in ("best-guess", "balanced", "high-precision")]
        yield from zip(*(r.incidents for r in reports), strict=True)


def test_a_stricter_mode_only_abstains_more(classifier: Classifier) -> None:
    counts = [0, 0, 0]
    for guess, balanced, strict in _modes(classifier):
        assert guess.probabilities == balanced.probabilities == strict.probabilities
        assert guess.verdict == (guess.model_label if guess.model_label != "other" else "undetermined")
        assert balanced.verdict in (guess.verdict, "undetermined")
        assert strict.verdict in (balanced.verdict, "undetermined")
        for i, found in enumerate((guess, balanced, strict)):
            counts[i] += found.verdict != "undetermined"
    assert counts[0] > counts[1] > counts[2] > 0


def test_an_unknown_mode_is_refused_by_name(classifier: Classifier) -> None:
    with pytest.raises(UsageError, match="sloppy"):
        classifier.classify(TIMEOUT, mode="sloppy")
    with pytest.raises(UsageError, match="sloppy"):
        classifier.classify_sources(from_text([]), mode="sloppy")


def test_a_cap_on_bytes_marks_the_input_and_reads_the_rest(classifier: Classifier, log: Path) -> None:
    report = classifier.classify(log, max_bytes=len(OOM))
    assert report.inputs[0].status is InputStatus.TRUNCATED
    assert report.incidents == ()


def test_secrets_are_hidden_unless_told_otherwise(classifier: Classifier, tmp_path: Path) -> None:
    path = tmp_path / "trainer.log"
    path.write_text(OOM.replace("2.00 GiB", "2.00 GiB. token=hf_abcdefghijklmnopqrstuvwxyz012345") + TIMEOUT)
    shown = {mask: repr(classifier.classify(path, mask=mask).incidents[0].evidence) for mask in ("secrets", "none")}
    assert "hf_abcdefghij" not in shown["secrets"]
    assert "hf_abcdefghij" in shown["none"]


def test_several_attempts_are_several_incidents_and_score_is_the_last(classifier: Classifier) -> None:
    step = "2026-05-12T{1}:00Z [rank0]: step {0} loss 2.1\n"
    first, second = (f"2026-05-12T{clock}:07Z " + TIMEOUT.replace("21:10", clock) for clock in ("21:10", "21:40"))
    text = step.format(1, "20:59") + OOM + first + step.format(2, "21:20") + second
    report = classifier.classify(text)
    assert len(report.incidents) == 2
    assert classifier.score(text) == report.incidents[-1].probabilities


def test_the_module_s_own_functions_use_the_bundle_of_the_environment(
    classifier: Classifier, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FSDPCLASSIFY_MODEL", str(BUNDLE))
    monkeypatch.setattr(fc, "_default", [])
    assert fc.score(log) == classifier.score(log)
    assert _timeless(fc.classify(log)) == _timeless(classifier.classify(log))
    assert fc.classify(log, mode="high-precision").model == classifier.info


def test_a_bundle_that_is_none_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"manifest\.json"):
        Classifier.load(tmp_path)


def test_abstentions_carry_their_reason(classifier: Classifier) -> None:
    (found,) = classifier.classify(TIMEOUT).incidents
    assert (found.verdict == "undetermined") == (found.abstained_because is not None)
    assert found.abstained_because in (*Abstention, None)


@pytest.mark.model
def test_a_score_of_nothing_readable_is_an_error_and_not_a_healthy_log(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="nothing could be read"):
        Classifier.load().score(tmp_path / "missing.log")


def test_loading_beside_the_reading_gives_the_same_answer(classifier: Classifier, log: Path) -> None:
    beside = Classifier.load(BUNDLE, wait=False)
    assert _timeless(beside.classify(log)) == _timeless(classifier.classify(log))
    assert pickle.loads(pickle.dumps(beside)).labels == classifier.labels


@pytest.mark.parametrize("text", [TIMEOUT, "all is well\n"])
def test_without_waiting_a_changed_bundle_is_refused_before_any_answer(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(BUNDLE, folder)
    with (folder / "head.onnx").open("ab") as graph:
        graph.write(b"\0")
    changed = Classifier.load(folder, wait=False)
    with pytest.raises(BundleError, match=r"head\.onnx"):
        changed.classify(text)
    with pytest.raises(BundleError, match=r"head\.onnx"):
        Classifier.load(folder)
