"""The lines that teach an encoder, and those that no candidate may have seen."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from fsdpclassify.templating import template
from fsdpclassify.training.fit import NOTHING
from train.inventory import Family, Inventory
from train.simulate.plan import split_lines
from train.slots import render
from train.zeroed import zeroed


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Templates with the label each speaks for (or `nothing`) and a finer group: its cause, else its role."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    groups: tuple[str, ...]

    def by_group(self) -> dict[str, list[str]]:
        """The distinct texts of each group, in order of first appearance."""
        found: dict[str, dict[str, None]] = defaultdict(dict)
        for text, group in zip(self.texts, self.groups, strict=True):
            found[group][text] = None
        return {group: list(texts) for group, texts in found.items()}


def teaching(inventory: Inventory) -> Lines:
    """Wordings of the families that the training split prints; a candidate may learn from no others."""
    return _lines(split_lines(inventory, "train").families())


def unseen(inventory: Inventory) -> Lines:
    """Wordings of the families that only validation prints."""
    known = {family.id for family in split_lines(inventory, "train").families()}
    return _lines(f for f in split_lines(inventory, "val").families() if f.id not in known)


def _lines(families: Iterable[Family]) -> Lines:
    texts, labels, groups = [], [], []
    for family in families:
        rng = random.Random(f"0:{family.id}")
        speaks = family.role == "evidence" and family.label is not None
        for text in family.texts:
            line = render(text, rng, {})
            texts.append(template(line))
            labels.append(family.label if speaks and family.label else NOTHING)
            groups.append(family.cause if speaks and family.cause else family.role)
            if speaks and (nothing := zeroed(line)):
                texts.append(template(nothing))
                labels.append(NOTHING)
                groups.append("decoy")
    return Lines(texts=tuple(texts), labels=tuple(labels), groups=tuple(groups))
