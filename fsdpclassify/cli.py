"""The command line: `fsdpclassify classify|score|inspect|labels|evaluate|retrain|model`.

stdout carries the answer and nothing else, stderr the messages. Heavy modules are imported inside
the commands, so that `--help` costs no more than typer itself.

Exit codes: 0 a verdict, 10 undetermined, 11 no_timeout (all of the last incident), 2 usage, 3 nothing
could be read, 4 bad bundle, 5 evaluate or retrain ran and the answer is no, 70 our own fault.
"""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

from fsdpclassify import commands
from fsdpclassify.cli_group import GuardedGroup
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
from fsdpclassify.commands import NO_TIMEOUT as NO_TIMEOUT
from fsdpclassify.commands import NOTHING_READ as NOTHING_READ
from fsdpclassify.commands import UNDETERMINED as UNDETERMINED
from fsdpclassify.commands import Request
from fsdpclassify.console import answer, guarded_output, terminal_style

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
    request = Request(
        paths=paths,
        as_json=as_json,
        hung=hung,
        mode=mode,
        model=model,
        mask=mask,
        exit_zero=exit_zero,
        max_bytes=max_bytes,
    )
    _exit(commands.classify(request))


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
    request = Request(paths=paths, as_json=as_json, hung=hung, model=model, exit_zero=exit_zero, max_bytes=max_bytes)
    _exit(commands.score(request))


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
    request = Request(paths=paths, as_json=as_json, hung=hung, mask=mask, exit_zero=exit_zero, max_bytes=max_bytes)
    _exit(commands.inspect(request))


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


def _exit(code: int) -> NoReturn:
    raise typer.Exit(code)


def main() -> None:
    """Parse the arguments with typer and run the command; never returns."""
    with guarded_output():
        app(prog_name="fsdpclassify")
