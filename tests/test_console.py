"""Streams, colour and light starts, most of them shown by whole processes."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fsdpclassify
from fsdpclassify.console import answer, terminal_style

TIMEOUT_LINE = (
    "[rank0]:[E512 21:10:07.118820344 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600013"
    " milliseconds before timing out.\n"
)


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(fsdpclassify.__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=env)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("variables", "colour"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colour_needs_a_terminal_and_no_objection(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], colour: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", _Terminal())
    assert terminal_style()[1] is colour
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert terminal_style()[1] is False


def test_the_width_follows_the_terminal_or_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "77")
    assert terminal_style()[0] == 77


def test_signs_that_the_terminal_cannot_show_are_escaped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "out").open("w", encoding="ascii") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        answer("tired… \udc80\n")
    assert (tmp_path / "out").read_text() == "tired\\u2026 \\udc80\n"


HEAVY = "{'numpy', 'onnxruntime', 'tokenizers', 'sklearn', 'rich', 'hyperscan'}"


@pytest.mark.parametrize(
    "start",
    [
        "import fsdpclassify",
        "from fsdpclassify.cli import app",
        "from fsdpclassify.cli import app; app(['--help'], standalone_mode=False)",
        "from fsdpclassify.cli import app; app(['classify', '--help'], standalone_mode=False)",
        "import fsdpclassify.report, fsdpclassify.masking, fsdpclassify.labelled, fsdpclassify.evaluation",
    ],
)
def test_light_starts_load_nothing_heavy(start: str) -> None:
    code = f"import sys; {start}; sys.exit(str(sorted({HEAVY} & set(sys.modules))))"
    result = _python("-c", code)
    assert result.stderr.strip().splitlines()[-1] == "[]"


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(TIMEOUT_LINE * 3)
    command = f"'{sys.executable}' -m fsdpclassify inspect '{log}' | true; echo ${{PIPESTATUS[0]}}"
    root = Path(fsdpclassify.__file__).resolve().parents[1]
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=root)
    assert (result.stdout, result.stderr) == ("0\n", "")


def _shell(line: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(fsdpclassify.__file__).resolve().parents[1])
    env = {**os.environ, "PYTHONPATH": root, "PY": sys.executable}
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=env)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device here")
@pytest.mark.parametrize("arguments", ["inspect $LOG", "inspect --json $LOG", "--help", "--version"])
def test_a_full_disk_is_one_line(arguments: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(TIMEOUT_LINE)
    result = _shell(f'LOG="{tmp_path}/a.log"; "$PY" -m fsdpclassify {arguments} > /dev/full')
    assert result.returncode == 70
    assert result.stderr == "fsdpclassify: the answer could not be written: No space left on device\n"


def test_a_closed_stdin_is_an_unreadable_input() -> None:
    result = _shell('"$PY" -m fsdpclassify inspect - <&-')
    assert result.returncode == 3
    assert result.stderr == "fsdpclassify: -: unreadable: there is no standard input\n"
