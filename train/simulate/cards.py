"""Where the cards of a node sit on its buses: one place for each local rank, the same in all lines of a run."""

from __future__ import annotations

from train.simulate.world import World

#: Bus numbers of eight-card hosts of two generations.
_HOSTS = (
    (0x1B, 0x43, 0x52, 0x61, 0x9D, 0xC3, 0xD1, 0xDF),
    (0x07, 0x0F, 0x47, 0x4E, 0x87, 0x90, 0xB7, 0xBD),
)


def bus_of(world: World, rank: int) -> int:
    """The bus number of the card of a rank."""
    local = world.local(rank)
    table = _HOSTS[world.agents[0] % len(_HOSTS)]
    return table[local % len(table)] + local // len(table)
