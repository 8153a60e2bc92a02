"""Blind line evidence, computed once for each incident: every fold of incidents asks for the same."""

from __future__ import annotations

from dataclasses import dataclass, field

from fsdpclassify.training.fit import Encoded, FittedLines
from fsdpclassify.training.pooling import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedLines(FittedLines):
    """A fitted line level that keeps what it said about each item; it holds the items, so that no id is used twice."""

    known: dict[int, tuple[Encoded, Array]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, lines: FittedLines) -> RememberedLines:
        """The same line level with a memory of its own."""
        return cls(full=lines.full, folds=lines.folds, labels=lines.labels)

    def unseen(self, item: Encoded) -> Array:
        """As `FittedLines.unseen`; the array may not be changed."""
        if id(item) not in self.known:
            # By name: a slotted dataclass is made anew, and a bare `super()` would not find it.
            self.known[id(item)] = (item, FittedLines.unseen(self, item))
        return self.known[id(item)][1]
