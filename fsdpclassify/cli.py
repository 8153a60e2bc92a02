"""The command line: `fsdpclassify classify|score|inspect|labels|evaluate|retrain|model`.

stdout carries the answer and nothing else, stderr the messages. Heavy modules are imported inside
the commands, so that `--help` costs no more than typer itself.

Exit codes: 0 a verdict, 10 undetermined, 11 no_timeout (all of the last incident), 2 usage, 3 nothing
could be read, 4 bad bundle, 5 evaluate or retrain ran and the answer is no, 70 our own fault.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from fsdpclassify.cli_measure import evaluate, retrain
from fsdpclassify.cli_model import model_app
from fsdpclassify.cli_options import (
    AsJson,
    ExitZero,
    Hung,
    Mask,
    MaxBytes,
    Mode,
    ModelPath,
    Paths,
    example,
)
from fsdpclassify.console import GuardedGroup, answer, guarded_output, terminal_style, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fsdpclassify.records import InputRow, Report

UNDETERMINED, NO_TIMEOUT, NOTHING_READ = 10, 11, 3

_EXIT_CODES = (
    "0   a verdict",
    "10  undetermined",
    "11  no timeout found",
    "2   wrong usage",
    "3   nothing could be read",
    "4   bad model bundle",
    "5   evaluate or retrain ran, and the answer is no",
    "70  our own fault",
)

app = typer.Typer(
    cls=GuardedGroup,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Say why a distributed PyTorch run died of a collective timeout, and which rank started it.\n\n"
    "Reads logs on this machine only; nothing is sent anywhere.",
    epilog="\n".join(("\b", "Exit codes:", *(f"  {line}" for line in _EXIT_CODES)))
    + "\n\n"
    + example("fsdpclassify classify logs/"),
)


def _version(wanted: bool) -> None:
    if wanted:
        import fsdpclassify

        answer(f"fsdpclassify {fsdpclassify.__version__}\n")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Hold the options that stand before a command; the help text is that of `app`."""


@app.command(epilog=example("fsdpclassify classify logs/", "kubectl logs trainer-0 | fsdpclassify classify --json -"))
def classify(
    paths: Paths,
    as_json: AsJson = False,
    hung: Hung = False,
    mode: Mode = "balanced",
    model: ModelPath = None,
    mask: Mask = "secrets",
    exit_zero: ExitZero = False,
    max_bytes: MaxBytes = None,
) -> None:
    """Name the cause, the guilty rank, the evidence and the fix.

    The exit code follows the last incident: 0 a verdict, 10 undetermined, 11 no timeout found.
    """
    from fsdpclassify.classifier import Classifier
    from fsdpclassify.report import render_report, report_as_dict, to_json

    loaded = Classifier.load(model)
    report = loaded.classify_paths(paths, stdin=_stdin(paths), hung=hung, mode=mode, mask=mask, max_bytes=max_bytes)
    read = anything_read(report.inputs)
    if as_json:
        answer(to_json(report_as_dict(report)))
    elif read:
        width, colour = terminal_style()
        answer(render_report(report, width=width, colour=colour))
    _finish(exit_code(report) if read else _nothing_read(report.inputs), exit_zero=exit_zero)


@app.command(epilog=example("fsdpclassify score --json trainer.log"))
def score(
    paths: Paths,
    as_json: AsJson = False,
    hung: Hung = False,
    model: ModelPath = None,
    exit_zero: ExitZero = False,
    max_bytes: MaxBytes = None,
) -> None:
    """Print the probabilities for the last incident.

    Exits 0 with an incident and 11 without one; abstention is the business of classify.
    """
    from fsdpclassify.classifier import Classifier
    from fsdpclassify.report import score_as_dict, to_json
    from fsdpclassify.report.tables import render_scores

    loaded = Classifier.load(model)
    report = loaded.classify_paths(paths, stdin=_stdin(paths), hung=hung, max_bytes=max_bytes)
    scores = dict(report.incidents[-1].probabilities) if report.incidents else {}
    read = anything_read(report.inputs)
    if as_json or read:
        answer(to_json(score_as_dict(scores)) if as_json else render_scores(scores))
    code = 0 if scores else NO_TIMEOUT
    _finish(code if read else _nothing_read(report.inputs), exit_zero=exit_zero)


@app.command(epilog=example("fsdpclassify inspect logs/ | less"))
def inspect(
    paths: Paths,
    as_json: AsJson = False,
    hung: Hung = False,
    mask: Mask = "secrets",
    exit_zero: ExitZero = False,
    max_bytes: MaxBytes = None,
) -> None:
    """Show the ledger of ranks and the events, without a model.

    Exits 0 with an incident and 11 without one.
    """
    from fsdpclassify.masking import Masker, mask_values
    from fsdpclassify.reading import find, first_fatal_error
    from fsdpclassify.report import to_json
    from fsdpclassify.report.inspection import inspection_as_dict, render_inspection
    from fsdpclassify.sources import collect

    found = find(collect(paths, stdin=_stdin(paths), max_bytes=max_bytes), hung=hung)
    hide = Masker("none" if mask == "none" else "secrets").mask
    shown = mask_values(inspection_as_dict(found, first_fatal_error(found), hide), mask)
    read = anything_read(found.inputs)
    if as_json or read:
        answer(to_json(shown) if as_json else render_inspection(shown, width=terminal_style()[0]))
    code = 0 if found.incidents else NO_TIMEOUT
    _finish(code if read else _nothing_read(found.inputs), exit_zero=exit_zero)


@app.command(epilog=example("fsdpclassify labels --model my-model/"))
def labels(as_json: AsJson = False, model: ModelPath = None) -> None:
    """List the labels that a model tells apart."""
    from fsdpclassify.bundle import locate, read_manifest
    from fsdpclassify.catalogue import load_catalogue
    from fsdpclassify.report import to_json
    from fsdpclassify.report.tables import labels_as_dict, render_labels

    folder = locate(model)
    table = labels_as_dict(read_manifest(folder).labels, load_catalogue(folder).boundaries)
    answer(to_json(table) if as_json else render_labels(table, width=terminal_style()[0]))


# Registered here, so that the help lists the commands in the order in which people meet them.
app.command(epilog=example("fsdpclassify evaluate my-incidents/ --fail-under 0.7"))(evaluate)
app.command(epilog=example("fsdpclassify retrain my-incidents/ --output my-model/"))(retrain)
app.add_typer(model_app, name="model")


def exit_code(report: Report) -> int:
    """The documented code of a report of which something could be read; the last incident decides."""
    if not report.incidents:
        return NO_TIMEOUT
    return UNDETERMINED if report.incidents[-1].verdict == "undetermined" else 0


def anything_read(inputs: Sequence[InputRow]) -> bool:
    """Whether at least one input was read, if only in part."""
    return any(row.status in ("ok", "truncated") for row in inputs)


def _nothing_read(inputs: Sequence[InputRow]) -> int:
    for row in inputs:
        warn(f"{row.path}: {row.status}" + (f": {row.message}" if row.message else ""))
    if not inputs:
        warn("no input was found")
    return NOTHING_READ


def _finish(code: int, *, exit_zero: bool) -> None:
    raise typer.Exit(0 if exit_zero and code in (UNDETERMINED, NO_TIMEOUT) else code)


def _stdin(paths: Sequence[str]) -> BinaryIO | None:
    # A descriptor that was closed before the start leaves no `sys.stdin` at all.
    return sys.stdin.buffer if "-" in paths and sys.stdin is not None else None


def main() -> None:
    """Entry point of the `fsdpclassify` script; never returns."""
    with guarded_output():
        app(prog_name="fsdpclassify")
