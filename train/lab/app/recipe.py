"""Script in the manner of a recipe library: `level:logger:text` lines, and a bar with the loss on rank 0."""

from __future__ import annotations

import logging
import os
import sys

from job import Job

RANK = int(os.environ["RANK"])
log = logging.getLogger("recipes.full_distributed")


def bar(step: int, total: int, loss: float) -> None:
    """Redraw the bar: no newline."""
    if RANK == 0:
        sys.stderr.write(f"\r1|{step}|Loss: {loss:.12f}: {100 * step // total:3d}%|{step}/{total}")
        sys.stderr.flush()


def main() -> None:
    """Run all steps."""
    logging.basicConfig(level=logging.INFO if RANK == 0 else logging.WARNING)
    log.info("Running FullFinetune with resolved config: world_size %s", os.environ["WORLD_SIZE"])
    job = Job(note=log.warning)
    log.info("Instantiating model and sharding it (%s) complete.", job.how)
    for step, batch in enumerate(job.loader(), 1):
        if job.host.is_now("nan", step):
            continue
        loss = job.train_step(step, batch)
        bar(step, job.steps, float(loss))
        if step % 4 == 0:
            log.info("Step %d | loss:%.6f lr:2e-05 tokens_per_second:%d", step, job.mean(loss, step), 1536 + step)
        if job.host.is_now("break", step):
            break
        if step % 10 == 0:
            log.info("Saving checkpoint. This may take some time. Retrieving full model state dict...")
            job.save(step)
            log.info("Model checkpoint saved to /opt/app/output/epoch_0/step_%d", step)
        if step % 12 == 0:
            log.info("Running validation...")
            log.info("Validation loss: %.6f", job.evaluate(step))
    log.info("Training complete.")
    job.close()


if __name__ == "__main__":
    main()
