"""Pretraining script: the logging module, lines from rank 0 only."""

from __future__ import annotations

import logging
import os
import time

from job import Job

RANK = int(os.environ["RANK"])
logging.basicConfig(
    level=logging.INFO if RANK == 0 else logging.WARNING, format="%(asctime)s - %(name)s - %(levelname)s - %(message)s"
)
log = logging.getLogger("pretrain")


def main() -> None:
    """Run all steps."""
    log.info("starting, world size %s, wrapper %s", os.environ["WORLD_SIZE"], os.environ["RUN_WRAPPER"])
    job = Job(note=log.info)
    log.info("model ready, %d parameters", sum(p.numel() for p in job.model.parameters()))
    begin = time.perf_counter()
    for step, batch in enumerate(job.loader(), 1):
        job.host.at("prepare", step)
        if job.host.is_now("break", step):
            break
        loss = job.forward(batch, step)
        loss.backward()
        job.update(step)
        if step % 2 == 0:
            spent, begin = time.perf_counter() - begin, time.perf_counter()
            average = job.mean(loss, step)
            log.info("step %d/%d loss %.4f lr 1.0e-03 step_time %.3f s", step, job.steps, average, spent / 2)
        if step % 10 == 0:
            log.info("saving checkpoint step %d to checkpoints/step_%d", step, step)
            job.save(step)
            log.info("checkpoint step %d saved", step)
        if step % 12 == 0:
            log.info("running evaluation at step %d", step)
            log.info("eval loss %.4f", job.evaluate(step))
    log.info("training finished after %d steps", job.steps)
    job.close()


if __name__ == "__main__":
    main()
