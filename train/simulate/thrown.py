"""A check that speaks for a mismatch throws one rank out: what kills it is the desync, not the death itself."""

from __future__ import annotations

from train.simulate import failed, tracebacks
from train.simulate.record import Record
from train.simulate.scene import Scene

#: How often a cause that has such an exception shows it.
_SHARE = 0.4


def thrown_out(scene: Scene, cause: str, odd: tuple[int, ...], onset: float, *, early: bool) -> bool:
    """The odd rank raises and exits with 1; its peers lose it or wait for it. False if the cause has no exception."""
    rng, world, story = scene.rng, scene.world, scene.story
    found = scene.lines.raised(story.label, cause, world)
    if scene.blind or not found or rng.random() > _SHARE:
        return False
    family, rank = rng.choice(found), odd[0]
    at = onset - rng.uniform(0.1, min(30.0, world.step_s + 2))
    record = scene.lines.record(family, rng, world, rank, at, "evidence")
    story.initiating = (rank,)
    story.add(
        Record(
            time=at,
            lines=tracebacks.crash(world, rng, "\n".join(record.lines)),
            role="evidence",
            rank=rank,
            node=world.node_of(rank),
            prefix="exc",
            strength=3,
            origin=family.id,
            said=record.said,
        )
    )
    survivors = failed.survivors(scene, (rank,), at, 1)
    failed.peers(scene, survivors, (rank,), onset, early, timed=False)
    return True
