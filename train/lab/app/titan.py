"""Script in the manner of a torch-native platform: `[titan]` lines with time, from every rank's root logger."""

from __future__ import annotations

import logging
import os
import time

import torch
import torch.distributed as dist
from job import Job

logger = logging.getLogger()


def init_logger() -> None:
    """Every rank logs; the launcher's filter or prefix tells them apart."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("[titan] %(asctime)s - root - %(levelname)s - %(message)s"))
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)


class Trainer:
    """The loop and its state."""

    def __init__(self) -> None:
        logger.info(f"Building 1-D device mesh with ['dp_shard'], [{os.environ['WORLD_SIZE']}]")
        self.job = Job(note=logger.info)
        logger.info(f"Applied {self.job.how.upper()} to the model")
        rows = 24 * self.job.world
        logger.info(f"Trainer is initialized with local batch size 24, global batch size {rows}")
        self.begin = time.perf_counter()

    def train_step(self, step: int, batch: torch.Tensor) -> torch.Tensor:
        """Forward, backward, update."""
        self.job.host.at("prepare", step)
        loss = self.job.forward(batch, step)
        loss.backward()
        if self.job.host.is_now("extra", step):
            dist.all_reduce(torch.ones(5))
        self.job.update(step)
        return loss.detach()

    def metrics(self, step: int, loss: torch.Tensor) -> None:
        """The line of a step."""
        now = time.perf_counter()
        spent, self.begin = now - self.begin, now
        tps = 24 * 64 / spent
        logger.info(
            f"step: {step:2d}  loss: {loss.item():7.5f}  memory:  0.41GiB(2.11%)  tps: {tps:,.0f}  "
            f"tflops: 0.02  time_metrics/data_loading(s): {self.job.data_s:.4f}"
        )

    def train(self) -> None:
        """Run all steps."""
        logger.info("Training starts at step 1.")
        for step, batch in enumerate(self.job.loader(), 1):
            if self.job.host.is_now("nan", step):
                continue
            loss = self.train_step(step, batch)
            self.metrics(step, loss)
            if self.job.host.is_now("break", step):
                break
            if step % 10 == 0:
                logger.info(f"Saving a checkpoint (or staging if async is enabled) at step {step}.")
                self.job.save(step)
                logger.info("Finished saving the checkpoint (or staging if async is enabled).")
            if step % 12 == 0:
                logger.info(f"validate step: {step:2d}  loss: {self.job.evaluate(step):7.4f}")
        logger.info("Training completed")
        self.job.close()


if __name__ == "__main__":
    init_logger()
    Trainer().train()
