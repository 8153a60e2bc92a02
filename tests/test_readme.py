"""The README cannot rot: its commands exist, its exit codes are those of the code, its numbers are counted."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.exceptions import TyperException

from fsdpclassify import cli, cli_measure, console
from fsdpclassify.bundle import read_manifest
from fsdpclassify.catalogue import load_catalogue
from fsdpclassify.decision import MODES, UNDETERMINED
from fsdpclassify.errors import BundleError, LabelledIncidentError, SourceError, UsageError, WorseModelError

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BUNDLE = ROOT / "models" / "default"
ANSWERED, WRONG_USAGE = 0, UsageError.exit_code


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def _commands() -> Iterator[list[str]]:
    """The words of every command of a console block that calls the program, wherever it stands in a pipe."""
    for block in _blocks("console"):
        for line in block.splitlines():
            if line.startswith("$ "):
                for part in re.split(r"\|\||&&|[|;]", line[2:]):
                    words = shlex.split(part, comments=True)
                    if words and words[0].rsplit("/", 1)[-1] == "fsdpclassify":
                        yield words[1:]


COMMANDS = list(_commands())


def _checked(command: Any, words: list[str]) -> str:  # noqa: ANN401 - typer brings its own click
    """Parse `words` as the program does, without running anything; returns the name of the innermost command."""
    if hasattr(command, "commands"):
        return _checked(command.commands[words[0]], words[1:])
    with command.make_context(command.name, list(words)) as context:
        return str(context.info_name)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_of_the_readme_exists_with_its_options(words: list[str]) -> None:
    assert _checked(typer.main.get_command(cli.app), words) in words


def test_a_command_that_does_not_exist_would_be_noticed() -> None:
    root = typer.main.get_command(cli.app)
    for wrong in (["clasify", "logs/"], ["classify", "--jsn", "logs/"], ["classify"], ["retrain", "x"]):
        with pytest.raises((KeyError, TyperException)):
            _checked(root, wrong)


def test_the_readme_shows_the_commands_that_people_need() -> None:
    assert {words[0] for words in COMMANDS} >= {"classify", "inspect", "score", "evaluate", "retrain"}


def _table(title: str) -> dict[str, str]:
    rows = re.search(rf"^\| {title} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", README, re.MULTILINE)
    assert rows is not None, title
    cells = [[c.strip() for c in row.strip("|").split("|")] for row in rows[1].splitlines()]
    return {row[0].strip("`"): row[1] for row in cells}


CODES = {
    ANSWERED: "a verdict",
    cli.UNDETERMINED: "undetermined",
    cli.NO_TIMEOUT: "no timeout",
    WRONG_USAGE: "usage",
    cli.NOTHING_READ: "nothing could be read",
    BundleError.exit_code: "bundle",
    cli_measure.ANSWER_IS_NO: "the answer is no",
    console.OUR_FAULT: "our own fault",
}


def test_the_exit_codes_of_the_readme_are_those_of_the_code() -> None:
    table = {int(code): words for code, words in _table("exit code").items()}
    assert set(table) == set(CODES)
    for code, words in CODES.items():
        assert words in table[code]
    # A bundle that `model verify` refuses is a bad bundle: 4, not an answer.
    assert "model verify" not in table[cli_measure.ANSWER_IS_NO]


def test_the_help_lists_the_same_exit_codes() -> None:
    listed = {int(line.split()[0]): line.split(maxsplit=1)[1] for line in cli._EXIT_CODES}
    assert set(listed) == set(CODES)


def test_errors_end_with_the_code_of_their_kind() -> None:
    assert SourceError.exit_code == cli.NOTHING_READ
    assert LabelledIncidentError.exit_code == WRONG_USAGE
    assert WorseModelError.exit_code == cli_measure.ANSWER_IS_NO


def test_the_modes_of_the_readme_exist() -> None:
    assert set(re.findall(r"--mode ([\w-]+)", README)) <= set(MODES)
    assert "`balanced`" in README


@pytest.mark.model
def test_the_verdicts_of_the_readme_are_those_of_the_bundle() -> None:
    labels = set(read_manifest(BUNDLE).labels) - {"other"}
    assert set(_table("verdict")) == labels | {UNDETERMINED}


@pytest.mark.model
def test_the_readme_counts_the_causes_of_the_catalogue() -> None:
    counted = re.search(r"catalogue of (\d+)", README)
    assert counted is not None
    assert int(counted[1]) == len(load_catalogue(BUNDLE).causes)


@pytest.mark.parametrize("code", _blocks("python"))
def test_the_python_of_the_readme_compiles(code: str) -> None:
    compile(code, "README.md", "exec")


def test_no_placeholder_is_left() -> None:
    assert "@@" not in README
