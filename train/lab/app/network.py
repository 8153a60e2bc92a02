"""A small model and the three ways to spread it over ranks."""

from __future__ import annotations

import os

import torch
from torch import Tensor, nn

WIDTH = 64
FEATURES = 16


class Block(nn.Module):
    """One residual layer of the tower: [rows, WIDTH] -> [rows, WIDTH]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return `x` plus what the layer adds."""
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


class Tower(nn.Module):
    """`depth` blocks and one for pictures, which a batch without pictures does not need."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.enter = nn.Linear(FEATURES, WIDTH)
        self.blocks = nn.ModuleList(Block(WIDTH) for _ in range(depth))
        self.pictures = Block(WIDTH)
        self.leave = nn.Linear(WIDTH, 1)

    def forward(self, x: Tensor, with_pictures: bool = True) -> Tensor:
        """[rows, FEATURES] -> [rows, 1]."""
        x = self.enter(x)
        for block in self.blocks:
            x = block(x)
        if with_pictures:
            x = self.pictures(x)
        result: Tensor = self.leave(x)
        return result


def spread(model: Tower, how: str) -> nn.Module:
    """Wrap `model` as FSDP2, FSDP1 or DDP; the default process group must exist."""
    if how == "fsdp2":
        return _shard(model)
    if how == "fsdp1":
        from torch.distributed.fsdp import FullyShardedDataParallel
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy

        return FullyShardedDataParallel(
            model, auto_wrap_policy=ModuleWrapPolicy({Block}), device_id=torch.device("cpu")
        )
    return nn.parallel.DistributedDataParallel(model)


def _shard(model: Tower) -> nn.Module:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (int(os.environ["WORLD_SIZE"]),))
    for block in [*model.blocks, model.pictures]:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def synchronise(model: nn.Module, wanted: bool) -> None:
    """Let the next backward pass of this rank exchange gradients, or only add them up (FSDP2 and DDP)."""
    if isinstance(model, nn.parallel.DistributedDataParallel):
        model.require_backward_grad_sync = wanted
    else:
        model.set_requires_gradient_sync(wanted)  # type: ignore[operator]
