"""How much each example counts: real incidents are few and carry a fixed share of the loss."""

from __future__ import annotations

from collections.abc import Sequence

from fsdpclassify.training.examples import Example

REAL_SHARE = 0.4


def balanced(simulated: Sequence[Example], real: Sequence[Example], share: float = REAL_SHARE) -> list[float]:
    """Weights for `[*simulated, *real]` that give the real ones `share` of the total; simulated ones weigh 1."""
    if not real:
        return [1.0] * len(simulated)
    if not simulated:
        return [1.0] * len(real)
    each = share / (1.0 - share) * len(simulated) / len(real)
    return [1.0] * len(simulated) + [each] * len(real)
