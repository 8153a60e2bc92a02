"""Incident -> what the model takes: line texts, line facts and the ledger vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fsdpclassify.facts import LINE_FACTS, line_facts
from fsdpclassify.records import Incident, InputKind
from fsdpclassify.vector import LEDGER_FACTS, ledger_vector
from fsdpclassify.window import WindowLine, cut_window

#: Raised whenever a feature is added, dropped, reordered or computed differently.
FEATURE_VERSION = 3
__all__ = ["FEATURE_VERSION", "LEDGER_FACTS", "LINE_FACTS", "Features", "extract"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """`texts` (n), `facts` n x len(LINE_FACTS), `ledger` len(LEDGER_FACTS), in the order of `window`."""

    window: tuple[WindowLine, ...]
    texts: tuple[str, ...]
    facts: tuple[tuple[float, ...], ...]
    ledger: tuple[float, ...]


def extract(incident: Incident, kinds: Sequence[InputKind | None]) -> Features:
    """The features of one incident; `kinds` tells for each source what it is."""
    window = tuple(cut_window(incident, kinds))
    ranks = len({line.rank for line in incident.lines if line.rank is not None})
    return Features(
        window=window,
        texts=tuple(row.text for row in window),
        facts=tuple(tuple(line_facts(row, incident, ranks)) for row in window),
        ledger=tuple(ledger_vector(incident)),
    )
