"""Incident + model -> diagnosis: scores, verdict, initiating ranks, evidence, rivals, remedy, what to record next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fsdpclassify.advice import alternatives, collect_next, remedy_for
from fsdpclassify.catalogue import Catalogue
from fsdpclassify.causes import CauseScorer, best_cause
from fsdpclassify.decision import OTHER, UNDETERMINED, decide
from fsdpclassify.encoder import Encoder
from fsdpclassify.evidence import Weighed, render, weigh
from fsdpclassify.familiar import is_familiar, known_share
from fsdpclassify.features import LINE_FACTS, Features, extract
from fsdpclassify.head import Head, facts_array
from fsdpclassify.initiating import initiating_nodes, initiating_ranks, shown_absent
from fsdpclassify.manifest import Manifest
from fsdpclassify.records import Diagnosis, Incident, InputKind
from fsdpclassify.structure import grounds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_READS_LIKE = 0.3
#: What a line counts for that says the same as others, so that none of them is missed much.
_TIED = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What one bundle brings to a diagnosis; every part can be pickled. Without `words` no text is unlike others."""

    manifest: Manifest
    encoder: Encoder
    head: Head
    causes: CauseScorer
    catalogue: Catalogue
    words: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """An incident with what the model's inputs and outputs were."""

    features: Features
    vectors: NDArray[np.float32]
    facts: NDArray[np.float32]
    ledger: NDArray[np.float32]
    probabilities: dict[str, float]
    line_evidence: NDArray[np.float32]


def score(model: Model, incident: Incident, kinds: Sequence[InputKind | None]) -> Scored:
    """Run the model on one incident."""
    import numpy as np

    features = extract(incident, kinds)
    vectors = model.encoder.encode(features.texts).reshape(len(features.texts), model.encoder.dimension)
    facts = facts_array(features.facts, len(LINE_FACTS))
    ledger = np.asarray(features.ledger, dtype=np.float32)
    probabilities, evidence = model.head.run(vectors, facts, ledger)
    return Scored(
        features=features,
        vectors=vectors,
        facts=facts,
        ledger=ledger,
        probabilities={label: float(p) for label, p in zip(model.manifest.labels, probabilities, strict=True)},
        line_evidence=evidence,
    )


def diagnose(
    model: Model,
    incident: Incident,
    kinds: Sequence[InputKind | None],
    paths: Sequence[str],
    *,
    mode: str,
    mask: Callable[[str], str],
) -> Diagnosis:
    """The answer for one incident; `paths` are the labels of the sources, `mask` hides secrets in printed lines."""
    scored = score(model, incident, kinds)
    label = max(scored.probabilities, key=lambda k: scored.probabilities[k])
    weighed, support = weigh(
        incident, scored.features, scored.vectors, scored.facts, scored.ledger, scored.line_evidence,
        lambda v, f, g: model.head.run(v, f, g)[0], model.manifest.labels, label,
    )  # fmt: skip
    scores = model.causes.score(scored.vectors)
    least = _minimum_evidence(model.manifest, mode)
    reading = _reading(label, scores, scored.features, incident, model)
    verdict = decide(
        scored.probabilities,
        model.manifest.thresholds[mode],
        evidence=_shown(support, reading, least, model.manifest),
        unlike=mode != "best-guess" and _unlike(label, weighed, scores, scored.features, incident, model),
        minimum_evidence=least,
    )
    rows = _speaking_rows(label, weighed, scored.features, incident)
    cause = best_cause(label, rows, scores, model.catalogue)
    sure = verdict.verdict != UNDETERMINED
    shown_cause = cause if sure or label == OTHER else None
    speaking = [
        scored.features.window[w.row]
        for w in weighed
        if w.row is not None and w.supports == label and w.weight > -_TIED
    ]
    return Diagnosis(
        verdict=verdict.verdict,
        cause=None if shown_cause is None else model.catalogue.causes[shown_cause].id,
        probability=verdict.probability,
        probabilities=scored.probabilities,
        model_label=verdict.model_label,
        abstained_because=verdict.abstained_because,
        collective=incident.collective,
        world_size=incident.world_size,
        initiating_ranks=initiating_ranks(label, incident, speaking) if sure else shown_absent(incident),
        initiating_nodes=initiating_nodes(label, incident) if sure else (),
        waiting_ranks=incident.waiting,
        failed_ranks=incident.failed,
        evidence=render(weighed, paths, [_reason(w, scores, model.catalogue) for w in weighed], mask),
        alternatives=alternatives(scored.probabilities, verdict.model_label, cause, model.catalogue),
        remedy=remedy_for(verdict.verdict, shown_cause if sure else None, model.catalogue),
        collect_next=collect_next(incident, sure=sure),
        ledger=incident.ledger,
    )


