"""What `classify`, `score` and `inspect` do, apart from how their arguments are parsed.

Each function writes its answer to stdout, its messages to stderr, and returns the exit code of the process.
Nothing here needs typer, which takes longer to load than most logs take to read.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from fsdpclassify.console import answer, terminal_style, warn

if TYPE_CHECKING:
    from fsdpclassify.records import InputRow, Report

UNDETERMINED, NO_TIMEOUT, NOTHING_READ = 10, 11, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The arguments of one call; a command takes no notice of those that it does not have."""

    paths: Sequence[str]
    as_json: bool = False
    hung: bool = False
    mode: str = "balanced"
    model: Path | None = None
    mask: str = "secrets"
    exit_zero: bool = False
    max_bytes: int | None = None


def classify(request: Request) -> int:
    """Name the cause; the code follows the last incident."""
    from fsdpclassify.classifier import Classifier

    loaded = Classifier.load(request.model, wait=False)
    report = loaded.classify_paths(
        request.paths,
        stdin=_stdin(request.paths),
        hung=request.hung,
        mode=request.mode,
        mask=request.mask,
        max_bytes=request.max_bytes,
    )
    from fsdpclassify.report import render_report, report_as_dict, to_json

    read = anything_read(report.inputs)
    if request.as_json:
        answer(to_json(report_as_dict(report)))
    elif read:
        width, colour = terminal_style()
        answer(render_report(report, width=width, colour=colour))
    return _final(exit_code(report) if read else _nothing_read(report.inputs), request)


def score(request: Request) -> int:
    """Print the probabilities for the last incident; 0 with an incident, 11 without one."""
    from fsdpclassify.classifier import Classifier

    loaded = Classifier.load(request.model, wait=False)
    report = loaded.classify_paths(
        request.paths, stdin=_stdin(request.paths), hung=request.hung, max_bytes=request.max_bytes
    )
    from fsdpclassify.report import score_as_dict, to_json
    from fsdpclassify.report.tables import render_scores

    scores = dict(report.incidents[-1].probabilities) if report.incidents else {}
    read = anything_read(report.inputs)
    if request.as_json or read:
        answer(to_json(score_as_dict(scores)) if request.as_json else render_scores(scores))
    return _final((0 if scores else NO_TIMEOUT) if read else _nothing_read(report.inputs), request)


def inspect(request: Request) -> int:
    """Show the ledger of ranks and the events, without a model; 0 with an incident, 11 without one."""
    from fsdpclassify.masking import Masker, mask_values
    from fsdpclassify.reading import find, first_fatal_error
    from fsdpclassify.report import to_json
    from fsdpclassify.report.inspection import inspection_as_dict, render_inspection
    from fsdpclassify.sources import collect

    sources = collect(request.paths, stdin=_stdin(request.paths), max_bytes=request.max_bytes)
    found = find(sources, hung=request.hung)
    hide = Masker("none" if request.mask == "none" else "secrets").mask
    shown = mask_values(inspection_as_dict(found, first_fatal_error(found), hide), request.mask)
    read = anything_read(found.inputs)
    if request.as_json or read:
        answer(to_json(shown) if request.as_json else render_inspection(shown, width=terminal_style()[0]))
    return _final((0 if found.incidents else NO_TIMEOUT) if read else _nothing_read(found.inputs), request)


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


def _final(code: int, request: Request) -> int:
    return 0 if request.exit_zero and code in (UNDETERMINED, NO_TIMEOUT) else code


def _stdin(paths: Sequence[str]) -> BinaryIO | None:
    # A descriptor that was closed before the start leaves no `sys.stdin` at all.
    return sys.stdin.buffer if "-" in paths and sys.stdin is not None else None
