"""The parts that all scripts share: process group, model, loader, a step, saving and evaluation."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import torch
import torch.distributed as dist
from hostio import Host
from network import FEATURES, Tower, spread, synchronise
from torch import Tensor
from traces import keep_facts, watch

ROWS = 24


class Job:
    """One rank of the run. `note` prints as the script prints; `say` prints from every rank."""

    def __init__(self, note: Callable[[str], None]) -> None:
        limit = float(os.environ["RUN_TIMEOUT"])
        self.rank = int(os.environ["RANK"])
        self.world = int(os.environ["WORLD_SIZE"])
        self.how = os.environ["RUN_WRAPPER"]
        self.steps = int(os.environ.get("RUN_STEPS", "40"))
        self.note = note
        self.host = Host(self.rank, note)
        torch.manual_seed(int(os.environ.get("RUN_SEED", "0")))
        dist.init_process_group("gloo", timeout=timedelta(seconds=limit))
        keep_facts(self.rank)
        watch(self.rank, limit)
        self.host.at("start", self.host.first)
        self.model = spread(Tower(depth=int(os.environ.get("RUN_DEPTH", "3"))), self.how)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.data_s = 0.0
        self.side = dist.new_group() if self.host.profile.get("do") == "swap" else None

    def loader(self) -> Iterator[Tensor]:
        """Batches [rows, FEATURES] of this rank; `data_s` holds how long the last one took."""
        for step in range(1, self.host.batches(self.steps) + 1):
            begin = time.perf_counter()
            batch = self.fetch(step)
            self.data_s = time.perf_counter() - begin
            yield batch

    def fetch(self, step: int) -> Tensor:
        """The batch of `step`."""
        self.host.at("read", step)
        return torch.randn(self.host.rows(step, ROWS), FEATURES)

    def forward(self, batch: Tensor, step: int) -> Tensor:
        """The loss of a batch; batches without pictures do not need that block."""
        self.host.at("compute", step)
        self._dense(batch)
        pictures = not self.host.is_now("skip", step)
        if self.host.is_now("accumulate", step):
            synchronise(self.model, step % 2 == 0)
        out: Tensor = self.model(batch, pictures)
        return out.square().mean()

    def _dense(self, batch: Tensor) -> None:
        """The host part of a batch costs as its rows do."""
        time.sleep(0.04 * batch.shape[0] / ROWS)

    def update(self, step: int) -> None:
        """One optimizer step."""
        self.host.at("optim", step)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def train_step(self, step: int, batch: Tensor) -> Tensor:
        """Forward, backward, update; the loss. One rank may have a collective of its own in between."""
        self.host.at("prepare", step)
        loss = self.forward(batch, step)
        loss.backward()
        if self.host.is_now("extra", step):
            dist.all_reduce(torch.ones(5))
        self.update(step)
        return loss.detach()

    def mean(self, value: Tensor, step: int) -> float:
        """The mean of a number over all ranks."""
        total = value.detach().clone()
        if self.side is not None and self.host.is_now("swap", step):
            dist.all_reduce(torch.ones(3), group=self.side)
        dist.all_reduce(total)
        if self.side is not None and not self.host.is_now("swap", step):
            dist.all_reduce(torch.ones(3), group=self.side)
        return float(total) / self.world

    def save(self, step: int) -> None:
        """Rank 0 writes its part; everybody goes on afterwards."""
        self.host.at("gather", step)
        if self.host.is_now("meet", step):
            dist.barrier()
        if self.rank == 0 or self.host.mine:
            self.host.at("save", step)
            torch.save({"step": step}, os.path.join(os.environ["RUN_SCRATCH"], f"step_{step}_{self.rank}.pt"))

    def evaluate(self, step: int) -> float:
        """The mean loss of held-out batches over all ranks."""
        self.host.at("eval", step)
        if self.host.profile.get("do") == "solo" and step >= self.host.first:
            return self._evaluate_main()
        scores = torch.rand(4 + (3 if self.host.is_now("ragged", step) else 0))
        gathered = [torch.empty_like(scores) for _ in range(self.world)]
        dist.all_gather(gathered, scores)
        return float(torch.cat(gathered).mean())

    def _evaluate_main(self) -> float:
        if self.rank != 0:
            return 0.0
        with torch.no_grad():
            out: Tensor = self.model(torch.randn(ROWS, FEATURES))
        total = out.mean()
        dist.all_reduce(total)
        return float(total)

    def close(self) -> None:
        """The end of an orderly run."""
        dist.barrier()
        self.host.at("close", self.host.first)
        dist.barrier()
        dist.destroy_process_group()
