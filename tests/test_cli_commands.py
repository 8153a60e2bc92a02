"""The commands about models, the help texts, and what each command says when it cannot work."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner, Result

from fsdpclassify.cli import app
from fsdpclassify.errors import WorseModelError


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(("accepted", "code"), [(True, 0), (False, 5)])
def test_retrain_follows_its_result(monkeypatch: pytest.MonkeyPatch, accepted: bool, code: int) -> None:
    calls = []

    def retrain(folders: object, output: Path, *, base: Path | None, force: bool) -> SimpleNamespace:
        calls.append((folders, output, base, force))
        if not accepted:
            raise WorseModelError("macro F1 0.71 -> 0.74")
        return SimpleNamespace(summary="macro F1 0.71 -> 0.74")

    monkeypatch.setitem(sys.modules, "fsdpclassify.retrain", SimpleNamespace(retrain=retrain))
    result = _run("retrain", "inc", "--output", "new", "--force")
    assert result.exit_code == code
    assert result.stdout == "macro F1 0.71 -> 0.74\n"
    assert calls == [([Path("inc")], Path("new"), None, True)]


def test_a_missing_extra_is_named_with_its_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def retrain(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn.linear_model")

    monkeypatch.setitem(sys.modules, "fsdpclassify.retrain", SimpleNamespace(retrain=retrain))
    result = _run("retrain", "inc", "--output", "new")
    assert result.exit_code == 2
    assert "pip install 'fsdpclassify[train]'" in result.stderr


def test_a_bundle_that_is_none_exits_4(tmp_path: Path) -> None:
    for command in (("model", "verify"), ("model", "show")):
        result = _run(*command, str(tmp_path))
        assert result.exit_code == 4
        assert "manifest.json" in result.stderr
    assert _run("labels", "--model", str(tmp_path)).exit_code == 4


def test_model_list_names_what_it_refuses(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_text("{")
    result = _run("model", "list", str(tmp_path))
    assert result.exit_code == 0
    assert "refused: " in result.stdout


COMMANDS = [
    "classify",
    "score",
    "inspect",
    "labels",
    "evaluate",
    "retrain",
    "model show",
    "model verify",
    "model list",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_ends_with_an_example(command: str) -> None:
    result = _run(*command.split(), "--help")
    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert f"fsdpclassify {command}" in result.stdout


def test_the_help_names_every_command_and_exit_code() -> None:
    text = _run("--help").stdout
    for word in (*(command.split()[0] for command in COMMANDS), "10  undetermined", "70  our own fault"):
        assert word in text


def test_version() -> None:
    from fsdpclassify import __version__

    assert _run("--version").stdout == f"fsdpclassify {__version__}\n"
