"""Which lines a verdict rests on: the label's probability with and without each of them.

A line is taken away whole: its text leaves the window, and the structural facts that rest on it alone
fall to zero. What is left of the probability is what the other lines carry.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
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
_ALONE = 0.15
#: A line that takes less than this away from the label is not worth a reader's time.
_AGAINST = 0.02
_FILL = 3
_TEXT_LIMIT = 500


@dataclass(slots=True)
class _Candidate:
    line: Line
    row: int | None = None
    columns: set[int] = field(default_factory=set)
    why: str | None = None
    weight: float = 0.0
    alone: float = 0.0

    @property
    def speaks_for(self) -> bool:
        """Whether the label gains by the line: from the whole, or where others say the same, on its own."""
        return self.weight >= _LEAST or (self.weight > -_LEAST and self.alone > 0)


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
) -> tuple[list[Weighed], float]:
    """The lines that p(`label`) rests on, strongest first, at most eight; and how much it rests on all lines together.

    Where several lines say the same, none of them is missed much: such ties go to the line that says most alone.
    """
    import numpy as np

    index = labels.index(label)

    def p(rows: NDArray[np.bool_], columns: Collection[int]) -> float:
        without = ledger.copy()
        without[list(columns)] = 0.0
        return float(run(vectors[rows], facts[rows], without)[index])

    every, none = np.ones(len(vectors), bool), np.zeros(len(vectors), bool)
    found = _candidates(incident, features, line_evidence)
    grounded = {c for item in found for c in item.columns}
    base, bare = p(every, ()), p(none, grounded)
    for item in found:
        own = none.copy()
        if item.row is not None:
            own[item.row] = True
        item.weight = base - p(every & ~own, item.columns)
        item.alone = p(own, grounded - item.columns) - bare
    whole = run(vectors, facts, ledger)
    rival = max((float(whole[i]), name) for i, name in enumerate(labels) if name != label)[1]
    return [_weighed(c, line_evidence, labels, label, rival) for c in _strongest(found)], base - bare


def _strongest(found: list[_Candidate]) -> list[_Candidate]:
    """The strongest for, and at most two against; lines that say the same as stronger ones fill up to three."""
    ordered = sorted(found, key=lambda c: (-round(c.weight, 2), -c.alone))
    against = [c for c in ordered if c.weight <= -_AGAINST][-2:]
    telling = [c for c in ordered if c.weight >= _LEAST]
    tied = [c for c in ordered if c.speaks_for and c not in telling and c.alone >= _ALONE]
    telling += tied[: max(0, _FILL - len(telling))]
    return telling[: _SHOWN - len(against)] + against


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


def _weighed(
    item: _Candidate, line_evidence: NDArray[np.float32], labels: Sequence[str], label: str, rival: str
) -> Weighed:
    """What the line speaks for: the label if it raises it, else the one its wording is nearest to, else the rival."""
    supports = label if item.speaks_for else rival
    if not item.speaks_for and item.row is not None:
        others = [(float(e), name) for e, name in zip(line_evidence[item.row], labels, strict=True) if name != label]
        supports = max(others)[1]
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
