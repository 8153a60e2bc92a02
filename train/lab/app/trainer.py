"""Script in the manner of a trainer library: a progress bar and dictionaries from the main process."""

from __future__ import annotations

import os
import sys
import time

from job import Job

RANK = int(os.environ["RANK"])


def main_print(text: str) -> None:
    """A line of the main process."""
    if RANK == 0:
        print(text, flush=True)


def bar(step: int, total: int, begin: float) -> None:
    """The progress bar, as it is redrawn: no newline."""
    if RANK == 0:
        spent = time.perf_counter() - begin
        left = spent / step * (total - step)
        cells = "█" * (20 * step // total)
        sys.stderr.write(
            f"\r{100 * step // total:3d}%|{cells:<20}| {step}/{total} "
            f"[{int(spent) // 60:02d}:{int(spent) % 60:02d}<{int(left) // 60:02d}:{int(left) % 60:02d}, "
            f"{spent / step:5.2f}s/it]"
        )
        sys.stderr.flush()


def main() -> None:
    """Run all steps."""
    main_print(f"***** Running training *****\n  Num processes = {os.environ['WORLD_SIZE']}")
    job = Job(note=main_print)
    main_print(f"  Total optimization steps = {job.steps}")
    begin = time.perf_counter()
    for step, batch in enumerate(job.loader(), 1):
        if job.host.is_now("nan", step):
            continue
        loss = job.train_step(step, batch)
        bar(step, job.steps, begin)
        if step % 5 == 0:
            mean = job.mean(loss, step)
            main_print(f"{{'loss': {mean:.4f}, 'learning_rate': 0.001, 'epoch': {step / job.steps:.2f}}}")
        if job.host.is_now("break", step):
            main_print("Early stopping.")
            break
        if step % 10 == 0:
            main_print(f"Saving model checkpoint to output/checkpoint-{step}")
            job.save(step)
            main_print(f"Model weights saved in output/checkpoint-{step}/model.safetensors")
        if step % 12 == 0:
            main_print("***** Running Evaluation *****")
            main_print(f"{{'eval_loss': {job.evaluate(step):.4f}}}")
    main_print("Training completed.")
    job.close()


if __name__ == "__main__":
    main()
