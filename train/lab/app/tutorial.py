"""A script that starts its own processes and trains in epochs: gradients meet once an epoch, in its last batch."""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from hostio import Host
from network import FEATURES, Tower
from outset import conditions, join, limit, share, steps, toil
from torch import nn

Model = nn.parallel.DistributedDataParallel


def shards(host: Host, epoch: int) -> int:
    """How many batches this rank has in an epoch."""
    return int(10 * share(host, epoch))


def batch(model: Model, host: Host, epoch: int) -> torch.Tensor:
    """Forward and backward of one batch."""
    toil(6)
    loss: torch.Tensor = model(torch.randn(16, FEATURES), not host.is_now("skip", epoch)).square().mean()
    loss.backward()
    return loss.detach()


def run_epoch(model: Model, host: Host, epoch: int, rank: int) -> float:
    """All batches of an epoch; only the last one exchanges gradients."""
    count = shards(host, epoch)
    print(f"rank {rank} | epoch {epoch} | {count} batches", flush=True)
    host.at("read", epoch)
    with model.no_sync():
        for _ in range(count - 1):
            batch(model, host, epoch)
    return float(batch(model, host, epoch))


def report(epoch: int, loss: float, rank: int, world: int) -> None:
    """The mean loss, on rank 0."""
    total = torch.tensor([loss])
    dist.reduce(total, dst=0)
    if rank == 0:
        print(f"epoch {epoch} done, mean loss {float(total) / world:.4f}", flush=True)


def worker(rank: int, world: int) -> None:
    """One process of the run."""
    os.environ["RANK"] = str(rank)
    host = conditions(rank, lambda text: print(f"rank {rank} | {text}", flush=True))
    join(host)
    eager = host.mine and host.profile.get("do") == "finder"
    model = Model(Tower(depth=3), find_unused_parameters=eager)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, steps(14) + 1):
        loss = run_epoch(model, host, epoch, rank)
        host.at("optim", epoch)
        optimizer.step()
        optimizer.zero_grad()
        report(epoch, loss, rank, world)
        if rank == 0 and epoch % 5 == 0:
            print(f"epoch {epoch}: snapshot written to snapshot.pt", flush=True)
        host.at("save", epoch)
    dist.barrier()
    host.at("close", host.first)
    dist.destroy_process_group()


def main() -> None:
    """Start all processes; one fewer than the group expects where the run is told so."""
    world = int(os.environ["WORLD_SIZE"])
    absent = int(os.environ.get("RUN_ABSENT", "0"))
    print(f"spawning {world - absent} processes, timeout {limit().seconds} s", flush=True)
    mp.spawn(worker, args=(world,), nprocs=world - absent)
    print("all processes ended", flush=True)


if __name__ == "__main__":
    sys.exit(main())
