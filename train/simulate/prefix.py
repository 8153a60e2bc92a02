"""Prefixes in front of a line: the script's logger, Python's exception hook, the launcher, the container."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random

from train.simulate import clock
from train.simulate.record import Record
from train.simulate.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Choices that hold for one report: label width and kind, Ray's actor name, colours, stamps."""

    label: str
    actor: str
    colour: bool
    width: int


#: Names that Ray programs give to the actors that train.
_ACTORS = {
    "megatron": ("MegatronPolicyWorker", "MegatronTrainRayActor", "TrainActor", "WorkerDict"),
    "other": (
        "WorkerDict",
        "WorkerDict",
        "RayTrainWorker",
        "ActorModelRayActor",
        "PolicyWorker",
        "TrainWorker",
    ),
}


def pick_dialect(world: World, rng: Random) -> Dialect:
    """Draw how this run's launcher prefixes lines."""
    label = {"tee": "tee", "slurm": "slurm", "mpirun": "mpi", "ray": "ray", "k8s": "k8s"}.get(world.launcher, "")
    if world.launcher == "slurm_torchrun" and rng.random() < 0.4:
        label = "node"
    if world.launcher == "deepspeed" and world.nodes > 1 and rng.random() < 0.7:
        label = "host"
    if not label and rng.random() < 0.03:
        label = rng.choice(("k8s", "compose"))
    actor = rng.choice(_ACTORS["megatron" if "megatron" in world.tags else "other"])
    padded = len(str(world.size - 1)) if rng.random() < 0.7 else 1
    return Dialect(label=label, actor=actor, colour=label == "ray" and rng.random() < 0.12, width=padded)


#: What scripts call their loggers.
_NAMES = (
    "__main__", "train", "root", "main", "engine", "pretrain", "run", "trainer", "src.loop", "experiment", "core.run",
    "llm.finetune", "launch", "pipeline", "cli.train", "model", "recipes.sft", "lib.training", "worker", "app",
)  # fmt: skip


def _logger(world: World, record: Record, text: str) -> str:
    rank = record.rank or 0
    shown = world.shown(record.node, record.time)
    style, name = world.logger, _NAMES[world.agents[0] % len(_NAMES)]
    if style == "comma":
        return _comma(clock.comma(shown), name, text, world.agents[0] // 32 % 4)
    if style == "levels":
        return f"INFO: {text}"
    if style == "rank":
        return f"[rank {rank}] {text}" if record.channel == "rank" else text
    if style == "bracket":
        return f"[{clock.plain(shown)}] {text}"
    if style == "epoch":
        return f"[{clock.hour(shown)}] {text}"
    if style == "module":
        return f"INFO:{name}:{text}"
    if style == "json":
        return json.dumps({"ts": clock.iso(shown), "level": "info", "rank": rank, "msg": text}, ensure_ascii=False)
    if style == "hf":
        return f"[INFO|trainer.py:{1000 + len(text) * 7 % 1500}] {clock.comma(shown)} >> {text}"
    return text


def _comma(stamp: str, name: str, text: str, form: int) -> str:
    """Four habits of Python's logging."""
    if form == 0:
        return f"{stamp} INFO {name}: {text}"
    if form == 1:
        return f"{stamp} - {name} - INFO - {text}"
    return f"[{stamp}][{name}][INFO] - {text}" if form == 2 else f"{stamp} {text}"


def inner(world: World, record: Record, text: str, first: bool) -> str:
    """The prefix of the program itself."""
    if record.prefix == "user" and first:
        return _logger(world, record, text)
    if record.prefix == "exc" and world.hooked and text and record.rank is not None:
        return f"[rank{record.rank}]: {text}"
    return text


def outer(world: World, dialect: Dialect, record: Record, text: str, rng: Random) -> str:
    """The prefix of the launcher or of the container runtime."""
    rank, node = record.rank or 0, record.node
    worker = record.channel in {"rank", "main"}
    if dialect.label == "k8s":
        return f"{clock.nano(world.shown(node, record.time), rng)} {text}"
    if dialect.label == "compose":
        return f"trainer-1  | {text}"
    if dialect.label == "tee" and worker:
        role = "rank" if world.framework == "torchtitan" else "default"
        return f"[{role}{world.local(rank)}]:{text}"
    if dialect.label == "slurm" and worker:
        return f"{rank:0{dialect.width}d}: {text}"
    if dialect.label == "node" and record.channel != "driver":
        return f"{node}: {text}"
    if dialect.label == "host" and record.channel != "driver":
        return f"{world.hosts[node]}: {text}"
    if dialect.label == "mpi" and worker and dialect.width == 1:
        return f"[{rank}]{text}"
    if dialect.label == "mpi" and worker:
        return f"[1,{rank}]<{'stdout' if record.role == 'chat' else 'stderr'}>:{text}"
    if dialect.label == "ray" and worker:
        return _ray(world, dialect, record, text)
    return text


def _ray(world: World, dialect: Dialect, record: Record, text: str) -> str:
    rank = record.rank or 0
    where = "" if record.node == 0 else f", ip={world.ips[record.node]}"
    name = dialect.actor if record.channel == "rank" else "TaskRunner"
    head = f"({name} pid={world.pids[rank] if record.channel == 'rank' else world.agents[0]}{where})"
    return f"\x1b[36m{head}\x1b[0m {text}" if dialect.colour else f"{head} {text}"
