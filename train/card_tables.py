"""The tables of a card, from the numbers in a manifest: held-out figures, prior and thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fsdpclassify.evaluation import Count
from fsdpclassify.manifest import Manifest
from train.priors import MIXES

_UNMEASURED = (
    "Not measured yet: `python -m train card` asks the bundle about every held-out set and fills this section."
)
_FIGURES = """Each row is what `python -m train evaluate` prints with the options beside it, in the mode `balanced` and,
in one column, as best guesses. Intervals are at 95 % (Wilson for counts, else bootstrap over incidents)."""
_MODES = """Causes named of all incidents with a timeout (coverage), and how many of those are accepted:"""
_LOSSES = """Probabilities; what could be named at a precision takes the best threshold on the set itself. The expected
calibration error is stated for more than 300 probabilities only:"""
_PRIORS = """The prior is each label's share of the training weight. Thresholds are the lowest probability from which on
named causes were right often enough (`balanced`: {balanced:.0%}, `high-precision`: {high:.0%}) on incidents that the
head was blind to; `best-guess` has none. `shipped` is what the bundle uses: the mix of the calibration incidents, half
of the weight on real ones, since it is such reports that it is asked about. `uniform` and `measured` (the shares of the
public incidents) say what thresholds would be in another mix, with the same probabilities."""
Blocks = Mapping[str, Any]
Titles = Sequence[tuple[str, str]]


def figures_section(held_out: Blocks, titles: Titles) -> str:
    """Three tables, one row a set of incidents; a sentence where nothing was measured."""
    rows = [(options, title, held_out[options]) for options, title in titles if options in held_out]
    if not rows:
        return _UNMEASURED
    parts = (_FIGURES, _verdicts(rows), _MODES, _modes(rows), _LOSSES, _losses(rows))
    return "\n\n".join(parts)


def _verdicts(rows: Sequence[tuple[str, str, Blocks]]) -> str:
    heads = (
        "incidents", "options", "with a cause: strict", "as best guesses", "accepted", "other, undetermined: abstained",
        "no_timeout", "initiating ranks exact", "wrong", "evidence in first 3", "rank_failure named falsely",
        "macro-F1",
    )  # fmt: skip
    lines = [_row(heads), _row(["---"] * len(heads))]
    for options, title, told in rows:
        guess = told["modes"].get("best-guess", {}).get("causes_strict")
        counts = (told["causes_strict"], guess, *(told[key] for key in _COUNTS))
        lines.append(_row([title, f"`{options}`", *map(_of, counts), _spread(told["macro_f1"])]))
    return "\n".join(lines)


_COUNTS = (
    "causes_accepted", "quiet_abstained", "no_timeout_found", "ranks_exact", "ranks_wrong", "evidence_hit",
    "false_rank_failure",
)  # fmt: skip


def _modes(rows: Sequence[tuple[str, str, Blocks]]) -> str:
    heads = ("incidents", "best-guess", "accepted", "balanced", "accepted", "high-precision", "accepted")
    lines = [_row(heads), _row(["---"] * len(heads))]
    for _, title, told in rows:
        cells = [cell for mode in told["modes"].values() for cell in (_of(mode["named"]), _share(mode["accepted"]))]
        lines.append(_row([title, *cells]))
    return "\n".join(lines)


def _losses(rows: Sequence[tuple[str, str, Blocks]]) -> str:
    heads = ("incidents", "Brier", "log loss", "ECE", "named at precision 0.95", "0.98")
    lines = [_row(heads), _row(["---"] * len(heads))]
    for _, title, told in rows:
        ece = "–" if told["ece"] is None else f"{told['ece']:.3f}"
        covered = [f"{share:.3f}" for share in told["coverage_at"].values()]
        lines.append(_row([title, _spread(told["brier"]), _spread(told["log_loss"]), ece, *covered]))
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _of(pair: Sequence[int] | None) -> str:
    return f"{pair[0]} of {pair[1]}" if pair and pair[1] else "–"


def _share(pair: Sequence[int]) -> str:
    """A count with its share and interval."""
    count = Count(hits=pair[0], total=pair[1])
    low, high = count.interval
    return f"{_of(pair)}, {count.share:.3f} ({low:.2f} to {high:.2f})" if count.total else "–"


def _spread(figure: Sequence[float] | None) -> str:
    """A figure with its interval, if it has one."""
    if not figure:
        return "–"
    value, *ends = figure
    return f"{value:.3f} ({ends[0]:.2f} to {ends[1]:.2f})" if ends else f"{value:.3f}"


def thresholds_section(manifest: Manifest, priors: Blocks) -> str:
    """The prior and the thresholds that the bundle uses, and those under other mixes where they are known."""
    lines = ["| label | prior | balanced | high-precision |", "|---|---|---|---|"]
    for label in manifest.labels:
        cells = (manifest.thresholds[mode][label] for mode in ("balanced", "high-precision"))
        lines.append(_row([label, f"{manifest.prior[label]:.3f}", *(f"{cell:.2f}" for cell in cells)]))
    table = "\n".join(lines)
    return "\n\n".join([_explained(), table, _by_prior(manifest, priors)] if priors else [table])


def _explained() -> str:
    from fsdpclassify.training.calibration import TARGETS

    return _PRIORS.format(balanced=TARGETS["balanced"], high=TARGETS["high-precision"])


def _by_prior(manifest: Manifest, priors: Blocks) -> str:
    """By label: its share in each mix, and its thresholds in it."""
    heads = [f"{name}: {what}" for name in MIXES for what in ("share", "balanced", "high-precision")]
    lines = [_row(["label", *heads]), _row(["---"] * (1 + len(heads)))]
    for label in (*manifest.labels, "undetermined"):
        cells = []
        for name in MIXES:
            cells.append(f"{priors[name]['prior'].get(label, 0.0):.3f}")
            known = [priors[name][mode].get(label) for mode in ("balanced", "high-precision")]
            cells += ["–" if value is None else f"{value:.2f}" for value in known]
        lines.append(_row([label, *cells]))
    return "\n".join(lines)
