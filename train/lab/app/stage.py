"""A script with the logging module on every rank, each line with its rank in front, and two micro-batches a step."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator

import torch
import torch.distributed as dist
from hostio import Host
from network import FEATURES, Tower, spread
from outset import conditions, join, share, steps, toil
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
log = logging.getLogger("engine.loop")


class Rows(Dataset[Tensor]):
    """The rows of one rank, `count` of them."""

    def __init__(self, host: Host, count: int) -> None:
        self.host, self.count = host, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Tensor:
        if index % 16 == 0:
            self.host.at("augment", 1 + index // 16)
        return torch.randn(FEATURES)


class Engine:
    """Model, optimizer and the loop over accumulated micro-batches."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.model = spread(Tower(depth=2), os.environ["RUN_WRAPPER"])
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4)
        tail = int(host.profile.get("missing", 0)) if host.mine else 0
        self.data = DataLoader(Rows(host, 16 * steps(40) - tail), batch_size=8, drop_last=True)
        log.info("%d rows on this rank, %d batches", len(self.data.dataset), len(self.data))  # type: ignore[arg-type]

    def pairs(self) -> Iterator[tuple[int, Tensor, float]]:
        """(number of the micro-batch from 0, batch, seconds that it took to come)."""
        begin = time.perf_counter()
        for number, batch in enumerate(self.data):
            yield number, batch, time.perf_counter() - begin
            begin = time.perf_counter()

    def micro(self, step: int, batch: Tensor) -> Tensor:
        """Forward and backward of one micro-batch."""
        toil(int(6 * share(self.host, step)))
        self.host.at("compute", step)
        loss: Tensor = self.model(batch).square().mean() / 2
        loss.backward()
        return loss.detach()

    def train(self) -> None:
        """All micro-batches; every second one ends a step."""
        fetch = 0.0
        for number, batch, seconds in self.pairs():
            step = 1 + number // 2
            fetch += seconds
            if step == self.host.first and self.host.is_now("give_up_batch", step):
                log.warning("micro %d: RuntimeError: not enough memory for activations, batch dropped", number)
                continue
            loss = self.micro(step, batch)
            if number % 2:
                self.finish(step, loss, fetch)
                fetch = 0.0

    def finish(self, step: int, loss: Tensor, fetch: float) -> None:
        """The optimizer step, the mean loss, and what belongs to certain steps."""
        self.host.at("optim", step)
        self.optimizer.step()
        self.optimizer.zero_grad()
        log.info("step=%03d loss=%.4f fetch=%.2fs", step, float(loss), fetch)
        if step % 5 == 0:
            dist.all_reduce(loss)
        if step % 14 == 0:
            self.save(step)

    def save(self, step: int) -> None:
        """Rank 0 writes, the others wait for it."""
        if RANK == 0:
            log.info("checkpoint %d: writing", step)
        self.host.at("save", step)
        dist.barrier()


def main() -> None:
    """Run all steps."""
    logging.basicConfig(
        level=logging.INFO,
        format=f"%(asctime)s | r{RANK:02d}/{WORLD:02d} | %(levelname)-7s | %(name)s | %(message)s",
    )
    host = conditions(RANK, log.info)
    join(host)
    Engine(host).train()
    log.info("loop finished")
    dist.barrier()
    host.at("close", host.first)
    dist.barrier()
    dist.destroy_process_group()
    log.info("bye")


if __name__ == "__main__":
    main()
