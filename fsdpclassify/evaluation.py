"""Labelled incidents and the reports about them -> figures: verdicts, ranks, evidence, calibration.

What counts as right is decided in `evaluation_outcome`; here answers are only counted. Abstaining on
a cause is a miss for recall and no false positive. Pure Python.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fsdpclassify.evaluation_curve import (
    PRECISIONS,
    CalibrationBin,
    CurvePoint,
    bootstrap,
    brier,
    calibration_bins,
    coverage_at,
    expected_calibration_error,
    log_loss,
    macro_f1,
    risk_coverage,
)
from fsdpclassify.evaluation_outcome import (
    NO_TIMEOUT,
    NOT_CAUSES,
    OTHER,
    UNDETERMINED,
    Outcome,
    as_conclusion,
    judge,
)
from fsdpclassify.labelled import DETERMINABLE, LabelledIncident
from fsdpclassify.records import Report

_Z = 1.959963984540054  # 95 %
_DIED = "rank_failure"
_QUIET = (OTHER, UNDETERMINED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """`hits` out of `total`, with the share and its 95 % Wilson interval (0 to 1 for no data)."""

    hits: int
    total: int

    @property
    def share(self) -> float:
        """Hits as a share of the total; 0 for no data."""
        return self.hits / self.total if self.total else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper end of the Wilson score interval."""
        if not self.total:
            return 0.0, 1.0
        n, p = self.total, self.share
        middle = (p + _Z * _Z / (2 * n)) / (1 + _Z * _Z / n)
        half = _Z * math.sqrt(p * (1 - p) / n + _Z * _Z / (4 * n * n)) / (1 + _Z * _Z / n)
        return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFigures:
    """Figures of one class under the strict rule; precision is `None` if it was never concluded."""

    label: str
    support: int
    strict: Count
    accepted: Count
    precision: float | None
    recall: float
    f1: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Overall:
    """Verdicts of a set of incidents."""

    strict: Count
    accepted: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseFigures:
    """Verdicts of the incidents with one finer cause; `named`: of the right ones, how many name that cause."""

    cause: str
    label: str
    strict: Count
    accepted: Count
    named: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """All figures. `macro_*` average the causes that occur; `unseen` leaves out what the model learned from.

    `abstained` counts abstentions among incidents with a cause, `quiet_abstained` those among `other` and
    `undetermined`, `named_right` the accepted among all causes named, `covered` the causes named among incidents with
    a timeout, `false_rank_failure` the verdicts `rank_failure` among incidents of other labels. `brier` sums squared
    errors over the labels (0 best, 2 worst), `log_loss` is in nats; both over incidents whose label the model knows,
    and `None` where there are none. `ece` is `None` for few incidents too. `coverage_at` gives for a precision the
    share of incidents that can be named with it, by the best threshold on this very set; `intervals` holds the 95 %
    bootstrap interval of a figure by its name.
    """

    outcomes: tuple[Outcome, ...]
    overall: Overall
    unseen: Overall
    causes: Overall
    classes: tuple[ClassFigures, ...]
    macro_precision: float
    macro_recall: float
    macro_f1: float
    by_determinable: dict[str, Overall]
    by_cause: tuple[CauseFigures, ...]
    cause_exact: Count
    abstained: Count
    quiet_abstained: Count
    named_right: Count
    covered: Count
    false_rank_failure: Count
    no_timeout_found: Count
    incident_missed: Count
    ranks_exact: Count
    ranks_wrong: Count
    waiting_exact: Count
    evidence_hit: Count
    fatal_hit: Count
    brier: float | None
    log_loss: float | None
    ece: float | None
    calibration: tuple[CalibrationBin, ...]
    curve: tuple[CurvePoint, ...]
    coverage_at: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    confusion: dict[str, dict[str, int]]


def evaluate_reports(
    incidents: Sequence[LabelledIncident], reports: Sequence[Report], *, seen: frozenset[str] = frozenset()
) -> Evaluation:
    """Judge `reports[i]` by `incidents[i]`; `seen` holds the content hashes that the model was trained on.

    Raises `ValueError` if the two differ in length.
    """
    pairs = zip(incidents, reports, strict=True)
    return summarise([judge(incident, report, seen=seen) for incident, report in pairs])


