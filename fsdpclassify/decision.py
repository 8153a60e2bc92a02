"""Scores + thresholds -> the verdict, or an honest abstention with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fsdpclassify.records import Abstention

OTHER = "other"
UNDETERMINED = "undetermined"
MODES = ("best-guess", "balanced", "high-precision")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the tool concludes beside what the model said first."""

    verdict: str
    model_label: str
    probability: float
    abstained_because: Abstention | None


def decide(
    probabilities: Mapping[str, float],
    thresholds: Mapping[str, float],
    *,
    evidence: float,
    unlike: bool,
    minimum_evidence: float,
) -> Verdict:
    """Follow the model's first label unless it is out of scope, below its threshold, or rests on nothing.

    `evidence` is by how much all printed lines together raise the first label's probability; `unlike`
    says that the text does not resemble the training data (`familiar`), so that no probability is to be trusted.
    """
    label = max(probabilities, key=lambda k: probabilities[k])
    p = probabilities[label]
    reason = _reason(label, p, thresholds, evidence=evidence, unlike=unlike, minimum_evidence=minimum_evidence)
    return Verdict(
        verdict=UNDETERMINED if reason else label, model_label=label, probability=p, abstained_because=reason
    )


def _reason(
    label: str, p: float, thresholds: Mapping[str, float], *, evidence: float, unlike: bool, minimum_evidence: float
) -> Abstention | None:
    if label == OTHER:
        return Abstention.OUT_OF_SCOPE
    if p < thresholds.get(label, 0.5):
        return Abstention.LOW_CONFIDENCE
    if unlike:
        return Abstention.OUT_OF_SCOPE
    if evidence < minimum_evidence:
        return Abstention.NO_EVIDENCE
    return None
