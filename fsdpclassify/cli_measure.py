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

    Prints per-class figures, ranks, evidence, calibration and every miss.
    """
    from fsdpclassify.bundle import locate, read_manifest
    from fsdpclassify.classifier import Classifier
    from fsdpclassify.evaluation import evaluate_reports
    from fsdpclassify.evaluation_text import evaluation_as_dict, render_evaluation
    from fsdpclassify.labelled import load_all, neutral_logs
    from fsdpclassify.report import to_json

    incidents = load_all(folders)
    seen = frozenset(read_manifest(locate(model)).training)
    loaded = Classifier.load(model)
    reports = []
    for incident in incidents:
        with neutral_logs(incident) as logs:
            reports.append(loaded.classify(logs, hung=incident.hung, mode=mode))
    result = evaluate_reports(incidents, reports, seen=seen)
    answer(to_json(evaluation_as_dict(result)) if as_json else render_evaluation(result))
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