def summarise(outcomes: Sequence[Outcome]) -> Evaluation:
    """All figures of a set of judged incidents."""
    causes = [o for o in outcomes if o.label not in NOT_CAUSES]
    classes = _classes(outcomes)
    shown = [figures for figures in classes if figures.label not in NOT_CAUSES and figures.support]
    curve = risk_coverage(outcomes)
    return Evaluation(
        outcomes=tuple(outcomes),
        overall=_overall(outcomes),
        unseen=_overall([o for o in outcomes if not o.seen]),
        causes=_overall(causes),
        classes=classes,
        macro_precision=_mean([figures.precision or 0.0 for figures in shown]) or 0.0,
        macro_recall=_mean([figures.recall for figures in shown]) or 0.0,
        macro_f1=_mean([figures.f1 for figures in shown]) or 0.0,
        by_determinable={key: _overall([o for o in outcomes if o.determinable == key]) for key in DETERMINABLE},
        by_cause=_by_cause(outcomes),
        cause_exact=_known(outcomes, lambda o: o.cause_exact),
        abstained=_count(o.conclusion == UNDETERMINED for o in causes),
        quiet_abstained=_count(o.conclusion == UNDETERMINED for o in outcomes if o.label in _QUIET),
        named_right=_count(o.accepted for o in outcomes if o.conclusion not in NOT_CAUSES),
        covered=_count(o.conclusion not in NOT_CAUSES for o in outcomes if o.label != NO_TIMEOUT),
        false_rank_failure=_count(o.conclusion == _DIED for o in outcomes if o.label != _DIED),
        no_timeout_found=_count(o.conclusion == NO_TIMEOUT for o in outcomes if o.label == NO_TIMEOUT),
        incident_missed=_count(o.conclusion == NO_TIMEOUT for o in outcomes if o.label != NO_TIMEOUT),
        ranks_exact=_known(outcomes, lambda o: o.ranks_exact),
        ranks_wrong=_known(outcomes, lambda o: o.ranks_wrong),
        waiting_exact=_known(outcomes, lambda o: o.waiting_exact),
        evidence_hit=_known(outcomes, lambda o: o.evidence_hit),
        fatal_hit=_known(outcomes, lambda o: o.fatal_hit),
        brier=brier(outcomes),
        log_loss=log_loss(outcomes),
        ece=expected_calibration_error(outcomes),
        calibration=calibration_bins(outcomes),
        curve=curve,
        coverage_at={f"{precision:.2f}": coverage_at(curve, precision) for precision in PRECISIONS},
        intervals=_intervals(outcomes),
        confusion=_confusion(outcomes),
    )


def _intervals(outcomes: Sequence[Outcome]) -> dict[str, tuple[float, float]]:
    figures = {"macro_f1": macro_f1, "brier": brier, "log_loss": log_loss}
    found = {name: bootstrap(outcomes, figure) for name, figure in figures.items()}
    return {name: interval for name, interval in found.items() if interval is not None}


def _count(answers: Iterable[bool]) -> Count:
    given = list(answers)
    return Count(hits=sum(given), total=len(given))


def _known(outcomes: Sequence[Outcome], question: Callable[[Outcome], bool | None]) -> Count:
    return _count(answer for answer in map(question, outcomes) if answer is not None)


def _overall(outcomes: Sequence[Outcome]) -> Overall:
    return Overall(strict=_count(o.strict for o in outcomes), accepted=_count(o.accepted for o in outcomes))


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _classes(outcomes: Sequence[Outcome]) -> tuple[ClassFigures, ...]:
    labels = {as_conclusion(o.label) for o in outcomes} | {o.conclusion for o in outcomes}
    # Causes in alphabetical order, then the two outcomes that are no causes.
    ordered = sorted(labels, key=lambda name: (name in NOT_CAUSES, name))
    return tuple(_figures(label, outcomes) for label in ordered)


def _figures(label: str, outcomes: Sequence[Outcome]) -> ClassFigures:
    truth = [o for o in outcomes if as_conclusion(o.label) == label]
    concluded = sum(o.conclusion == label for o in outcomes)
    right = sum(o.strict for o in truth)
    precision = right / concluded if concluded else None
    recall = right / len(truth) if truth else 0.0
    total = (precision or 0.0) + recall
    return ClassFigures(
        label=label,
        support=len(truth),
        strict=Count(hits=right, total=len(truth)),
        accepted=_count(o.accepted for o in truth),
        precision=precision,
        recall=recall,
        f1=2 * (precision or 0.0) * recall / total if total else 0.0,
    )


def _by_cause(outcomes: Sequence[Outcome]) -> tuple[CauseFigures, ...]:
    """By label and cause, for incidents whose label is a cause and that name a finer one."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for o in outcomes:
        if o.cause is not None and o.label not in NOT_CAUSES:
            groups.setdefault((o.label, o.cause), []).append(o)
    return tuple(
        CauseFigures(
            cause=cause,
            label=label,
            strict=_count(o.strict for o in group),
            accepted=_count(o.accepted for o in group),
            named=_known(group, lambda o: o.cause_exact),
        )
        for (label, cause), group in sorted(groups.items())
    )


def _confusion(outcomes: Sequence[Outcome]) -> dict[str, dict[str, int]]:
    rows: dict[str, Counter[str]] = {}
    for o in outcomes:
        rows.setdefault(o.label, Counter())[o.conclusion] += 1
    return {label: dict(sorted(row.items())) for label, row in sorted(rows.items())}
