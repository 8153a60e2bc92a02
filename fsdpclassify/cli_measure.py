"""`fsdpclassify evaluate` and `retrain`: the commands that work on labelled incidents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsdpclassify.cli_options import AsJson, Folders, Mode, ModelPath
from fsdpclassify.console import answer, extra, warn

ANSWER_IS_NO = 5


def evaluate(
    folders: Folders,
    as_json: AsJson = False,
    mode: Mode = "balanced",
    model: ModelPath = None,
    fail_under: Annotated[
        float | None,
        typer.Option("--fail-under", min=0, max=1, help="Exit 5 if a smaller share of verdicts is accepted."),
    ] = None,
) -> None:
    """Measure a model on labelled incidents.

    Prints figures per class and finer cause, ranks, evidence, calibration, what each mode names, and every miss.
    """
    from fsdpclassify.bundle import locate, read_manifest
    from fsdpclassify.classifier import Classifier
    from fsdpclassify.evaluation_answers import answered, evaluate_modes
    from fsdpclassify.evaluation_text import evaluation_as_dict, render_evaluation
    from fsdpclassify.labelled import load_all
    from fsdpclassify.report import to_json

    incidents = load_all(folders)
    seen = frozenset(read_manifest(locate(model)).training)
    loaded = Classifier.load(model)
    results = evaluate_modes(incidents, [answered(loaded, incident) for incident in incidents], seen=seen)
    result = results[mode]
    answer(to_json(evaluation_as_dict(result, results)) if as_json else render_evaluation(result, results))
    if fail_under is not None and result.overall.accepted.share < fail_under:
        warn(f"{result.overall.accepted.share:.3f} of the verdicts are accepted, below {fail_under}")
        raise typer.Exit(ANSWER_IS_NO)


def retrain(
    folders: Folders,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the new bundle goes.")],
    base: Annotated[
        Path | None, typer.Option("--base", metavar="FOLDER", help="Bundle to start from; default: ours.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write the bundle even if it scores worse.")] = False,
) -> None:
    """Train a model on your own labelled incidents.

    Needs fsdpclassify[train]. A model that scores worse than the one it starts from is not written: exit 5.
    """
    from fsdpclassify.errors import WorseModelError

    with extra("train"):
        from fsdpclassify.retrain import retrain as fit

        try:
            told, code = fit(folders, output, base=base, force=force).summary, 0
        except WorseModelError as error:
            told, code = str(error), error.exit_code
    answer(told.rstrip("\n") + "\n")
    if code:
        raise typer.Exit(code)
