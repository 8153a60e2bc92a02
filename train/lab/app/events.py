"""A script with structured logs: one JSON object a line, from every rank, and a model with experts."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime

import torch
import torch.distributed as dist
from hostio import Host
from network import FEATURES, Tower, spread
from outset import conditions, join, share, steps, toil
from torch import Tensor

RANK = int(os.environ["RANK"])


def emit(event: str, level: str = "info", **fields: object) -> None:
    """One event."""
    stamp = datetime.now(UTC).isoformat(timespec="milliseconds")
    print(json.dumps({"ts": stamp, "level": level, "rank": RANK, "event": event, **fields}), flush=True)


def tokens(host: Host, step: int) -> int:
    """How many tokens are routed to the expert of this rank: 8 to a row, and more every six steps."""
    return int(64 * 2 ** min(step // 6, 4) * share(host, step))


def resumed(host: Host) -> int:
    """The step from which this rank goes on: that of the checkpoint that it finds."""
    found = 12 if host.mine and host.profile.get("do") == "newer_checkpoint" else 6
    emit("resume", checkpoint=f"ckpt-{found:06d}", step=found)
    return found


def validate(host: Host, step: int) -> None:
    """The mean score over all ranks."""
    host.at("eval", step)
    if host.profile.get("do") == "main_only_mean":
        if host.is_now("main_only_mean", step):
            dist.all_reduce(torch.ones(1))
        return
    size = 16 + (8 if host.is_now("more_classes", step) else 0)
    counts = torch.ones(size)
    dist.all_reduce(counts)
    emit("validation", step=step, score=round(float(counts.mean()) / 16, 4))


def one_step(host: Host, step: int, model: torch.nn.Module) -> Tensor:
    """Forward and backward with the work of the experts."""
    host.at("prepare", step)
    begin = time.perf_counter()
    mine = tokens(host, step)
    toil(mine // 8)
    host.at("compute", step)
    loss: Tensor = model(torch.randn(24, FEATURES)).square().mean()
    loss.backward()
    if step % 2 == 0:
        emit("step", step=step, loss=round(float(loss), 5), tokens=mine, sec=round(time.perf_counter() - begin, 3))
    return loss


def main() -> None:
    """Run all steps."""
    emit("boot", world=int(os.environ["WORLD_SIZE"]), wrapper=os.environ["RUN_WRAPPER"])
    host = conditions(RANK, lambda text: emit("note", msg=text))
    join(host)
    model = spread(Tower(depth=3), os.environ["RUN_WRAPPER"])
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(resumed(host) + 1, steps(60) + 1):
        one_step(host, step, model)
        host.at("optim", step)
        optimizer.step()
        optimizer.zero_grad()
        if host.is_now("leave_loop", step):
            emit("stop_requested", signal="SIGUSR1", step=step)
            break
        if step % 10 == 0:
            validate(host, step)
        if step % 16 == 0:
            emit("checkpoint_begin", step=step)
            host.at("save", step)
            dist.barrier()
            emit("checkpoint_end", step=step)
    emit("finished")
    dist.barrier()
    host.at("close", host.first)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
