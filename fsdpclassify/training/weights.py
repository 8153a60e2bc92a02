"""How much each example counts: real incidents are few and carry a fixed share of the loss."""

from __future__ import annotations

from collections.abc import Sequence

from fsdpclassify.training.examples import Example
from fsdpclassify.vector import LEDGER_FACTS

REAL_SHARE = 0.35
#: Recordings of our own small runs resemble each other, and few of the reports that users bring.
_LAB = 0.5
#: The same holds for simulated runs on gloo, which are a quarter of the corpus.
_GLOO_RUN = 0.5
#: Composed incidents are as varied as reports, though somebody's idea of them; ten times fewer than simulated ones.
_WRITTEN = 4.0
_GLOO = LEDGER_FACTS.index("has_gloo_timeout")


def balanced(made: Sequence[Example], real: Sequence[Example], share: float = REAL_SHARE) -> list[float]:
    """Weights for `[*made, *real]` that give the real ones `share` of the total; `made` are simulated or composed."""
    weights = [_weight(e) for e in made]
    own = [_LAB if e.repository.startswith("lab/") else 1.0 for e in real]
    if not real or not made:
        return weights + own
    scale = share / (1.0 - share) * sum(weights) / sum(own)
    return weights + [scale * w for w in own]


def _weight(example: Example) -> float:
    if example.repository.startswith("written/"):
        return _WRITTEN
    return _GLOO_RUN if example.ledger and example.ledger[_GLOO] > 0 else 1.0
