"""What a person took beside the log: utilisation, process states, the topology of the cards."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from train.simulate.record import Record
from train.simulate.world import World

if TYPE_CHECKING:
    from train.simulate.scene import Scene


def utilisation(scene: Scene, idle: tuple[int, ...], at: float, strength: int) -> None:
    """A query of the node of the first idle rank: idle cards at 0 %, waiting ones spin at 100 %."""
    rng, world = scene.rng, scene.world
    node = world.node_of(idle[0])
    wide = rng.random() < 0.4
    rows = []
    for rank in world.ranks_on(node)[:8]:
        load = rng.choice((0, 0, 0, 1)) if rank in idle else rng.choice((100, 100, 100, 99))
        watts = rng.uniform(60, 75) if rank in idle else rng.uniform(84, 130)
        head = f"{watts:.2f} W, " if wide else f"{world.local(rank)}, "
        rows.append(f"{head}{load} %" + (f", {rng.randrange(26, 44)}" if wide else ""))
    names = "power.draw [W], utilization.gpu [%], temperature.gpu" if wide else "index, utilization.gpu [%]"
    command = ("$ nvidia-smi --format=csv --query-gpu=power.draw,utilization.gpu,temperature.gpu",)
    lines = (*(command if wide else ()), names, *rows)
    _add(scene, lines, at, node, rng.choice(("gpu_util.csv", "nvidia-smi.txt", "gpu.txt")), strength)


#: Where a process sleeps by what holds it up.
_SLEEPS = {
    "storage_stall": (
        ("D", "rpc_wait_bit_killable"),
        ("Dl", "nfs_wait_bit_killable"),
        ("D", "cl_sync_io_wait"),
    ),
    "slow_disk": (("D", "io_schedule"), ("D", "blk_mq_get_tag"), ("D", "folio_wait_bit_common")),
    "checkpoint_storage": (
        ("D", "rpc_wait_bit_killable"),
        ("D", "wait_on_page_bit"),
        ("Dl", "nfs_wait_on_request"),
    ),
    "data_loading": (("Sl", "poll_schedule_timeout"), ("Sl", "futex_wait_queue_me"), ("Sl", "pipe_read")),
    "dataloader_deadlock": (
        ("Sl", "poll_schedule_timeout"),
        ("Sl", "futex_wait_queue"),
        ("Sl", "do_sys_poll"),
    ),
    "host_hang": (("D", "synchronize_rcu"), ("D", "rwsem_down_read_slowpath"), ("Z", "-")),
    "host_swap": (("D", "folio_wait_bit_common"), ("D", "do_swap_page"), ("D", "swap_readpage")),
    "nvme_swap": (("D", "io_schedule"), ("Dl", "read_events")),
}
_WORKERS = ("futex_wait_queue_me", "futex_wait_queue", "pipe_read", "do_wait")


def processes(scene: Scene, cause: str, late: int, at: float) -> bool:
    """`ps` on the node of the late rank: waiting ranks run, the late one sleeps where `cause` puts it."""
    rng, world = scene.rng, scene.world
    if cause not in _SLEEPS:
        return False
    rows = []
    for rank in world.ranks_on(world.node_of(late))[:8]:
        state, where = rng.choice(_SLEEPS[cause]) if rank == late else ("Rl", "-")
        rows.append(_row(world, rng, world.pids[rank], state, where, f"python {world.script} (rank {rank})"))
    if "data" in cause and rng.random() < 0.7:
        for i in range(rng.randrange(1, 4)):
            text = f"python {world.script} (data loader worker of {world.pids[late]})"
            rows.append(_row(world, rng, world.pids[late] + 90 + i, "S", rng.choice(_WORKERS), text))
    lines = ("  PID STAT     TIME WCHAN                 CMD", *rows)
    _add(scene, lines, at, world.node_of(late), "ps.txt", 3)
    return True


def everyone_runs(scene: Scene, at: float) -> None:
    """`ps` where no rank sleeps: people take it whatever the cause is, and it tells little."""
    rng, world = scene.rng, scene.world
    ranks = world.ranks_on(rng.randrange(world.nodes))[:8]
    rows = [_row(world, rng, world.pids[r], "Rl", "-", f"python {world.script} (rank {r})") for r in ranks]
    _add(scene, ("  PID STAT     TIME WCHAN                 CMD", *rows), at, world.node_of(ranks[0]), "ps.txt", 0)


def everyone_holds(scene: Scene, at: float) -> None:
    """A query of memory in which all cards hold about as much: it tells that nothing is uneven here."""
    rng, world = scene.rng, scene.world
    total, share = rng.choice((40960, 81559, 24564, 143771)), rng.uniform(0.35, 0.95)
    held = [int(total * share * rng.uniform(0.98, 1.02)) for _ in range(min(world.size, 8))]
    rows = [f"{card}, {used} MiB, {total} MiB" for card, used in enumerate(held)]
    _add(scene, ("index, memory.used [MiB], memory.total [MiB]", *rows), at, 0, "gpu_mem", 0)


def _row(world: World, rng: Random, pid: int, state: str, where: str, text: str) -> str:
    hours = rng.randrange(0, 30) if state == "Rl" else 0
    spent = f"{hours:02d}:{rng.randrange(60):02d}:{rng.randrange(60):02d}"
    return f"{pid:5d} {state:<4} {spent} {where:<21} {text}"


def topology(scene: Scene, at: float, *, across: bool, strength: int) -> None:
    """`nvidia-smi topo -m`: cards that reach each other across the host bridge, or over NVLink."""
    rng, world = scene.rng, scene.world
    count = min(world.per_node, 8)
    link = rng.choice(("SYS", "SYS", "NODE", "PHB")) if across else rng.choice(("NV4", "NV12", "NV18"))
    half = max(1, count // 2)
    head = "\t" + "\t".join(f"GPU{i}" for i in range(count)) + "\tCPU Affinity\tNUMA Affinity"
    rows = [head]
    for i in range(count):
        cells = [
            " X " if i == j else link if not across or i // half != j // half else rng.choice((link, "NODE"))
            for j in range(count)
        ]
        rows.append(f"GPU{i}\t" + "\t".join(cells) + f"\t{i // half * 32}-{i // half * 32 + 31}\t{i // half}")
    _add(scene, tuple(rows), at, 0, rng.choice(("topo.txt", "topology.txt")), strength)


def _add(scene: Scene, lines: tuple[str, ...], at: float, node: int, file: str, strength: int) -> None:
    scene.story.add(
        Record(
            time=at,
            lines=lines,
            role="evidence" if strength else "decoy",
            node=node,
            channel="tool",
            file=file,
            strength=strength,
        )
    )
