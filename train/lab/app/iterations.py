"""A script with timers: one long line an iteration from the last rank; pairs of ranks share a second group."""

from __future__ import annotations

import os
import time
from datetime import datetime

import torch
import torch.distributed as dist
from hostio import Host
from network import FEATURES, Tower, spread
from outset import conditions, join, limit, share, steps, toil

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
TOTAL = steps(50)


def main_print(text: str) -> None:
    """A line of rank 0."""
    if RANK == 0:
        print(f"> {text}", flush=True)


def last_print(iteration: int, seconds: float, loss: float) -> None:
    """The line of an iteration."""
    if RANK == WORLD - 1:
        print(
            f" [{datetime.now():%Y-%m-%d %H:%M:%S}] iteration {iteration:8d}/{TOTAL:8d} | consumed samples: "
            f"{24 * WORLD * iteration:12d} | elapsed time per iteration (ms): {1000 * seconds:.1f} | "
            f"learning rate: 1.500000E-04 | global batch size: {24 * WORLD:5d} | lm loss: {loss:.6E} | "
            f"number of skipped iterations:   0 | number of nan iterations:   0 |",
            flush=True,
        )


def pair_group() -> dist.ProcessGroup:
    """The group of this rank and its neighbour; an odd last rank is alone in its own."""
    made = [dist.new_group(list(range(i, min(i + 2, WORLD))), timeout=limit()) for i in range(0, WORLD, 2)]
    found: dist.ProcessGroup = made[RANK // 2]
    return found


class Loop:
    """The state of the run."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.pair = pair_group()
        main_print(f"initialized data parallel group of {WORLD} and tensor parallel groups of 2")
        self.model = spread(Tower(depth=3), os.environ["RUN_WRAPPER"])
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1.5e-4)

    def iterate(self, step: int) -> float:
        """One iteration: an exchange in the pair, forward, backward, update."""
        self.host.at("read", step)
        toil(int(10 * share(self.host, step)))
        turned = self.host.is_now("turn_groups", step)
        if not turned:
            dist.all_reduce(torch.ones(24, 4), group=self.pair)
        self.host.at("compute", step)
        loss = self.model(torch.randn(24, FEATURES)).square().mean()
        loss.backward()
        if turned:
            dist.all_reduce(torch.ones(24, 4), group=self.pair)
        self.host.at("optim", step)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return float(loss)

    def run(self) -> None:
        """All iterations, with a validation and a checkpoint now and then."""
        for step in range(1, TOTAL + 1):
            begin = time.perf_counter()
            loss = self.iterate(step)
            last_print(step, time.perf_counter() - begin, loss)
            if step % 20 == 0:
                self.save(step)

    def save(self, step: int) -> None:
        """Everybody gathers, rank 0 writes."""
        main_print(f"saving checkpoint at iteration {step:7d} to /opt/app/output")
        self.host.at("gather", step)
        dist.barrier()
        self.host.at("save", step)
        dist.barrier()
        main_print(f"successfully saved checkpoint at iteration {step:7d}")


def main() -> None:
    """Run all iterations."""
    host = conditions(RANK, lambda text: print(f"> {text}", flush=True))
    join(host)
    Loop(host).run()
    main_print("training ended")
    dist.barrier()
    host.at("close", host.first)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
