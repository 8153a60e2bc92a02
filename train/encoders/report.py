"""The table of the comparison as text: one row a candidate, then what is beyond noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from train.encoders.judge import SETS, Answers, difference
from train.encoders.running import Cost

LINES = "lines"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one candidate answers by set and what it costs.

    `coarse` names the result whose graph it is with integer weights, or is None; `exact` holds its answers before
    quantisation where its own tables were rounded. `batch`: how far any coordinate of a line's vector moves when other
    lines are run with it, as candidates are run here and (`crowded`) if all lines were run in batches.
    """

    name: str
    answers: dict[str, Answers]
    exact: dict[str, Answers] | None
    coarse: str | None
    cost: Cost
    batch: float
    crowded: float


def header(results: Sequence[Result]) -> list[str]:
    """What the columns hold."""
    counts = {name: len(found.truth) for name, found in results[0].answers.items()} if results else {}
    sets = "".join(f"{f'{name} ({counts.get(name, 0)})':>16}" for name in SETS)
    return [
        "Macro-F1 and log loss by set (incidents); lines: wordings of families that only validation prints",
        f"{'encoder':<20}{f'lines acc F1 ({counts.get(LINES, 0)})':>20}{sets}"
        f"{'MB':>7}{'cold ms':>9}{'100 lines ms, 1/2 thr':>23}{'quantised, points':>19}{'batch, in batches':>20}",
    ]


def row(result: Result, results: Sequence[Result]) -> str:
    """One candidate."""
    lines = result.answers[LINES]
    told = [f"{result.answers[name].macro_f1():.3f} {result.answers[name].losses().mean():.3f}" for name in SETS]
    warm = " / ".join(f"{1000 * result.cost.warm[threads]:.1f}" for threads in (1, 2))
    return (
        f"{result.name:<20}{f'{lines.accuracy():.3f} {lines.macro_f1():.3f}':>20}"
        + "".join(f"{text:>16}" for text in told)
        + f"{result.cost.bytes / 1e6:>7.1f}{1000 * result.cost.cold:>9.1f}{warm:>23}{_quantised(result, results):>19}"
        + f"{f'{result.batch:.0e}, {result.crowded:.0e}':>20}"
    )


def _quantised(result: Result, results: Sequence[Result]) -> str:
    """Macro-F1 on lines and on `val` lost by integer weights, in points (negative: gained)."""
    full = next((r.answers for r in results if r.name == result.coarse), result.exact)
    if full is None:
        return "-"
    lost = [100 * (full[name].macro_f1() - result.answers[name].macro_f1()) for name in (LINES, SETS[0])]
    return ", ".join(f"{value:+.1f}" for value in lost)


def differences(results: Sequence[Result]) -> list[str]:
    """Every other candidate against the first, with 95 % intervals; `*` marks what leaves zero outside."""
    found = [
        f"Against {results[0].name}: macro-F1 in points and log loss, with 95 % bootstrap intervals over incidents"
    ]
    for result in results[1:]:
        for name in (LINES, *SETS):
            change = difference(results[0].answers[name], result.answers[name])
            f1, loss = tuple(100 * v for v in change.f1), change.loss
            found.append(f"{result.name:<20}{name:<9} F1 {_interval(f1, 1):<28} log loss {_interval(loss, 3)}")
    return found


def _interval(values: Sequence[float], digits: int) -> str:
    middle, low, high = values
    star = "*" if low > 0 or high < 0 else ""
    return f"{middle:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]{star}"
