"""One labelled incident and the report about it -> which of its questions were answered rightly.

*Strict* means that the conclusion is the label (for a label `other`: that the tool abstained, since
`other` is never a verdict); *accepted* also takes the alternative label, and abstaining where the log
cannot tell. A report with several incidents is judged by its last one.
"""

from __future__ import annotations

from dataclasses import dataclass

from fsdpclassify.labelled import LabelledIncident, content_sha256
from fsdpclassify.records import Diagnosis, Report

UNDETERMINED, NO_TIMEOUT, OTHER = "undetermined", "no_timeout", "other"
NOT_CAUSES = frozenset({UNDETERMINED, NO_TIMEOUT, OTHER})
TOP_EVIDENCE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one incident was answered; `None` where its label says nothing about the question."""

    id: str
    label: str
    cause: str | None
    conclusion: str
    model_label: str | None
    probability: float | None
    truth_probability: float | None
    brier: float | None
    strict: bool
    accepted: bool
    cause_exact: bool | None
    determinable: str | None
    seen: bool
    ranks_exact: bool | None
    ranks_wrong: bool | None
    waiting_exact: bool | None
    evidence_hit: bool | None
    fatal_hit: bool | None


def judge(incident: LabelledIncident, report: Report, *, seen: frozenset[str] = frozenset()) -> Outcome:
    """Judge one report; only its last incident counts."""
    found = report.incidents[-1] if report.incidents else None
    conclusion = NO_TIMEOUT if found is None else found.verdict
    strict = conclusion == as_conclusion(incident.label)
    abstaining_is_right = incident.determinable_from_log == "no" and conclusion == UNDETERMINED
    alternative = incident.alt_label is not None and conclusion == as_conclusion(incident.alt_label)
    probabilities = _known_probabilities(incident, found)
    return Outcome(
        id=incident.id,
        label=incident.label,
        cause=incident.cause_id,
        conclusion=conclusion,
        model_label=None if found is None else found.model_label,
        probability=None if found is None else found.probability,
        truth_probability=None if probabilities is None else probabilities[incident.label],
        brier=None if probabilities is None else _brier(probabilities, incident.label),
        strict=strict,
        accepted=strict or alternative or abstaining_is_right,
        cause_exact=_cause_exact(incident, found) if strict else None,
        determinable=incident.determinable_from_log,
        seen=bool(seen) and content_sha256(incident) in seen,
        ranks_exact=_exact(incident.initiating_ranks or None, found.initiating_ranks if found else ()),
        ranks_wrong=_wrong(incident.initiating_ranks, found),
        waiting_exact=_exact(incident.waiting_ranks, found.waiting_ranks if found else ()),
        evidence_hit=_evidence_hit(incident, found),
        fatal_hit=_fatal_hit(incident, report),
    )


def _known_probabilities(incident: LabelledIncident, found: Diagnosis | None) -> dict[str, float] | None:
    """The model's probabilities if the true label is one that the model knows."""
    return found.probabilities if found is not None and incident.label in found.probabilities else None


def as_conclusion(label: str) -> str:
    """The conclusion that is right for a label: `other` is answered by abstaining."""
    return UNDETERMINED if label == OTHER else label


def _brier(probabilities: dict[str, float], label: str) -> float:
    return sum((value - (name == label)) ** 2 for name, value in probabilities.items())


def _cause_exact(incident: LabelledIncident, found: Diagnosis | None) -> bool | None:
    """Whether the finer cause is right too, where the label is a right verdict and the incident names one."""
    if found is None or incident.cause_id is None or incident.label in NOT_CAUSES:
        return None
    return found.cause == incident.cause_id


def _exact(truth: tuple[int, ...] | None, named: tuple[int, ...]) -> bool | None:
    return None if truth is None else set(named) == set(truth)


def _wrong(truth: tuple[int, ...] | None, found: Diagnosis | None) -> bool | None:
    """Whether a rank was accused that did not do it; naming none is never wrong."""
    if truth is None:
        return None
    return found is not None and not set(found.initiating_ranks) <= set(truth)


def _evidence_hit(incident: LabelledIncident, found: Diagnosis | None) -> bool | None:
    if incident.label == NO_TIMEOUT or not incident.decisive_lines:
        return None
    shown = () if found is None else found.evidence[:TOP_EVIDENCE]
    return any((item.path, item.line) in incident.decisive_lines for item in shown)


def _fatal_hit(incident: LabelledIncident, report: Report) -> bool | None:
    if incident.label != NO_TIMEOUT or not incident.decisive_lines:
        return None
    fatal = report.first_fatal_error
    return fatal is not None and (fatal.path, fatal.line) in incident.decisive_lines
