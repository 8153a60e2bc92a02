"""`Evaluation` -> the plain-text table and the JSON of `fsdpclassify evaluate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fsdpclassify.evaluation import ClassFigures, Count, Evaluation
from fsdpclassify.evaluation_answers import BEST_GUESS, mode_figures
from fsdpclassify.report.wording import printable

SCHEMA_VERSION = 1


def evaluation_as_dict(result: Evaluation, modes: Mapping[str, Evaluation] | None = None) -> dict[str, Any]:
    """Every figure, counts with their share and interval, one row an incident and, of all `modes`, one row a mode."""
    figures = {name: _plain(getattr(result, name)) for name in result.__slots__ if name != "outcomes"}
    if modes:
        figures["modes"] = [_plain(row) for row in mode_figures(modes)]
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


def render_evaluation(result: Evaluation, modes: Mapping[str, Evaluation] | None = None) -> str:
    """All figures as plain text ending in a newline; counts carry their 95 % Wilson interval.

    Where `modes` holds them, best guesses stand in a column of their own, and the modes in a table.
    """
    guess = (modes or {}).get(BEST_GUESS)
    guess = None if guess is result else guess
    lines = [*_verdicts(result, guess), "", *_class_table(result.classes, guess), _macro(result, guess), ""]
    lines += [*_mode_table(modes), ""] if modes else []
    lines += [*_grounds(result), "", *_cause_table(result), *_probabilities(result), "", *_confusion(result)]
    lines += ["", *_misses(result)]
    return "\n".join(printable(line).rstrip() for line in lines) + "\n"


def _row(name: str, count: Count, guess: Count | None = None) -> str:
    if not count.total:
        return f"  {name:<34} {'-':>9}"
    beside = "" if guess is None else f"   {f'{guess.hits}/{guess.total}':>9}  {guess.share:.3f}"
    return f"  {name:<34} {f'{count.hits}/{count.total}':>9}  {count.share:.3f}  {_span(count.interval)}{beside}"


def _verdicts(result: Evaluation, guess: Evaluation | None) -> list[str]:
    seen = sum(o.seen for o in result.outcomes)
    lines = [f"{seen} of {len(result.outcomes)} incidents were seen in training", ""] if seen else []
    lines.append("Verdicts" if guess is None else f"{'Verdicts':<64}   {BEST_GUESS:>9}")
    others = {} if guess is None else _verdict_counts(guess)
    return lines + [_row(name, count, others.get(name)) for name, count in _verdict_counts(result).items()]


def _verdict_counts(result: Evaluation) -> dict[str, Count]:
    pairs = {"all": result.overall}
    pairs |= {"not seen in training": result.unseen} if any(o.seen for o in result.outcomes) else {}
    pairs |= {"with a cause": result.causes}
    pairs |= {f"cause in the log: {name}": both for name, both in result.by_determinable.items()}
    counts = {f"{name}, {how}": getattr(both, how) for name, both in pairs.items() for how in ("strict", "accepted")}
    return counts | {
        "abstained on a cause": result.abstained,
        "other, undetermined: abstained": result.quiet_abstained,
        "causes named: accepted": result.named_right,
        "causes named, of all with a timeout": result.covered,
        "rank_failure named falsely": result.false_rank_failure,
        "no_timeout recognised": result.no_timeout_found,
        "incidents taken for no_timeout": result.incident_missed,
    }


def _class_table(classes: tuple[ClassFigures, ...], guess: Evaluation | None) -> list[str]:
    beside = {} if guess is None else {item.label: item for item in guess.classes}
    heads = f"{'precision':>10} {'recall':>7} {'95 %':>14} {'F1':>6}" + (
        f"   {BEST_GUESS} strict, F1" if beside else ""
    )
    lines = [f"  {'class':<20} {'n':>4} {'strict':>7} {'accepted':>9} {heads}"]
    for item in classes:
        precision = "-" if item.precision is None else f"{item.precision:.3f}"
        counts = f"{item.support:>4} {item.strict.hits:>7} {item.accepted.hits:>9}"
        span = _span(item.strict.interval) if item.support else "-"
        other = beside.get(item.label)
        told = "" if other is None else f"   {other.strict.hits:>17} {other.f1:>6.3f}"
        lines.append(
            f"  {item.label:<20} {counts} {precision:>10} {item.recall:>7.3f} {span:>14} {item.f1:>6.3f}{told}"
        )
    return lines


def _macro(result: Evaluation, guess: Evaluation | None) -> str:
    figures = f"{result.macro_precision:>10.3f} {result.macro_recall:>7.3f} {'':>14} {result.macro_f1:>6.3f}"
    told = "" if guess is None else f"   {'':>17} {guess.macro_f1:>6.3f}"
    span = f"   F1 {_span(result.intervals['macro_f1'])}" if "macro_f1" in result.intervals else ""
    return f"  {'macro (causes)':<20} {'':>4} {'':>7} {'':>9} {figures}{told}{span}"


def _mode_table(modes: Mapping[str, Evaluation]) -> list[str]:
    """What each mode names, of the incidents with a timeout, and how often rightly."""
    lines = ["Modes: causes named of all incidents with a timeout; of those named, accepted and strictly right"]
    for row in mode_figures(modes):
        named, right = (f"{c.hits}/{c.total}  {c.share:.3f}  {_span(c.interval)}" for c in (row.covered, row.right))
        strict = f"{row.strictly_right.hits}/{row.strictly_right.total}"
        lines.append(f"  {row.mode:<16} named {named:<28} accepted {right:<28} strict {strict}")
    return lines


def _cause_table(result: Evaluation) -> list[str]:
    """One row a finer cause; nothing where no incident names one."""
    if not result.by_cause:
        return []
    lines = [_row("finer cause named, of right verdicts", result.cause_exact), ""]
    lines.append(f"  {'label: finer cause':<58} {'n':>4} {'strict':>7} {'accepted':>9} {'cause named':>12}")
    for item in result.by_cause:
        named = f"{item.named.hits}/{item.named.total}"
        counts = f"{item.strict.total:>4} {item.strict.hits:>7} {item.accepted.hits:>9}"
        lines.append(f"  {f'{item.label}: {item.cause}':<58} {counts} {named:>12}")
    return [*lines, ""]


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
