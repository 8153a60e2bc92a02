from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner, Result

import fsdpclassify.classifier
from fsdpclassify.cli import app
from fsdpclassify.errors import BundleError, SourceError
from fsdpclassify.records import (
    Abstention,
    Diagnosis,
    FatalError,
    InputKind,
    InputRow,
    InputStatus,
    ModelInfo,
    Remedy,
    Report,
)
from fsdpclassify.report.structured import load_schema

TIMEOUT_LINE = (
    "[rank0]:[E512 21:10:07.118820344 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600013"
    " milliseconds before timing out.\n"
)


def _diagnosis(verdict: str = "desync") -> Diagnosis:
    sure = verdict != "undetermined"
    return Diagnosis(
        verdict=verdict, cause=None, probability=0.7, probabilities={"desync": 0.7, "straggler": 0.3},
        model_label="desync", abstained_because=None if sure else Abstention.LOW_CONFIDENCE, collective=None,
        world_size=None, initiating_ranks=(1,) if sure else (), initiating_nodes=(), waiting_ranks=(0,),
        failed_ranks=(), evidence=(), alternatives=(), remedy=Remedy(summary="x" if sure else None),
        collect_next=() if sure else ("record more",), ledger=(),
    )  # fmt: skip


def _row(path: str = "a.log", status: InputStatus = InputStatus.OK, message: str | None = None) -> InputRow:
    return InputRow(path=path, kind=InputKind.LOG, bytes=1, lines=1, status=status, message=message)


def _report(*found: Diagnosis, rows: tuple[InputRow, ...] | None = None, **changes: object) -> Report:
    return Report(
        tool_version="0", model=ModelInfo(name="m", version="1", sha256="0" * 64),
        inputs=(_row(),) if rows is None else rows, incidents=found, elapsed_ms=1,
        first_fatal_error=changes.get("fatal"),
    )  # fmt: skip


class FakeClassifier:
    """Answers with a prepared report and remembers how it was called."""

    def __init__(self: object) -> None:
        self.answer: Report | Exception = _report(_diagnosis())
        self.calls: list[tuple[Any, dict[str, Any]]] = []
        self.loaded: list[Any] = []

    def load(self, path: object = None, *, wait: bool = True) -> FakeClassifier:
        self.loaded.append(path)
        return self

    def classify_paths(self, paths: object, **options: object) -> Report:
        self.calls.append((paths, options))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    classify = classify_paths

    def classify_modes(self, sources: object, modes: Sequence[str], **options: object) -> dict[str, Report]:
        return {mode: self.classify_paths(sources, mode=mode, **options) for mode in modes}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeClassifier:
    classifier = FakeClassifier()
    monkeypatch.setattr(fsdpclassify.classifier, "Classifier", classifier)
    return classifier


def _run(*arguments: str, **options: object) -> Result:
    return CliRunner().invoke(app, list(arguments), **options)


@pytest.mark.parametrize(
    ("answer", "code", "zeroed"),
    [
        (_report(_diagnosis()), 0, 0),
        (_report(_diagnosis("undetermined")), 10, 0),
        (_report(), 11, 0),
        (_report(_diagnosis(), _diagnosis("undetermined")), 10, 0),
        (_report(_diagnosis("undetermined"), _diagnosis()), 0, 0),
        (_report(_diagnosis(), rows=(_row(status=InputStatus.TRUNCATED),)), 0, 0),
        (_report(rows=(_row(status=InputStatus.EMPTY), _row(status=InputStatus.BINARY))), 3, 3),
        (_report(rows=()), 3, 3),
        (BundleError("wrong hash"), 4, 4),
        (SourceError("no input"), 3, 3),
        (RuntimeError("boom"), 70, 70),
    ],
)
def test_exit_codes_of_classify(fake: FakeClassifier, answer: Report | Exception, code: int, zeroed: int) -> None:
    fake.answer = answer
    assert _run("classify", "a.log").exit_code == code
    assert _run("classify", "--json", "a.log").exit_code == code
    assert _run("classify", "--exit-zero", "a.log").exit_code == zeroed


def test_the_answer_goes_to_stdout_and_nothing_to_stderr(fake: FakeClassifier) -> None:
    result = _run("classify", "a.log")
    assert result.stdout.startswith("desync (70 %): rank 1")
    assert result.stderr == ""
    assert "\x1b" not in result.stdout


def test_json_follows_the_schema(fake: FakeClassifier) -> None:
    for report in (_report(_diagnosis()), _report(), _report(_diagnosis("undetermined"))):
        fake.answer = report
        Draft202012Validator(load_schema()).validate(json.loads(_run("classify", "--json", "a.log").stdout))


def test_what_could_not_be_read_is_said_once_a_path_on_stderr(fake: FakeClassifier) -> None:
    rows = (
        _row("a.log", InputStatus.UNREADABLE, "not found"),
        _row("b\x1b[31m.log", InputStatus.EMPTY),
    )
    fake.answer = _report(rows=rows)
    result = _run("classify", "a.log", "b.log")
    assert result.stdout == ""
    assert result.stderr == ("fsdpclassify: a.log: unreadable: not found\nfsdpclassify: b\\x1b[31m.log: empty\n")


