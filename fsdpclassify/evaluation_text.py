"""`Evaluation` -> the plain-text table and the JSON of `fsdpclassify evaluate`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fsdpclassify.evaluation import ClassFigures, Count, Evaluation, Overall
from fsdpclassify.report.wording import printable

SCHEMA_VERSION = 1


def evaluation_as_dict(result: Evaluation) -> dict[str, Any]:
    """Every figure, counts with their share and interval, and one row an incident."""
    figures = {name: _plain(getattr(result, name)) for name in result.__slots__ if name != "outcomes"}
    return {"schema_version": SCHEMA_VERSION, **figures, "incidents": [asdict(o) for o in result.outcomes]}


def _plain(value: Any) -> Any:  # noqa: ANN401  (figures of several kinds)
    if isinstance(value, Count):
        low, high = value.interval
        return {"hits": value.hits, "total": value.total, "share": value.share, "interval": [low, high]}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if hasattr(value, "__slots__"):
        return {name: _plain(getattr(value, name)) for name in value.__slots__}
    return value


def render_evaluation(result: Evaluation) -> str:
    """All figures as plain text ending in a newline; counts carry their 95 % Wilson interval."""
    lines = [*_verdicts(result), "", *_class_table(result.classes), _macro(result), "", *_grounds(result)]
    lines += ["", *_probabilities(result), "", *_confusion(result), "", *_misses(result)]
    return "\n".join(printable(line) for line in lines) + "\n"


def _row(name: str, count: Count) -> str:
    low, high = count.interval
    if not count.total:
        return f"  {name:<34} {'-':>9}"
    return f"  {name:<34} {f'{count.hits}/{count.total}':>9}  {count.share:.3f}  [{low:.2f}, {high:.2f}]"


def _pair(name: str, both: Overall) -> list[str]:
    return [_row(f"{name}, strict", both.strict), _row(f"{name}, accepted", both.accepted)]


def _verdicts(result: Evaluation) -> list[str]:
    seen = sum(o.seen for o in result.outcomes)
    lines = [f"{seen} of {len(result.outcomes)} incidents were seen in training", ""] if seen else []
    lines += ["Verdicts", *_pair("all", result.overall)]
    lines += _pair("not seen in training", result.unseen) if seen else []
    lines += _pair("with a cause", result.causes)
    for name, both in result.by_determinable.items():
        lines += _pair(f"cause in the log: {name}", both)
    lines.append(_row("abstained on a cause", result.abstained))
    lines.append(_row("causes named: accepted", result.named_right))
    lines.append(_row("no_timeout recognised", result.no_timeout_found))
    return [*lines, _row("incidents taken for no_timeout", result.incident_missed)]


def _class_table(classes: tuple[ClassFigures, ...]) -> list[str]:
    figures = f"{'precision':>10} {'recall':>7} {'95 %':>14} {'F1':>6}"
    lines = [f"  {'class':<20} {'n':>4} {'strict':>7} {'accepted':>9} {figures}"]
    for item in classes:
        precision = "-" if item.precision is None else f"{item.precision:.3f}"
        counts = f"{item.support:>4} {item.strict.hits:>7} {item.accepted.hits:>9}"
        span = _span(item.strict.interval) if item.support else "-"
        lines.append(f"  {item.label:<20} {counts} {precision:>10} {item.recall:>7.3f} {span:>14} {item.f1:>6.3f}")
    return lines


def _macro(result: Evaluation) -> str:
    figures = f"{result.macro_precision:>10.3f} {result.macro_recall:>7.3f} {'':>14} {result.macro_f1:>6.3f}"
    span = f" {_span(result.intervals['macro_f1'])}" if "macro_f1" in result.intervals else ""
    return f"  {'macro (causes)':<20} {'':>4} {'':>7} {'':>9} {figures}{span}"


def _span(interval: tuple[float, float]) -> str:
    return f"[{interval[0]:.2f}, {interval[1]:.2f}]"


def _grounds(result: Evaluation) -> list[str]:
    return [
        "Ranks and evidence",
        _row("initiating ranks exact", result.ranks_exact),
        _row("a wrong rank named", result.ranks_wrong),
        _row("waiting ranks exact", result.waiting_exact),
        _row("decisive line among the first 3", result.evidence_hit),
        _row("fatal line found (no_timeout)", result.fatal_hit),
    ]


def _probabilities(result: Evaluation) -> list[str]:
    if result.brier is None or result.log_loss is None:
        return ["Probabilities: no incident has a label that the model knows"]
    losses = {"Brier": ("brier", result.brier), "log loss": ("log_loss", result.log_loss)}
    told = [f"{name} {value:.3f} {_span(result.intervals[key])}" for name, (key, value) in losses.items()]
    told += [] if result.ece is None else [f"expected calibration error {result.ece:.3f}"]
    lines = ["Probabilities (95 % intervals: bootstrap over incidents)", f"  {', '.join(told)}"]
    named = ", ".join(f"{share:.3f} at precision {precision}" for precision, share in result.coverage_at.items())
    lines.append(f"  incidents that could be named (best threshold on this set): {named}")
    lines += [f"  {'first label at':<16} {'n':>4} {'mean':>6} {'right':>6}"]
    for item in result.calibration:
        span = f"{item.low:.1f} to {item.high:.1f}"
        lines.append(f"  {span:<16} {item.count:>4} {item.mean_probability:>6.3f} {item.right:>6.3f}")
    return lines


def _confusion(result: Evaluation) -> list[str]:
    lines = ["Confusion: label -> conclusions"]
    for label, row in result.confusion.items():
        lines.append(f"  {label:<20} " + ", ".join(f"{name} {count}" for name, count in row.items()))
    return lines


def _misses(result: Evaluation) -> list[str]:
    missed = [o for o in result.outcomes if not o.accepted]
    if not missed:
        return ["Every verdict is accepted."]
    lines = ["Not accepted"]
    for o in missed:
        guess = "" if o.model_label in (None, o.conclusion) else f" (first guess {o.model_label} {o.probability:.2f})"
        lines.append(f"  {o.id:<12} {o.label} answered {o.conclusion}{guess}{', seen in training' if o.seen else ''}")
    return lines
