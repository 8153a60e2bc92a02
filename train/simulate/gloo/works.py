"""The collectives of a run as counters and dumps see them: operation, sizes, and their order within a step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

from train.simulate.world import World

Sizes = tuple[tuple[int, ...], ...]

_SHARDED = ("forward", "forward", "forward", "forward", "prefetch", "backward", "prefetch", "backward", "backward")
_REPLICATED = ("backward", "backward")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One collective: the operation as NCCL's lines print it, its name in torch's recorder on gloo, tensor sizes."""

    op: str
    name: str
    sizes_in: Sizes
    sizes_out: Sizes

    @property
    def numel_in(self) -> int:
        """Elements that go in, as the watchdog counts them: a scalar is one."""
        return _numel(self.sizes_in)

    @property
    def numel_out(self) -> int:
        """Elements that come out."""
        return _numel(self.sizes_out)


def _numel(sizes: Sizes) -> int:
    return sum(math.prod(size) for size in sizes) or 1


def work(world: World, call: str, block: int = 0) -> Work:
    """The collective behind a call in block `block` of the model; the same for all ranks of a run."""
    size = world.size
    shard = 64 * Random(f"{world.start}/block{block % 3}").randrange(2, 900) + size
    whole = ((shard * size,),)
    if call in {"forward", "prefetch"} and world.framework != "DDP":
        return Work(op="_ALLGATHER_BASE", name="all_gather", sizes_in=((shard,),), sizes_out=whole)
    if call == "backward" and world.framework != "DDP":
        return Work(op="_REDUCE_SCATTER_BASE", name="all_reduce", sizes_in=whole, sizes_out=whole)
    if call in {"forward", "prefetch", "backward"}:
        return Work(op="ALLREDUCE", name="all_reduce", sizes_in=whole, sizes_out=whole)
    if call == "gather":
        return Work(op="ALLGATHER", name="all_gather", sizes_in=((4,),), sizes_out=((size, 4),))
    if call in {"barrier", "final", "save", "init"}:
        return Work(op="ALLREDUCE", name="barrier", sizes_in=(), sizes_out=())
    scalar: Sizes = ((),) if call != "evaluate" else ((2,),)
    return Work(op="ALLREDUCE", name="all_reduce", sizes_in=scalar, sizes_out=scalar)


def order(world: World) -> tuple[str, ...]:
    """The calls of one step."""
    return (*(_REPLICATED if world.framework == "DDP" else _SHARDED), "metrics")
