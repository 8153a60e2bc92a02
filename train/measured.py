"""The held-out figures that a bundle's manifest carries: plain numbers, one block a set of incidents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fsdpclassify.evaluation import Count, Evaluation
from fsdpclassify.evaluation_answers import ModeFigures, mode_figures
from train.evaluate import Answers, answers, subset

BALANCED = "balanced"
Block = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A set of incidents by the options of `python -m train evaluate` that print it."""

    title: str
    splits: tuple[str, ...]
    subset: str = "all"

    @property
    def options(self) -> str:
        """As on the command line."""
        return f"--split {'+'.join(self.splits)}" + ("" if self.subset == "all" else f" --subset {self.subset}")


SETS = (
    Measured(title="public, reference set, out of fold", splits=("public",), subset="reference"),
    Measured(title="public, later set, out of fold", splits=("public",), subset="breadth"),
    Measured(title="recorded runs, faults and scripts not trained on", splits=("lab_test",)),
    Measured(title="recorded runs, a fourth set, read by eye once after its first score", splits=("lab_fresh",)),
    Measured(title="recorded runs and public", splits=("lab_test", "public")),
    Measured(title="composed, an author not trained on", splits=("written_test",)),
    Measured(title="composed, each author by a model fitted without it", splits=("written",)),
    Measured(title="simulated, wording seen", splits=("test_seen",)),
    Measured(title="simulated, unseen message families", splits=("test_unseen_lines",)),
    Measured(title="simulated, unseen frameworks and launchers", splits=("test_unseen_dialect",)),
    Measured(title="simulated, unseen causes", splits=("test_unseen_cause",)),
    Measured(
        title="the three unseen ones together",
        splits=("test_unseen_lines", "test_unseen_dialect", "test_unseen_cause"),
    ),
)


def measure(ask: Callable[[str], Answers] = lambda split: answers([split], baselines=False)) -> dict[str, Block]:
    """The figures of every set, each split being answered once."""
    told: dict[str, Answers] = {split: ask(split) for split in dict.fromkeys(s for m in SETS for s in m.splits)}
    found = {}
    for each in SETS:
        pairs = tuple(pair for split in each.splits for pair in told[split].pairs)
        chosen = Answers(pairs=pairs, baselines={}).of(subset(each.subset))
        found[each.options] = block(chosen.evaluated())
    return found


def block(modes: Mapping[str, Evaluation]) -> Block:
    """One set's figures in mode `balanced`, and what each mode names; counts are [hits, total]."""
    result = modes[BALANCED]
    return {
        "causes_strict": _pair(result.causes.strict),
        "causes_accepted": _pair(result.causes.accepted),
        "quiet_abstained": _pair(result.quiet_abstained),
        "no_timeout_found": _pair(result.no_timeout_found),
        "ranks_exact": _pair(result.ranks_exact),
        "ranks_wrong": _pair(result.ranks_wrong),
        "evidence_hit": _pair(result.evidence_hit),
        "false_rank_failure": _pair(result.false_rank_failure),
        "macro_f1": _figure(result, "macro_f1", result.macro_f1),
        "brier": _figure(result, "brier", result.brier),
        "log_loss": _figure(result, "log_loss", result.log_loss),
        "ece": None if result.ece is None else round(result.ece, 4),
        "coverage_at": {name: round(share, 4) for name, share in result.coverage_at.items()},
        "modes": {row.mode: _mode(row) for row in mode_figures(modes)},
    }


def _pair(count: Count) -> list[int]:
    return [count.hits, count.total]


def _figure(result: Evaluation, name: str, value: float | None) -> list[float] | None:
    """The figure and both ends of its bootstrap interval."""
    if value is None:
        return None
    return [round(number, 4) for number in (value, *result.intervals.get(name, ()))]


def _mode(row: ModeFigures) -> dict[str, Any]:
    return {
        "named": _pair(row.covered),
        "accepted": _pair(row.right),
        "causes_strict": _pair(row.causes.strict),
        "macro_f1": round(row.macro_f1, 4),
    }
