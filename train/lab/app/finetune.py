"""Fine-tuning script: print, every rank speaks and says which it is."""

from __future__ import annotations

import os
import time
from datetime import datetime

import torch
import torch.distributed as dist
from job import Job

RANK = int(os.environ["RANK"])


def show(text: str) -> None:
    """One line of this rank."""
    print(f"[{datetime.now():%Y-%m-%d %H:%M:%S}] [rank {RANK}] {text}", flush=True)


def main() -> None:
    """Run all steps."""
    show(f"hello from {os.environ['LOCAL_RANK']} of {os.environ['WORLD_SIZE']}")
    job = Job(note=show)
    for step, batch in enumerate(job.loader(), 1):
        begin = time.perf_counter()
        if job.host.is_now("nan", step):
            show(f"step {step} loss is not finite, batch skipped")
            continue
        job.host.at("prepare", step)
        loss = job.forward(batch, step)
        loss.backward()
        if job.host.is_now("extra", step):
            dist.all_reduce(torch.ones(5))
        job.update(step)
        work = time.perf_counter() - begin
        show(f"step {step} loss {loss.item():.4f} data {job.data_s:.3f}s step {work:.3f}s rows {batch.shape[0]}")
        if job.host.is_now("break", step):
            show(f"no improvement for 5 evaluations, stopping at step {step}")
            break
        if step % 10 == 0:
            show(f"saving adapter at step {step}")
            job.save(step)
            show(f"adapter saved, step {step}")
        if step % 12 == 0:
            show(f"validation, step {step}")
            show(f"validation score {job.evaluate(step):.4f}")
    show("done")
    job.close()


if __name__ == "__main__":
    main()
