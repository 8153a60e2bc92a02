"""Which families may stand in one run: its framework, its launcher, one house of training code, its words."""

from __future__ import annotations

import re
import zlib
from functools import lru_cache

from train.inventory import Family
from train.simulate.world import World

_AGENT = frozenset({"torchrun", "tee", "slurm_torchrun", "k8s", "accelerate", "files"})
#: Which launchers a launcher's own lines may stand beside; an emitter that is not listed goes with all.
_BESIDE: dict[str, frozenset[str]] = {
    "torchrun": _AGENT,
    "slurm": frozenset({"slurm", "slurm_torchrun"}),
    "slurmctld": frozenset({"slurm", "slurm_torchrun"}),
    "submitit": frozenset({"slurm", "slurm_torchrun"}),
    "kubernetes": frozenset({"k8s", "torchrun"}),
    "kubeflow": frozenset({"k8s", "torchrun"}),
    "ray": frozenset({"ray"}),
    "verl": frozenset({"ray"}),
    "deepspeed": frozenset({"deepspeed"}),
    "pdsh": frozenset({"deepspeed"}),
    "accelerate": frozenset({"accelerate"}),
    "mpirun": frozenset({"mpirun"}),
    "openmpi": frozenset({"mpirun"}),
    "hydra": frozenset({"mpirun"}),
    "torch.multiprocessing": frozenset({"spawn"}),
    "pbs": frozenset({"torchrun", "mpirun"}),
    "lsf": frozenset({"torchrun", "mpirun"}),
}
#: Training code that a run is written in, or not: a run has one at most.
_HOUSES = frozenset(
    """composer torchtune mmengine detectron2 fairseq fairseq2 timm nanogpt ultralytics llama_factory
    diffusers espnet litgpt openclip nanotron axolotl ms_swift trl llm-foundry streaming llama_cookbook
    horovod jax gpt_neox colossalai openfold oumi fairscale torchrec dgl torchft torchsnapshot nvrx
    webdataset deepep transformer_engine""".split()
)
_ALONE = frozenset({"torchtitan", "verl", "Megatron", "NeMo"})
#: Words that belong to one kind of run: the tags of which one must be there.
_WORDS: tuple[tuple[re.Pattern[str], frozenset[str]], ...] = (
    (
        re.compile(r"(?i)fsdp|fully_?shard|flat_?param"),
        frozenset({"fsdp", "fsdp2", "accelerate", "lightning"}),
    ),
    (re.compile(r"ZeRO|zero_pp|(?i:deepspeed)"), frozenset({"deepspeed", "accelerate", "lightning"})),
    (re.compile(r"\bDDP\b|DistributedDataParallel"), frozenset({"ddp"})),
    (re.compile(r"(?i)megatron|iteration\s+\{step\}/"), frozenset({"megatron"})),
    (re.compile(r"(?i)lightning|Trainer\.fit"), frozenset({"lightning"})),
    (re.compile(r"(?i)torchtitan|\[titan\]"), frozenset({"torchtitan"})),
    (
        re.compile(r"(?i)pipeline stage|\bstage[ =_]?\{|PP=|pp_rank|pp rank|micro-?batches"),
        frozenset({"megatron", "deepspeed", "torchtitan", "nemo"}),
    ),
)
_RL = re.compile(r"(?i)rollout|reward|\bppo\b|\bgrpo\b|actor|critic|policy|trajector|vllm|sglang|episode")


@lru_cache(maxsize=16384)
def _needs(family: Family) -> tuple[tuple[frozenset[str], ...], bool]:
    text = "\n".join((*family.texts, *family.follow))
    return tuple(tags for pattern, tags in _WORDS if pattern.search(text)), bool(_RL.search(text))


def fits(family: Family, world: World) -> bool:
    """Whether a family belongs into this run: framework, words, and the launcher of launchers' lines."""
    if family.channel in {"launcher", "driver"} or family.emitter in _BESIDE:
        if world.launcher not in _BESIDE.get(family.emitter, (world.launcher,)):
            return (
                family.emitter in {"deepspeed", "accelerate", "verl"}
                and family.channel
                in {
                    "rank",
                    "main",
                }
                and family.fits(world.tags)
                and bool(family.frameworks)
            )
    needs, _ = _needs(family)
    tags = frozenset(world.tags)
    return family.fits(world.tags) and all(tags & wanted for wanted in needs)


def at_home(family: Family, world: World) -> bool:
    """Whether harmless output of this run may hold the family: one house of training code, one subject."""
    if family.emitter in _HOUSES and (world.framework in _ALONE or not _own_house(family.emitter, world)):
        return False
    _, learning = _needs(family)
    return not learning or world.framework == "verl" or world.agents[0] % 8 == 0


def _own_house(emitter: str, world: World) -> bool:
    names = sorted(_HOUSES)
    mark = zlib.crc32(f"{world.agents[0]}".encode())
    return mark % 3 == 0 and names[mark % len(names)] == emitter
