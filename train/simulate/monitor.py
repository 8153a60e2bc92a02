"""What torch prints about a blocked watchdog and about ranks that went apart."""

from __future__ import annotations

from random import Random

from train.simulate.c10d import group_head, head
from train.simulate.collectives import Call
from train.simulate.world import World


def stuck_lines(world: World, rank: int, time: float, rng: Random) -> list[str]:
    """The heartbeat monitor gives up on a blocked watchdog thread."""
    torch = world.torch
    group = Call(op="", numel_in=0, numel_out=0, group=world.groups[0], seq=1)
    prefix = group_head(world, group, rank)
    text = (
        f"ProcessGroupNCCL's watchdog got stuck for {torch.heartbeat} seconds without making "
        "progress in monitoring enqueued collectives. "
        "This typically indicates a NCCL/CUDA API (e.g., CudaEventDestroy) hang blocking the "
        "watchdog, and could be triggered by another thread "
        "holding the GIL inside a CUDA api (for example, CudaEventDestroy), or other "
        "deadlock-prone behaviors."
        "If you suspect the watchdog is not actually stuck and a longer timeout would help, you "
        "can either increase the timeout "
        "(TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC) to a larger value or disable the heartbeat monitor ("
        "TORCH_NCCL_ENABLE_MONITORING=0)."
    )
    if torch.rank <= 5:
        first = (
            f"{prefix}Heartbeat monitor timed out! Process will be terminated after dumping debug info. "
            f"workMetaList_.size()={rng.choice((0, 0, 1, 3, 12))}"
        )
        return [
            head(world, rank, time, 1375, rng) + first,
            f"{head(world, rank, time + torch.heartbeat, 1413, rng, 'F')}{prefix}{prefix}{text}",
        ]
    last = (
        f"{prefix}Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang."
    )
    return [
        f"{head(world, rank, time, torch.received - 160, rng)}{prefix}{text}",
        f"{head(world, rank, time + 61, torch.received - 120, rng, 'F')}{last}",
    ]


def desync_report(world: World, call: Call, rank: int, time: float, parts: list[str], rng: Random) -> list[str]:
    """The report of TORCH_NCCL_DESYNC_DEBUG with the given body lines."""
    start = head(world, rank, time, 1936, rng)
    return [
        f"{start}Rank {call.group.place(rank)}",
        f"\t - [{call.group.place(rank)}] Timeout at collective: {call.op}, #{call.seq}",
        *[f"\t{part}" for part in parts],
    ]
