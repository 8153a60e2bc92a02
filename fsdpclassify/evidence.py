"""Which lines a verdict rests on: the label's probability with and without each of them.

A line is taken away whole: its text leaves the window, and the structural facts that rest on it alone
fall to zero. What is left of the probability is what the other lines carry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fsdpclassify.features import Features
from fsdpclassify.records import Evidence, Incident, Line
from fsdpclassify.structure import grounds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CANDIDATES = 24
_SHOWN = 8
_LEAST = 0.005
_TEXT_LIMIT = 500


@dataclass(slots=True)
class _Candidate:
    line: Line
    row: int | None = None
    columns: set[int] = field(default_factory=set)
    why: str | None = None
    weight: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A line of evidence before rendering: `row` indexes the window, None for lines outside it."""

    line: Line
    row: int | None
    supports: str
    weight: float
    why: str | None


Run = Callable[["NDArray[np.float32]", "NDArray[np.float32]", "NDArray[np.float32]"], "NDArray[np.float32]"]


def weigh(
    incident: Incident,
    features: Features,
    vectors: NDArray[np.float32],
    facts: NDArray[np.float32],
    ledger: NDArray[np.float32],
    line_evidence: NDArray[np.float32],
    run: Run,
    labels: Sequence[str],
    label: str,
) -> list[Weighed]:
    """The lines that change p(`label`) when they are taken away, strongest first; at most eight."""
    import numpy as np

    index = labels.index(label)
    base = float(run(vectors, facts, ledger)[index])
    found = _candidates(incident, features, line_evidence)
    for item in found:
        keep = np.arange(len(vectors)) != (-1 if item.row is None else item.row)
        without = ledger.copy()
        without[list(item.columns)] = 0.0
        item.weight = base - float(run(vectors[keep], facts[keep], without)[index])
    shown = sorted((c for c in found if abs(c.weight) >= _LEAST), key=lambda c: -c.weight)
    return [_weighed(c, line_evidence, labels, label) for c in _strongest(shown)]


def _strongest(ordered: list[_Candidate]) -> list[_Candidate]:
    """The strongest for, and at most two against."""
    against = [c for c in ordered if c.weight < 0][-2:]
    return [c for c in ordered if c.weight > 0][: _SHOWN - len(against)] + against


def _candidates(incident: Incident, features: Features, line_evidence: NDArray[np.float32]) -> list[_Candidate]:
    found: dict[int, _Candidate] = {}
    rows = {id(row.line): i for i, row in enumerate(features.window)}
    for ground in grounds(incident):
        for e in ground.events:
            item = found.setdefault(id(e.line), _Candidate(line=e.line, row=rows.get(id(e.line))))
            item.columns.update(ground.columns)
            item.why = item.why or ground.why
    strength = line_evidence.max(axis=1) if len(line_evidence) else []
    for i in sorted(range(len(features.window)), key=lambda i: -float(strength[i]))[:_CANDIDATES]:
        line = features.window[i].line
        found.setdefault(id(line), _Candidate(line=line, row=i))
    return list(found.values())[: 2 * _CANDIDATES]


def _weighed(item: _Candidate, line_evidence: NDArray[np.float32], labels: Sequence[str], label: str) -> Weighed:
    own = labels[int(line_evidence[item.row].argmax())] if item.row is not None else label
    structural = item.why is not None
    supports = label if item.weight > 0 and (structural or own == "other") else own
    if item.weight > 0 and supports != label:
        supports = label
    return Weighed(line=item.line, row=item.row, supports=supports, weight=item.weight, why=item.why)


def render(
    weighed: Sequence[Weighed], paths: Sequence[str], reasons: Sequence[str], mask: Callable[[str], str]
) -> tuple[Evidence, ...]:
    """Evidence as reported; `reasons` gives the words for each line, `mask` hides secrets."""
    return tuple(
        Evidence(
            path=paths[w.line.source],
            line=w.line.number,
            rank=w.line.rank,
            text=mask(w.line.text.strip())[:_TEXT_LIMIT],
            supports=w.supports,
            weight=round(w.weight, 4),
            why=reason,
        )
        for w, reason in zip(weighed, reasons, strict=True)
    )
