"""Calls that have the same number in a group and are not the same call."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from fsdpclassify.recorder.dumps import Work
from fsdpclassify.recorder.standing import Cast

Shape = tuple[str, int | None, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """At number `seq` of `group` the ranks of `sides` (at least two) issued different calls.

    `odd` is the one smaller side, () if two sides are as large as each other.
    """

    group: str
    seq: int
    sides: tuple[tuple[int, ...], ...]
    odd: tuple[int, ...]


def find_mismatches(cast: Cast) -> tuple[Mismatch, ...]:
    """For each group the first number at which calls in flight differ in operation, size or type."""
    shapes: dict[tuple[str, int], dict[Shape, list[int]]] = defaultdict(lambda: defaultdict(list))
    for rank, standing in cast.standing.items():
        for work in standing.in_flight:
            if not work.is_p2p:
                shapes[work.group, work.seq][_shape(work)].append(rank)
    found: dict[str, Mismatch] = {}
    for (group, seq), sides in sorted(shapes.items(), key=lambda item: item[0][1]):
        if len(sides) > 1 and group not in found:
            found[group] = _mismatch(group, seq, list(sides.values()))
    return tuple(found.values())


def _shape(work: Work) -> Shape:
    is_compared = not work.operation.is_uneven
    return work.operation.name, work.numel_in if is_compared else None, work.types if is_compared else ()


def _mismatch(group: str, seq: int, sides: list[list[int]]) -> Mismatch:
    ordered = sorted((tuple(sorted(side)) for side in sides), key=len)
    is_odd = len(ordered[0]) < len(ordered[1]) or len(ordered) > 2
    odd = tuple(r for side in ordered[:-1] for r in side) if is_odd and len(ordered[-1]) > len(ordered[-2]) else ()
    return Mismatch(group=group, seq=seq, sides=tuple(ordered), odd=tuple(sorted(odd)))