def _minimum_evidence(manifest: Manifest, mode: str) -> float:
    """A best guess may rest on nothing, or even stand against what is printed: a probability falls by 1 at most."""
    return -1.0 if mode == "best-guess" else manifest.out_of_scope.get("minimum_evidence", 0.0)


#: Structural facts that need no wording: each shows in itself why somebody did not come, or that the wire failed.
_TELLING = frozenset(
    {
        "shapes", "behind", "mismatch", "early_error", "early_exit", "early_signal", "early_kill", "hardware",
        "transport", "nccl_error", "peer_closed", "barrier", "store",
    }
)  # fmt: skip


def _reading(label: str, scores: NDArray[np.float32], features: Features, incident: Incident, model: Model) -> float:
    """How much the line that reads most like a cause of `label` does so, in [0, 1]; 1 where a printed fact stands
    behind it.

    The line classifier knows who prints what and when, and can be led by that; the cause graph reads wording
    alone. A label that only the first of them sees rests on the shape of the log.
    """
    members = model.catalogue.of_label(label)
    if not members or _told_by_structure(incident):
        return 1.0
    rows = [i for i, row in enumerate(features.window) if not row.is_detection]
    return max((float(scores[i][members].sum()) for i in rows), default=0.0)


#: A line that reads like a cause of the label this clearly is evidence, also where the structure alone says as much.
_READS_CLEARLY = 0.3


def _told_by_structure(incident: Incident) -> bool:
    return any(g.name in _TELLING for g in grounds(incident))


def _unlike(
    label: str,
    weighed: Sequence[Weighed],
    scores: NDArray[np.float32],
    features: Features,
    incident: Incident,
    model: Model,
) -> bool:
    """Whether the log is told in words that the training data does not hold, and nothing in it speaks all the same.

    A fact that needs no wording does, and so does a line of evidence in known words that reads clearly like a cause
    of the label: a house's own jargon around it is no reason to doubt that line.
    """
    least = model.manifest.out_of_scope.get("minimum_known", 0.0)
    if model.words is None or _told_by_structure(incident):
        return False
    told = [i for i, row in enumerate(features.window) if not row.is_detection]
    if known_share([features.texts[i] for i in told], model.words) >= least:
        return False
    members = model.catalogue.of_label(label)
    rows = [w.row for w in weighed if w.row in told and w.supports == label and w.weight > 0 and w.why is None]
    clear = (row for row in rows if members and float(scores[row][members].sum()) >= _READS_CLEARLY)
    return not any(is_familiar(features.texts[row], model.words) for row in clear)


def _shown(support: float, reading: float, least: float, manifest: Manifest) -> float:
    """How far the log shows the label: nothing where no line reads like it, enough where one does so clearly."""
    if reading < manifest.out_of_scope.get("minimum_reading", 0.0):
        return 0.0
    return max(support, least) if _READS_CLEARLY <= reading < 1.0 else support


def _speaking_rows(
    label: str, weighed: Sequence[Weighed], features: Features, incident: Incident
) -> list[tuple[int, float]]:
    """Window rows that speak for the label, with their weights. Of a rank that died, those that wait say nothing:
    their tracebacks are those of the wait.
    """
    rows = [(w.row, max(w.weight, _TIED)) for w in weighed if w.row is not None and w.supports == label]
    if label == "rank_failure":
        rows = [(row, weight) for row, weight in rows if features.window[row].rank not in incident.waiting]
    return rows


def _reason(weighed: Weighed, scores: NDArray[np.float32], catalogue: Catalogue) -> str:
    """Why a line counts: the structural fact it shows, or the cause its text reads like."""
    if weighed.why is not None:
        return weighed.why
    if weighed.row is not None:
        members = catalogue.of_label(weighed.supports)
        best = max(members, key=lambda i: float(scores[weighed.row][i]), default=None)
        if best is not None and float(scores[weighed.row][best]) >= _READS_LIKE:
            return f"reads like: {catalogue.causes[best].title[0].lower()}{catalogue.causes[best].title[1:]}"
    return "speaks against it" if weighed.weight < 0 else "the model's reading: its words, when and by whom printed"
