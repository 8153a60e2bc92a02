"""The short way into the everyday commands answers as typer's way does, and knows what to leave to it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fsdpclassify
from fsdpclassify import commands
from fsdpclassify.commands import Request
from fsdpclassify.entry import plain_call

LOG = (
    "[rank1]:[E512 21:10:07.118820344 ProcessGroupNCCL.cpp:689] [Rank 1] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600013"
    " milliseconds before timing out.\n"
)
TYPER = "from fsdpclassify.cli import main; main()"


@pytest.mark.parametrize(
    ("words", "command", "request_"),
    [
        (["classify", "a"], commands.classify, Request(paths=["a"])),
        (["classify", "-", "--json"], commands.classify, Request(paths=["-"], as_json=True)),
        (["inspect", "--hung", "a", "b"], commands.inspect, Request(paths=["a", "b"], hung=True)),
        (["inspect", "--mask", "none", "a"], commands.inspect, Request(paths=["a"], mask="none")),
        (["score", "--model", "m", "a"], commands.score, Request(paths=["a"], model=Path("m"))),
        (["classify", "a", "--mode", "best-guess"], commands.classify, Request(paths=["a"], mode="best-guess")),
        (["classify", "--exit-zero", "a"], commands.classify, Request(paths=["a"], exit_zero=True)),
    ],
)
def test_plain_calls_need_no_parser(words: list[str], command: object, request_: Request) -> None:
    assert plain_call(words) == (command, request_)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--help"],
        ["labels"],
        ["classify"],
        ["classify", "--json"],
        ["classify", "--help", "a"],
        ["classify", "--", "-a"],
        ["classify", "--mode=balanced", "a"],
        ["classify", "--mode", "sloppy", "a"],
        ["classify", "--mask", "a"],
        ["classify", "a", "--mode"],
        ["classify", "--max-bytes", "9", "a"],
        ["classify", "--model", "", "a"],
        ["classify", "", "a"],
        ["classify", "--nonsense", "a"],
        ["inspect", "--model", "m", "a"],
        ["inspect", "--mode", "balanced", "a"],
        ["score", "--mask", "none", "a"],
    ],
)
def test_all_other_calls_are_left_to_typer(words: list[str]) -> None:
    assert plain_call(words) is None


def _both(*words: str, folder: Path) -> list[tuple[int, str, str]]:
    root = str(Path(fsdpclassify.__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    answers = []
    for start in (("-m", "fsdpclassify"), ("-c", TYPER)):
        command = [sys.executable, *start, *words]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": path}, input=LOG
        )
        answers.append((done.returncode, done.stdout, done.stderr))
    return answers


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("inspect", "a.log"), 0),
        (("inspect", "--json", "-", "a.log"), 0),
        (("inspect", "--exit-zero", "quiet.log"), 0),
        (("inspect", "quiet.log"), 11),
        (("inspect", "missing.log"), 3),
        (("score", "--json", "--model", "nowhere", "a.log"), 4),
        (("inspect", "--mask", "some", "a.log"), 2),
    ],
)
def test_both_ways_give_the_same_answer(words: tuple[str, ...], code: int, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LOG)
    (tmp_path / "quiet.log").write_text("all is well\n")
    quick, parsed = _both(*words, folder=tmp_path)
    assert quick == parsed
    assert quick[0] == code


def test_a_plain_call_loads_no_typer() -> None:
    code = (
        "import sys, os; sys.argv = ['fsdpclassify', 'inspect', '-']; os._exit = sys.exit\n"
        "from fsdpclassify.entry import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted({'typer', 'rich', 'pydantic', 'numpy', 'onnxruntime'} & set(sys.modules)), file=sys.stderr)"
    )
    root = str(Path(fsdpclassify.__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, input=LOG)
    assert done.stderr.strip().splitlines()[-1] == "[]"
