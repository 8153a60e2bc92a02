"""`python -m train evaluate --tables`: the figures of a split as Markdown, for the card and the documentation."""

from __future__ import annotations

from collections.abc import Mapping

from fsdpclassify.evaluation import Count, Evaluation
from fsdpclassify.evaluation_answers import BEST_GUESS, mode_figures

Modes = Mapping[str, Evaluation]


def tables(result: Evaluation, modes: Modes) -> str:
    """Verdicts beside best guesses, the modes, one row a class, and probabilities.

    Intervals are at 95 % (Wilson for counts, else bootstrap over incidents).
    """
    parts = (_verdicts(result, modes.get(BEST_GUESS)), mode_table(modes), _classes(result), _probabilities(result))
    return "\n\n".join(parts) + "\n"


def _verdicts(result: Evaluation, guess: Evaluation | None) -> str:
    rows, guesses = _counts(result), {} if guess is None else _counts(guess)
    lines = [
        f"| {name} | {count_of(count)} | {_short(guesses[name]) if name in guesses else '–'} |"
        for name, count in rows.items()
        if count.total
    ]
    return "\n".join(["| verdicts | share (95 %) | best-guess |", "|---|---|---|", *lines])


def _counts(result: Evaluation) -> dict[str, Count]:
    return {
        "all, strict": result.overall.strict,
        "all, accepted": result.overall.accepted,
        "with a cause, strict": result.causes.strict,
        "with a cause, accepted": result.causes.accepted,
        "causes named: accepted": result.named_right,
        "finer cause named, of right verdicts": result.cause_exact,
        "abstained on a cause": result.abstained,
        "other and undetermined: abstained": result.quiet_abstained,
        "rank_failure named falsely": result.false_rank_failure,
        "no_timeout recognised": result.no_timeout_found,
        "initiating ranks exact": result.ranks_exact,
        "a wrong rank named": result.ranks_wrong,
        "decisive line among the first 3": result.evidence_hit,
    }


def mode_table(modes: Modes) -> str:
    """What each mode names, of the incidents with a timeout, and how often rightly."""
    lines = ["| mode | causes named (coverage) | of those accepted | of those strictly right |", "|---|---|---|---|"]
    for row in mode_figures(modes):
        cells = (count_of(row.covered), count_of(row.right), count_of(row.strictly_right))
        lines.append(f"| {row.mode} | {' | '.join(cells)} |")
    return "\n".join(lines)


def count_of(count: Count) -> str:
    """A count as a cell: hits of total, share, interval."""
    if not count.total:
        return "–"
    low, high = count.interval
    return f"{count.hits} of {count.total}, {count.share:.3f} ({low:.2f} to {high:.2f})"


def _short(count: Count) -> str:
    return f"{count.hits} of {count.total}, {count.share:.3f}"


def _classes(result: Evaluation) -> str:
    lines = ["| class | n | strict | accepted | precision | recall (95 %) | F1 |", "|---|---|---|---|---|---|---|"]
    for item in result.classes:
        precision = "–" if item.precision is None else f"{item.precision:.3f}"
        low, high = item.strict.interval
        recall = f"{item.recall:.3f} ({low:.2f} to {high:.2f})" if item.support else "–"
        counts = f"{item.support} | {item.strict.hits} | {item.accepted.hits}"
        lines.append(f"| {item.label} | {counts} | {precision} | {recall} | {item.f1:.3f} |")
    macro = f"{result.macro_precision:.3f} | {result.macro_recall:.3f} | {macro_f1_of(result)}"
    return "\n".join([*lines, f"| macro over causes | | | | {macro} |"])


def macro_f1_of(result: Evaluation) -> str:
    """The macro-F1 over causes as a cell."""
    return _figure(result, "macro_f1", result.macro_f1)


def _probabilities(result: Evaluation) -> str:
    lines = ["| probabilities | |", "|---|---|"]
    for name, key, value in (("Brier", "brier", result.brier), ("log loss", "log_loss", result.log_loss)):
        if value is not None:
            lines.append(f"| {name} | {_figure(result, key, value)} |")
    if result.ece is not None:
        lines.append(f"| expected calibration error | {result.ece:.3f} |")
    for precision, share in result.coverage_at.items():
        lines.append(f"| incidents that can be named at precision {precision} | {share:.3f} |")
    return "\n".join(lines)


def _figure(result: Evaluation, key: str, value: float) -> str:
    if key not in result.intervals:
        return f"{value:.3f}"
    low, high = result.intervals[key]
    return f"{value:.3f} ({low:.2f} to {high:.2f})"
