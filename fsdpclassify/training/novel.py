"""Users label incidents, not lines: which lines of their incidents are presumed to carry the label."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from fsdpclassify.facts import LINE_FACTS
from fsdpclassify.training.examples import Example

_MOST = 6
_AFTER = LINE_FACTS.index("after")
_WAITING = LINE_FACTS.index("rank_waiting")
_DETECTION = LINE_FACTS.index("is_detection")
_NEARNESS = LINE_FACTS.index("nearness")


def with_presumed_evidence(example: Example, known: Set[str]) -> Example:
    """`example` with decisive lines: those given, else the wordings nearest before the detection that no earlier
    incident holds and that no waiting rank printed. An incident without such lines is left as it is.
    """
    if any(example.decisive):
        return example
    rows = [i for i in range(len(example.texts)) if _eligible(example, i, known)]
    chosen = set(sorted(rows, key=lambda i: -example.facts[i][_NEARNESS])[:_MOST])
    return replace(example, decisive=tuple(i in chosen for i in range(len(example.texts))))


def _eligible(example: Example, row: int, known: Set[str]) -> bool:
    facts = example.facts[row]
    return not (facts[_AFTER] or facts[_WAITING] or facts[_DETECTION]) and example.texts[row] not in known
