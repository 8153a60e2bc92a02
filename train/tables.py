"""`python -m train evaluate --tables`: the figures of a split as Markdown, for the card and the documentation."""

from __future__ import annotations

from fsdpclassify.evaluation import Count, Evaluation


def tables(result: Evaluation) -> str:
    """Verdicts, one row a class, and probabilities; intervals are at 95 % (Wilson for counts, else bootstrap)."""
    return "\n\n".join((_verdicts(result), _classes(result), _probabilities(result))) + "\n"


def _verdicts(result: Evaluation) -> str:
    rows = {
        "all, strict": result.overall.strict,
        "all, accepted": result.overall.accepted,
        "with a cause, strict": result.causes.strict,
        "with a cause, accepted": result.causes.accepted,
        "causes named: accepted": result.named_right,
        "abstained on a cause": result.abstained,
        "no_timeout recognised": result.no_timeout_found,
        "initiating ranks exact": result.ranks_exact,
        "decisive line among the first 3": result.evidence_hit,
    }
    lines = [f"| {name} | {_count(count)} |" for name, count in rows.items() if count.total]
    return "\n".join(["| verdicts | share (95 %) |", "|---|---|", *lines])


def _count(count: Count) -> str:
    low, high = count.interval
    return f"{count.hits} of {count.total}, {count.share:.3f} ({low:.2f} to {high:.2f})"


def _classes(result: Evaluation) -> str:
    lines = ["| class | n | strict | accepted | precision | recall (95 %) | F1 |", "|---|---|---|---|---|---|---|"]
    for item in result.classes:
        precision = "–" if item.precision is None else f"{item.precision:.3f}"
        low, high = item.strict.interval
        recall = f"{item.recall:.3f} ({low:.2f} to {high:.2f})" if item.support else "–"
        counts = f"{item.support} | {item.strict.hits} | {item.accepted.hits}"
        lines.append(f"| {item.label} | {counts} | {precision} | {recall} | {item.f1:.3f} |")
    macro = f"{result.macro_precision:.3f} | {result.macro_recall:.3f} | {_figure(result, 'macro_f1', result.macro_f1)}"
    return "\n".join([*lines, f"| macro over causes | | | | {macro} |"])


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
