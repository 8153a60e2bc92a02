"""Users label incidents, not lines: which lines of their incidents are presumed to carry the label."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence, Set
from dataclasses import replace

from fsdpclassify.facts import LINE_FACTS
from fsdpclassify.training.examples import Example

#: A wording that this share of its incidents give one label speaks for it; a mislabelled one does not silence it.
CLEAR = 0.75
_MOST = 6
#: What more ranks than this share of them print is no sign of the one that did not come.
_MANY = 0.5
_AFTER = LINE_FACTS.index("after")
_WAITING = LINE_FACTS.index("rank_waiting")
_DETECTION = LINE_FACTS.index("is_detection")
_NEARNESS = LINE_FACTS.index("nearness")
_SHARE = LINE_FACTS.index("printed_by_share")


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


def daily(own: Sequence[Example]) -> set[str]:
    """A house's noise: wordings that incidents of several labels hold alike, that most ranks of one print, or a rank
    that waits. One incident that shows it is enough: the others may not show who printed what.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    common: set[str] = set()
    for example in own:
        for text in set(example.texts):
            counts[text][example.label] += 1
        common |= {t for t, f in zip(example.texts, example.facts, strict=True) if f[_WAITING] or f[_SHARE] > _MANY}
    unclear = {text for text, labels in counts.items() if max(labels.values()) < CLEAR * labels.total()}
    return unclear | common
