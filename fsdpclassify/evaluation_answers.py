"""Labelled incidents -> the reports about them in every mode, and what the modes differ by.

Logs are read through a neutral path, once for all modes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fsdpclassify.decision import MODES
from fsdpclassify.evaluation import Count, Evaluation, Overall, evaluate_reports
from fsdpclassify.labelled import LabelledIncident, neutral_logs
from fsdpclassify.records import Report
from fsdpclassify.sources import collect

if TYPE_CHECKING:
    from fsdpclassify.classifier import Classifier

BEST_GUESS = "best-guess"
Reports = Mapping[str, Report]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeFigures:
    """What one mode answers: how many incidents with a timeout it names a cause for, and how often rightly.

    `right` counts the causes named that are accepted, `strictly_right` those that are the label itself; `covered` the
    causes named among incidents with a timeout; `causes` the verdicts of incidents that have a cause.
    """

    mode: str
    right: Count
    strictly_right: Count
    covered: Count
    causes: Overall
    quiet_abstained: Count
    macro_f1: float


def answered(classifier: Classifier, incident: LabelledIncident, modes: Sequence[str] = MODES) -> Reports:
    """The report about one incident in each mode."""
    with neutral_logs(incident) as logs:
        return classifier.classify_modes(collect([logs]), modes, hung=incident.hung)


def evaluate_modes(
    incidents: Sequence[LabelledIncident], reports: Sequence[Reports], *, seen: frozenset[str] = frozenset()
) -> dict[str, Evaluation]:
    """All figures by mode, in the order of `MODES`; `reports[i]` answers `incidents[i]` in the same modes."""
    return {
        mode: evaluate_reports(incidents, [each[mode] for each in reports], seen=seen)
        for mode in MODES
        if all(mode in each for each in reports)
    }


def mode_figures(results: Mapping[str, Evaluation]) -> tuple[ModeFigures, ...]:
    """One row a mode."""
    return tuple(_figures(mode, result) for mode, result in results.items())


def _figures(mode: str, result: Evaluation) -> ModeFigures:
    # Strictly right and a cause: the same incidents, whether counted by label or by what was named.
    return ModeFigures(
        mode=mode,
        right=result.named_right,
        strictly_right=Count(hits=result.causes.strict.hits, total=result.named_right.total),
        covered=result.covered,
        causes=result.causes,
        quiet_abstained=result.quiet_abstained,
        macro_f1=result.macro_f1,
    )