def test_options_reach_the_classifier(fake: FakeClassifier) -> None:
    _run(
        "classify",
        "--hung",
        "--mode",
        "high-precision",
        "--mask",
        "none",
        "--max-bytes",
        "9",
        "--model",
        "m",
        "a",
        "b",
    )
    assert fake.loaded == [Path("m")]
    paths, options = fake.calls[0]
    assert paths == ["a", "b"]
    assert options == {"hung": True, "mode": "high-precision", "mask": "none", "max_bytes": 9, "stdin": None}


def test_a_dash_is_stdin(fake: FakeClassifier) -> None:
    _run("classify", "-", input="text")
    assert fake.calls[0][1]["stdin"] is not None


@pytest.mark.parametrize(
    "arguments",
    [
        ("classify",),
        ("classify", "--mode", "sloppy", "a"),
        ("classify", "--mask", "some", "a"),
        ("classify", "--max-bytes", "0", "a"),
        ("classify", "--nonsense", "a"),
        ("nonsense",),
        ("retrain", "x"),
        ("evaluate", "--fail-under", "2", "x"),
    ],
)
def test_wrong_usage_exits_2_with_words_on_stderr(fake: FakeClassifier, arguments: tuple[str, ...]) -> None:
    result = _run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr


def test_our_own_fault_is_one_line_without_traceback_or_secret(fake: FakeClassifier) -> None:
    fake.answer = RuntimeError("bad line: password=hunter22222\nsecond \x1b[31m")
    result = _run("classify", "a.log")
    assert result.exit_code == 70
    assert result.stderr.count("\n") == 1
    assert "RuntimeError" in result.stderr
    assert "hunter22222" not in result.stderr
    assert "\x1b" not in result.stderr
    assert "Traceback" not in result.stderr


def test_debug_shows_the_traceback(fake: FakeClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSDPCLASSIFY_DEBUG", "1")
    fake.answer = RuntimeError("boom")
    with pytest.raises(RuntimeError, match="boom"):
        _run("classify", "a.log", catch_exceptions=False)


def test_score_prints_the_last_incident(fake: FakeClassifier) -> None:
    assert _run("score", "a.log").stdout == "desync     0.7000\nstraggler  0.3000\n"
    value = json.loads(_run("score", "--json", "a.log").stdout)
    assert value == {
        "schema_version": 1,
        "label": "desync",
        "probabilities": {"desync": 0.7, "straggler": 0.3},
    }


def test_score_without_an_incident(fake: FakeClassifier) -> None:
    fake.answer = _report(fatal=FatalError(path="a.log", line=1, rank=None, text="x"))
    result = _run("score", "--json", "a.log")
    assert result.exit_code == 11
    assert json.loads(result.stdout)["label"] is None
    assert _run("score", "--exit-zero", "a.log").exit_code == 0


def test_inspect_needs_no_model(tmp_path: Path) -> None:
    log = tmp_path / "trainer.log"
    log.write_text(f"starting token=abcdefgh12\n{TIMEOUT_LINE}")
    result = _run("inspect", str(log))
    assert result.exit_code == 0
    assert f"{log}:2 timeout rank 0" in result.stdout
    value = json.loads(_run("inspect", "--json", str(log)).stdout)
    assert value["incidents"][0]["waiting_ranks"] == [0]
    assert value["incidents"][0]["ledger"][0]["role"] == "waiting"


def test_inspect_without_an_incident_or_an_input(tmp_path: Path) -> None:
    log = tmp_path / "trainer.log"
    log.write_text("all is well\n")
    assert _run("inspect", str(log)).exit_code == 11
    assert _run("inspect", str(tmp_path / "missing.log")).exit_code == 3
    assert _run("inspect", "--hung", str(log)).exit_code in (0, 11)


def _labelled(folder: Path, label: str) -> Path:
    (folder / "logs").mkdir(parents=True)
    (folder / "logs" / "a.log").write_text("x\n")
    content = {"schema_version": 1, "id": folder.name, "label": label}
    (folder / "incident.json").write_text(json.dumps(content))
    return folder


@pytest.fixture
def bundle_stub(monkeypatch: pytest.MonkeyPatch) -> None:
    import fsdpclassify.bundle

    monkeypatch.setattr(fsdpclassify.bundle, "locate", lambda path=None: Path("b"))
    monkeypatch.setattr(fsdpclassify.bundle, "read_manifest", lambda folder: SimpleNamespace(training=()))


@pytest.mark.parametrize(("limit", "code"), [("0.5", 0), ("0.6", 5)])
def test_evaluate_says_no_below_the_limit(
    fake: FakeClassifier, bundle_stub: None, tmp_path: Path, limit: str, code: int
) -> None:
    _labelled(tmp_path / "one", "desync")
    _labelled(tmp_path / "two", "straggler")
    result = _run("evaluate", str(tmp_path), "--fail-under", limit)
    assert result.exit_code == code
    assert "all, accepted                            1/2" in result.stdout
    assert json.loads(_run("evaluate", "--json", str(tmp_path)).stdout)["overall"]["strict"]["hits"] == 1
    assert "/one" not in str(fake.calls[0][0])


def test_a_bad_labelled_folder_is_a_usage_error(fake: FakeClassifier, bundle_stub: None, tmp_path: Path) -> None:
    (_labelled(tmp_path / "one", "desync") / "incident.json").write_text("{}")
    result = _run("evaluate", str(tmp_path))
    assert result.exit_code == 2
    assert "schema_version" in result.stderr
