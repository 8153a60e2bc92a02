"""Exceptions of waiting ranks whose communicator was aborted under them."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from train.simulate import c10d, tracebacks
from train.simulate.collectives import Call
from train.simulate.record import Record, Story
from train.simulate.world import World


def gone(
    story: Story,
    world: World,
    rng: Random,
    ranks: Iterable[int],
    onset: float,
    frames: list[tracebacks.Frame],
) -> float:
    """Ranks raise because their communicator was aborted under them; the watchdog's own line was not kept."""
    at = onset + world.timeout_s
    for rank in ranks:
        name = "torch.distributed.DistBackendError" if world.torch.rank >= 1 else "RuntimeError"
        call = Call(op="ALLREDUCE", numel_in=1, numel_out=1, group=world.groups[0], seq=rng.randrange(3, 9000))
        reason = c10d.caught(world, call, rank, world.timeout_s * 1000 + rng.randrange(1, 900))
        text = f"{name}: NCCL communicator was aborted on rank {rank}.  Original reason for failure was: {reason}"
        story.add(
            Record(
                time=at + rng.random(),
                lines=tracebacks.render(world, rng, frames, text),
                role="wait",
                rank=rank,
                node=world.node_of(rank),
                prefix="exc",
            )
        )
    return at


def after_watchdog(
    story: Story,
    world: World,
    rng: Random,
    rank: int,
    detection: float,
    call: Call,
    frames: list[tracebacks.Frame],
) -> None:
    """The main thread of a waiting rank gets its own exception once the watchdog has given up."""
    name = "torch.distributed.DistBackendError" if world.torch.rank >= 1 else "RuntimeError"
    reason = c10d.caught(world, call, rank, world.timeout_s * 1000 + rng.randrange(1, 90))
    text = rng.choice(
        (
            f"{name}: NCCL communicator was aborted on rank {rank}.  Original reason for failure was: {reason}",
            f"{name}: NCCL communicator was aborted on rank {rank}.",
            f"{name}: Process group has been destroyed",
            "KeyboardInterrupt",
        )
    )
    story.add(
        Record(
            time=detection + rng.uniform(0.3, 2),
            lines=tracebacks.render(world, rng, frames, text),
            role="wait",
            rank=rank,
            node=world.node_of(rank),
            prefix="exc",
        )
    )
