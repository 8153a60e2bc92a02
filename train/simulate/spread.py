"""A family that several ranks print with numbers of their own: the ranks that hold more print more."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from train.simulate.lines import Family
from train.simulate.record import Record

if TYPE_CHECKING:
    from train.simulate.scene import Scene

#: Causes in which the guilty ranks hold less than the others.
_LESS = frozenset({"fewer_batches_on_one_rank", "uneven_inputs", "data_shards"})


def spreads(family: Family) -> bool:
    """Whether the family makes sense only as one line a rank."""
    return family.who == "group" and family.channel in {"rank", "tool"} and "{more}" in family.template


def print_spread(scene: Scene, family: Family, heavy: tuple[int, ...], at: float) -> None:
    """One line a rank at about one time; from a tool one table, in the order of the cards."""
    rng, world = scene.rng, scene.world
    ranks = _shown(rng, world.size, heavy)
    base, factor = rng.randrange(300, 60000), rng.uniform(2.0, 4.0)
    if family.cause in _LESS:
        factor = rng.uniform(0.3, 0.85)
    tie = f"{family.id}@{at:.3f}"
    rows: list[Record] = []
    for i, rank in enumerate(ranks):
        more = int(base * (factor if rank in heavy else rng.uniform(0.97, 1.03)))
        given = {"more": more, "fewer": int(base * rng.uniform(0.9, 1.0))}
        rows.append(
            scene.lines.record(
                family, rng, world, rank, at + 0.004 * i, "evidence", family.strength, given=given, form=0
            )
        )
    for record in [_table(rows)] if family.channel == "tool" else rows:
        scene.story.add(replace(record, tie=tie))


def _shown(rng: Random, size: int, heavy: tuple[int, ...]) -> list[int]:
    most = rng.choice((2, 4, 8, 8, 16))
    light = [rank for rank in range(size) if rank not in heavy][:most]
    return sorted({*heavy[:4], *light})


def _table(rows: list[Record]) -> Record:
    return replace(rows[0], lines=tuple(line for row in rows for line in row.lines))
