"""The first lines of a run: the launcher's banner, NCCL's version, how many ranks there are."""

from __future__ import annotations

from random import Random

from train.simulate.record import Record, Story
from train.simulate.world import World

_BANNER = (
    "*****************************************",
    "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid "
    "your system being overloaded, please further tune the variable for optimal performance in "
    "your application as needed. ",
    "*****************************************",
)


_SIZES = (
    "world_size={w} tensor_model_parallel_size=1 pipeline_model_parallel_size=1",
    "using world size: {w}, data-parallel size: {w}",
    "Number of processes: {w}",
    "distributed: nccl backend, world_size: {w}",
    "[rank 0] initialized process group, world_size={w}, local_rank=0",
    "Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/{w}",
    "All distributed processes registered. Starting with {w} processes",
    "world size {w}, per-device batch 2, global batch {b}",
)


def stated_size(story: Story, world: World, rng: Random, time: float) -> None:
    """One line of the start that people leave in even a short report: how many ranks there are."""
    text = rng.choice(_SIZES).format(w=world.size, b=2 * world.size)
    story.add(Record(time=time, lines=(text,), role="context", rank=0, channel="main", prefix="user"))


def version(story: Story, world: World, rng: Random, time: float, role: str = "context") -> None:
    """NCCL's version, which rank 0 prints once."""
    cuda = rng.choice(("11.8", "12.1", "12.4", "12.8", "12.9"))
    story.add(Record(time=time, lines=(f"NCCL version {world.nccl}+cuda{cuda}",), role=role, rank=0))


def startup(story: Story, world: World, rng: Random, time: float) -> None:
    """A few lines of the launch: the torchrun banner, a world report, NCCL's version."""
    if world.launcher in {"torchrun", "tee", "slurm_torchrun", "k8s", "accelerate"} and rng.random() < 0.6:
        story.add(Record(time=time, lines=_BANNER, role="chat", channel="launcher"))
    if rng.random() < 0.6:
        version(story, world, rng, time + 4, "chat")
    form = rng.choice(
        (
            "| distributed init (rank {r}): env://, gpu {l}",
            "rank {r}/{w} on {h} ready",
            "[rank {r}] initialized process group, world_size={w}, local_rank={l}",
            "Initializing distributed: GLOBAL_RANK: {r}, MEMBER: {m}/{w}",
            "> setting random seeds to 1234 ...",
            "Process rank: {r}, device: cuda:{l}, n_gpu: 1, distributed training: True",
            "",
        )
    )
    if form:
        for rank in range(min(world.size, rng.choice((1, 1, 4, 16)))):
            text = form.format(
                r=rank, w=world.size, l=world.local(rank), h=world.hosts[world.node_of(rank)], m=rank + 1
            )
            story.add(
                Record(
                    time=time + 5 + rng.random(),
                    lines=(text,),
                    role="chat",
                    rank=rank,
                    node=world.node_of(rank),
                    prefix="user",
                )
            )
