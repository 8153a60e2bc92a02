"""The cluster and the program that runs on it: ranks, nodes, clocks, groups, versions, dialect."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from train.simulate.combos import FRAMEWORKS, pick_dialect
from train.simulate.versions import Torch, pick_release

_SCRIPTS = (
    "train.py",
    "main.py",
    "pretrain.py",
    "finetune.py",
    "run_clm.py",
    "sft.py",
    "train_dpo.py",
    "run.py",
    "train_gpt.py",
    "scripts/train.py",
    "src/main.py",
    "tools/train_net.py",
    "pretrain_gpt.py",
    "run_pretraining.py",
    "train_fsdp.py",
)
_ROOTS = (
    "/workspace",
    "/opt/app",
    "/app",
    "/home/user/code",
    "/mnt/proj/code",
    "/data/project",
    "/root/run",
    "/scratch/exp",
)
_SITES = (
    "/opt/conda/lib/python{v}/site-packages",
    "/usr/local/lib/python{v}/dist-packages",
    "/opt/venv/lib/python{v}/site-packages",
    "/opt/conda/envs/train/lib/python{v}/site-packages",
    "/home/user/.local/lib/python{v}/site-packages",
    "/usr/local/lib/python{v}/site-packages",
    "/workspace/env/lib/python{v}/site-packages",
)
_HOSTS = (
    "node{n}",
    "gpu{n:02d}",
    "gpu-node-{n:02d}",
    "worker-{n}",
    "trainer-{n}",
    "dgx{n:03d}",
    "ip-10-0-{n}-41",
    "h100-{n:02d}",
    "nid{n:06d}",
    "compute-{n}",
    "cn{n:04d}",
    "train-job-worker-{n}",
)
_SIZES = ((2, 14), (4, 17), (8, 33), (16, 15), (32, 9), (64, 6), (128, 2), (3, 1), (6, 2), (24, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A process group: `members` are global ranks, a member's place among them is its group rank."""

    name: str
    desc: str
    ident: int
    members: tuple[int, ...]

    def place(self, rank: int) -> int:
        """The group rank of a global rank."""
        return self.members.index(rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One run. Sequences indexed by node: hosts, ips, skews, agents; by rank: pids.

    `hooked` tells whether uncaught exceptions carry the rank in front of each line.
    """

    framework: str
    tags: tuple[str, ...]
    launcher: str
    torch: Torch
    nccl: str
    size: int
    nodes: int
    hosts: tuple[str, ...]
    ips: tuple[str, ...]
    skews: tuple[float, ...]
    agents: tuple[int, ...]
    pids: tuple[int, ...]
    groups: tuple[Group, ...]
    start: float
    step_s: float
    timeout_s: int
    steps: int
    step: int
    site: str
    root: str
    script: str
    logger: str
    python: str
    backend: str
    shift: int
    ngc: bool
    hooked: bool

    @property
    def per_node(self) -> int:
        """Ranks on each node."""
        return self.size // self.nodes

    def node_of(self, rank: int) -> int:
        """The node that holds a rank."""
        return min(rank // self.per_node, self.nodes - 1)

    def local(self, rank: int) -> int:
        """The local rank."""
        return rank - self.node_of(rank) * self.per_node

    def ranks_on(self, node: int) -> tuple[int, ...]:
        """Global ranks of a node."""
        return tuple(rank for rank in range(self.size) if self.node_of(rank) == node)

    def shown(self, node: int, time: float) -> float:
        """What the clock of a node reads at a true time."""
        return time + self.skews[node]


def _timeout(rng: Random, framework: str, torch: Torch) -> int:
    if framework in {"HF Trainer", "Lightning"} or framework.startswith("DeepSpeed"):
        usual = rng.choice((1800, 1800, 1800, 600))
    elif framework == "torchtitan":
        usual = rng.choice((300, 100, 300, 600))
    else:
        usual = torch.default_timeout
    return (
        usual
        if rng.random() < 0.72
        else rng.choice((60, 120, 180, 240, 300, 600, 900, 1200, 1800, 3000, 3600, 5400, 7200))
    )


def _groups(rng: Random, framework: str, size: int, per_node: int) -> tuple[Group, ...]:
    everyone = tuple(range(size))
    found = [Group(name="0", desc="default_pg", ident=0, members=everyone)]
    if framework.startswith("DeepSpeed"):
        found.append(Group(name="1", desc="", ident=1, members=everyone))
    if framework in {"Megatron", "NeMo"} and size >= 4:
        width = rng.choice([w for w in (2, 4, 8) if size % w == 0 and w <= size])
        tensor = tuple(range(width))
        found.append(
            Group(
                name=str(rng.randrange(9, 90)),
                desc=rng.choice(("", "TENSOR_MODEL_PARALLEL_GROUP")),
                ident=rng.randrange(2, 20),
                members=tensor,
            )
        )
        found.append(
            Group(
                name=str(rng.randrange(9, 90)),
                desc=rng.choice(("", "PIPELINE_MODEL_PARALLEL_GROUP")),
                ident=rng.randrange(2, 20),
                members=everyone[::width],
            )
        )
        found.append(
            Group(
                name=str(rng.randrange(9, 90)),
                desc=rng.choice(("", "DATA_PARALLEL_GROUP_WITH_CP", "EXPERT_MODEL_PARALLEL_GROUP")),
                ident=rng.randrange(2, 20),
                members=everyone[:: max(1, size // 2)],
            )
        )
    if framework in {"FSDP2", "torchtitan", "verl"}:
        desc = rng.choice(("mesh_fsdp", "mesh_dp_shard", "mesh_dp_shard_cp", "mesh_default"))
        found.append(Group(name=str(rng.randrange(1, 12)), desc=desc, ident=rng.randrange(1, 6), members=everyone))
    if framework in {"FSDP", "FSDP2", "torchtitan"} and size > per_node and rng.random() < 0.4:
        found.append(
            Group(
                name=str(rng.randrange(3, 30)),
                desc=rng.choice(("mesh_dp_replicate", "")),
                ident=rng.randrange(2, 8),
                members=everyone[::per_node],
            )
        )
    return tuple(found)


def _shape(rng: Random, launcher: str) -> tuple[int, int]:
    size = rng.choices([s for s, _ in _SIZES], [w for _, w in _SIZES])[0]
    if launcher in {"spawn", "accelerate"} and size > 16:
        size = rng.choice((2, 4, 8))
    if launcher == "mpirun" and size < 8:
        size = 16
    per_node = rng.choice((8, 8, 8, 4)) if size > 8 else size if rng.random() < 0.8 or size % 2 else size // 2
    nodes = max(1, min(size // max(per_node, 1), 16))
    return (size, nodes) if size % nodes == 0 else (size, 1)


def _start(rng: Random, torch: Torch) -> float:
    first, last = torch.years
    begin = datetime(first, 1, 1, tzinfo=UTC).timestamp()
    end = datetime(last, 12, 20, tzinfo=UTC).timestamp()
    return begin + rng.random() * (end - begin)


def _ips(rng: Random, nodes: int) -> tuple[str, ...]:
    base = rng.choice(("10.0.{}.", "10.1.{}.", "172.16.{}.", "192.168.{}.", "10.42.{}.")).format(rng.randrange(1, 250))
    first = rng.randrange(2, 200)
    return tuple(f"{base}{first + node}" for node in range(nodes))


def _pids(rng: Random, size: int, per_node: int) -> tuple[int, ...]:
    pids: list[int] = []
    for rank in range(size):
        pids.append(pids[-1] + rng.choice((1, 1, 1, 2, 67)) if rank % per_node else rng.randrange(300, 3_900_000))
    return tuple(pids)


def make_world(rng: Random, *, held: str = "", least: int = 2, least_nodes: int = 1) -> World:
    """Draw a world with at least `least` ranks and `least_nodes` nodes, of the dialects `held` for a split."""
    framework, launcher = pick_dialect(rng, held)
    torch = pick_release(rng)
    while framework in {"FSDP2", "torchtitan", "verl"} and torch.rank < 4:
        torch = pick_release(rng)
    size, nodes = _shape(rng, launcher)
    while size < least or nodes < least_nodes:
        size, nodes = _shape(rng, "torchrun")
        if least_nodes > 1 and nodes == 1 and size <= 8 and size % 2 == 0 and rng.random() < 0.5:
            nodes = 2
    per_node = size // nodes
    python = rng.choice(torch.python)
    first = rng.choice((0, 0, 1, 1, 2, 7, 14, 31))
    host = rng.choice(_HOSTS)
    steps = rng.choice((100, 400, 500, 1000, 1752, 2000, 4325, 5000, 10000, 20000, 25600, 100000, 300000))
    return World(
        framework=framework,
        tags=FRAMEWORKS[framework][1],
        launcher=launcher,
        torch=torch,
        nccl=rng.choice(torch.nccl),
        size=size,
        nodes=nodes,
        hosts=tuple(host.format(n=first + node) for node in range(nodes)),
        ips=_ips(rng, nodes),
        skews=tuple(0.0 if node == 0 or rng.random() < 0.3 else rng.gauss(0, 0.6) for node in range(nodes)),
        agents=tuple(rng.randrange(200, 900_000) for _ in range(nodes)),
        pids=_pids(rng, size, per_node),
        groups=_groups(rng, framework, size, per_node),
        start=_start(rng, torch),
        step_s=rng.choice((0.12, 0.4, 0.7, 1.2, 2.8, 5.1, 8.2, 14.0, 20.0, 46.0)) * rng.uniform(0.7, 1.4),
        timeout_s=_timeout(rng, framework, torch),
        steps=steps,
        step=max(1, int(steps * rng.choice((0.01, 0.03, 0.1, 0.3, 0.6, 0.9)) * rng.uniform(0.3, 1.1))),
        site=rng.choice(_SITES).format(v=python),
        root=rng.choice(_ROOTS),
        script=rng.choice(_SCRIPTS),
        logger=rng.choice((*("none",) * 8, "comma", "levels", "rank", "bracket", "epoch", "module", "json", "hf")),
        python=python,
        backend="hccl" if rng.random() < 0.012 else "nccl",
        shift=rng.choice((0, 0, 0, 0, 0, -3, 6)),
        ngc=rng.random() < 0.08,
        hooked=torch.rank >= 3 and rng.random() < 0.85,
    )
