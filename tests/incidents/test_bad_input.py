"""What people hand in by mistake: each gets a line and an exit code that says what is wrong, never a traceback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from fsdpclassify.cli import app

pytestmark = pytest.mark.model

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "models" / "default"
OOM = "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
TIMEOUT = (
    "[rank0]:[E512 21:10:07.118820344 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600013"
    " milliseconds before timing out.\n"
)


def _run(*arguments: object) -> Result:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert "Traceback" not in result.output
    assert "internal error" not in result.output
    return result


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "good.log"
    path.write_text(OOM + TIMEOUT)
    return path


def test_no_readable_path_is_one_line_a_path_and_3(tmp_path: Path) -> None:
    missing = [tmp_path / name for name in ("a.log", "b.log", "c.log")]
    result = _run("classify", *missing)
    assert result.exit_code == 3
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 3
    for path, line in zip(missing, lines, strict=True):
        assert line.startswith(f"fsdpclassify: {path}: unreadable")
    assert _run("classify", "--exit-zero", *missing).exit_code == 3


def test_with_json_the_rows_say_it_too(tmp_path: Path) -> None:
    result = _run("classify", "--json", tmp_path / "a.log", tmp_path / "b.log")
    assert result.exit_code == 3
    value = json.loads(result.stdout)
    assert [row["status"] for row in value["inputs"]] == ["unreadable", "unreadable"]
    assert value["incidents"] == []


def test_some_unreadable_are_rows_and_the_rest_is_classified(log: Path, tmp_path: Path) -> None:
    result = _run("classify", "--json", tmp_path / "none.log", log)
    assert result.exit_code == 0
    value = json.loads(result.stdout)
    assert [(Path(row["path"]).name, row["status"]) for row in value["inputs"]] == [
        ("none.log", "unreadable"), ("good.log", "ok"),
    ]  # fmt: skip
    assert [x["verdict"] for x in value["incidents"]] == ["rank_failure"]


Make = Callable[[Path], object]
NOTHING: dict[str, tuple[Make, str]] = {
    "an empty file": (lambda p: p.write_bytes(b""), "empty"),
    "a binary file": (lambda p: p.write_bytes(bytes(range(256)) * 64), "binary"),
    "an executable": (lambda p: p.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(4096)), "binary"),
}


@pytest.mark.parametrize(("make", "status"), NOTHING.values(), ids=NOTHING.keys())
@pytest.mark.parametrize("command", ["classify", "score", "inspect"])
def test_what_holds_no_text_is_said_by_status_and_3(tmp_path: Path, command: str, make: Make, status: str) -> None:
    path = tmp_path / "x.log"
    make(path)
    result = _run(command, path)
    assert result.exit_code == 3
    assert result.stderr.startswith(f"fsdpclassify: {path}: {status}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["classify", "score", "inspect"])
def test_a_folder_without_logs_is_3_with_a_word(tmp_path: Path, command: str) -> None:
    result = _run(command, tmp_path)
    assert result.exit_code == 3
    assert result.stderr


def test_a_truncated_archive_is_a_row_and_no_crash(log: Path, tmp_path: Path) -> None:
    import gzip

    whole = gzip.compress(log.read_bytes() * 50)
    (tmp_path / "cut.log.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "junk.gz").write_bytes(b"\x1f\x8b\x08\x00" + b"junk" * 9)
    result = _run("classify", "--json", tmp_path / "junk.gz", tmp_path / "cut.log.gz")
    rows = json.loads(result.stdout)["inputs"]
    assert rows[0]["status"] in ("unreadable", "binary")
    assert rows[1]["status"] in ("truncated", "unreadable")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_a_row(log: Path) -> None:
    log.chmod(0)
    assert _run("classify", log).exit_code == 3


def _copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(BUNDLE, tmp_path / "model"))


def _append(name: str) -> Make:
    def damage(folder: Path) -> None:
        with (folder / name).open("ab") as file:
            file.write(b"\n")

    return damage


def _newer(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema_version": 99}))


BAD_BUNDLES: dict[str, tuple[Make, tuple[str, ...]]] = {
    "missing": (shutil.rmtree, ("model", "not a folder")),
    "no manifest": (lambda f: (f / "manifest.json").unlink(), ("manifest.json", "no bundle")),
    "wrong hash of the head": (_append("head.onnx"), ("head.onnx", "sha256")),
    "wrong hash of the tokenizer": (_append("tokenizer.json"), ("tokenizer.json", "sha256")),
    "wrong hash of the catalogue": (_append("catalogue.json"), ("catalogue.json", "sha256")),
    "newer schema": (_newer, ("manifest.json", "schema_version 99 is newer")),
    "encoder missing": (lambda f: (f / "encoder.onnx").unlink(), ("encoder.onnx", "missing")),
    "catalogue missing": (lambda f: (f / "catalogue.json").unlink(), ("catalogue.json", "missing")),
}


@pytest.mark.parametrize(("damage", "words"), BAD_BUNDLES.values(), ids=BAD_BUNDLES.keys())
def test_a_bad_bundle_is_4_by_name_before_anything_is_read(
    log: Path, tmp_path: Path, damage: Make, words: tuple[str, ...]
) -> None:
    folder = _copy(tmp_path)
    damage(folder)
    for command in ("classify", "score"):
        result = _run(command, "--model", folder, log)
        assert result.exit_code == 4
        assert result.stdout == ""
        assert result.stderr.count("\n") == 1
        assert all(word in result.stderr for word in words), result.stderr
    assert _run("classify", "--model", folder, tmp_path / "none.log").exit_code == 4


def test_a_bad_bundle_of_the_environment_is_named(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSDPCLASSIFY_MODEL", str(tmp_path / "none"))
    result = _run("classify", log)
    assert result.exit_code == 4
    assert "FSDPCLASSIFY_MODEL" in result.stderr


@pytest.mark.parametrize("arguments", [["--colour", "red"], ["--Json"], ["--mode", "sure"], ["--max-bytes", "many"]])
def test_an_unknown_option_or_value_is_2(log: Path, arguments: list[str]) -> None:
    result = _run("classify", *arguments, log)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert arguments[0] in result.stderr or arguments[-1] in result.stderr


def test_no_incident_is_11_with_the_first_fatal_error(tmp_path: Path) -> None:
    log = tmp_path / "crash.log"
    log.write_text("starting\n" + OOM + "[rank2]: bye\n")
    result = _run("classify", log)
    assert result.exit_code == 11
    assert f"{log}:2" in result.stdout
    assert "CUDA out of memory" in result.stdout
    value = json.loads(_run("classify", "--json", log).stdout)
    assert (value["first_fatal_error"]["line"], value["first_fatal_error"]["rank"]) == (2, 2)
    assert _run("classify", "--exit-zero", log).exit_code == 0


def test_a_healthy_log_is_11_without_one(tmp_path: Path) -> None:
    log = tmp_path / "fine.log"
    log.write_text("[rank0]: step 1 loss 2.1\n[rank0]: NCCL_TIMEOUT=1800\n")
    result = _run("classify", "--json", log)
    assert result.exit_code == 11
    assert json.loads(result.stdout)["first_fatal_error"] is None


def test_an_undetermined_incident_is_10(tmp_path: Path) -> None:
    log = tmp_path / "bare.log"
    log.write_text("NCCL timeout error during FSDP parameter shard collection\n")
    assert _run("classify", log).exit_code == 10


def test_the_program_itself_says_the_same(log: Path, tmp_path: Path) -> None:
    for path, code in ((log, 0), (tmp_path / "none.log", 3)):
        done = subprocess.run(
            [sys.executable, "-m", "fsdpclassify", "classify", str(path)],
            capture_output=True, text=True, cwd=ROOT, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
