"""What to simulate: splits, label mix, causes, held-out causes. Everything follows from the seed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from train.inventory import Inventory
from train.simulate.lines import Lines

#: Share of each label, in per cent.
MIX: dict[str, int] = {
    "straggler": 20,
    "desync": 16,
    "fabric_congestion": 16,
    "rank_failure": 14,
    "uneven_sharding": 6,
    "offload_latency": 6,
    "other": 7,
    "undetermined": 8,
    "no_timeout": 8,
}

#: Incidents of each split at scale 1.
SPLITS: dict[str, int] = {
    "train": 3000,
    "val": 400,
    "test_seen": 300,
    "test_unseen_lines": 300,
    "test_unseen_dialect": 300,
    "test_unseen_cause": 200,
}

#: Causes that public reports show most; they are never held out.
COMMON: dict[str, int] = {
    "checkpoint_on_rank_0": 7,
    "evaluation": 7,
    "tokenising": 6,
    "data_loading": 6,
    "dataset_prep": 5,
    "generation": 4,
    "compile": 4,
    "model_load": 4,
    "rank0_extra_work": 3,
    "storage_stall": 3,
    "checkpoint_storage": 3,
    "gpu_throttle": 2,
    "fewer_batches_on_one_rank": 6,
    "rank0_only_collective": 6,
    "data_dependent_branch": 6,
    "skipped_step_on_one_rank": 4,
    "unused_params": 4,
    "early_stop_on_one_rank": 4,
    "shape_mismatch": 4,
    "ib_retry_exceeded": 7,
    "wrong_interface": 6,
    "firewall": 5,
    "p2p_acs_iommu": 6,
    "link_flap": 4,
    "socket": 5,
    "efa_unreachable": 3,
    "node_unreachable": 3,
    "gpu_oom": 7,
    "host_oom_kill": 6,
    "exception": 7,
    "dataloader_worker_killed": 4,
    "node_loss": 4,
    "preemption": 3,
    "gpu_fault": 3,
    "segfault": 3,
    "pipeline_imbalance": 4,
    "sequence_imbalance": 4,
    "expert_imbalance": 3,
    "memory_skew": 3,
    "state_dict_to_cpu": 4,
    "host_swap": 4,
    "optim_cpu_offload": 4,
    "param_cpu_offload": 4,
    "nvme_swap": 3,
    "host_mem_pressure": 3,
    "device_binding": 5,
    "teardown_of_finished_run": 5,
    "library_deadlock": 4,
    "gil_deadlock": 2,
}

#: Splits that also hold whole runs, and how many for each report: a quarter of all. The splits of unseen
#: lines, dialects and causes stay what their names say.
WITH_RUNS = ("train", "val", "test_seen")
RUNS = 1 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One incident to make. `seed` fixes it; `blind` keeps every decisive line out.

    `kind` is `report`, what a person pastes, or `run`, the whole log of a small run with gloo.
    """

    split: str
    index: int
    seed: str
    label: str
    cause: str | None
    size: str
    blind: bool
    kind: str = "report"


def line_rules(split: str) -> tuple[str, bool]:
    """Which families a split prints: the held-out name and whether only those."""
    return {
        "val": ("val", False),
        "test_unseen_lines": ("test", True),
        "test_unseen_cause": ("test", False),
    }.get(split, ("train", False))


def held_causes(inventory: Inventory) -> dict[str, tuple[str, ...]]:
    """One cause per label, two where it has many: those with the smallest hash that lines speak for."""
    spoken = {family.cause for family in inventory.families if family.role == "evidence"}
    held: dict[str, tuple[str, ...]] = {}
    for label in MIX:
        names = [
            cause.id
            for cause in inventory.causes
            if cause.label == label and cause.id in spoken and cause.id not in COMMON
        ]
        ordered = sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
        held[label] = tuple(ordered[: 2 if len(names) > 15 else 1])
    return held


def _labels(rng: Random, count: int, names: Sequence[str]) -> list[str]:
    """`count` labels in random order: each at least once, the rest in the shares of `MIX`."""
    total = sum(MIX[name] for name in names)
    exact = {name: count * MIX[name] / total for name in names}
    labels = [name for name in names for _ in range(max(1, int(exact[name])))]
    by_rest = sorted(names, key=lambda name: int(exact[name]) - exact[name])
    labels += [by_rest[i % len(by_rest)] for i in range(count - len(labels))]
    rng.shuffle(labels)
    return labels


def jobs(inventory: Inventory, seed: int, scale: float) -> list[Job]:
    """All jobs of all splits."""
    held = held_causes(inventory)
    found: list[Job] = []
    for split, size in SPLITS.items():
        count = max(9, round(size * scale))
        found += _split_jobs(inventory, seed, split, count, held)
        if split in WITH_RUNS:
            found += _split_jobs(inventory, seed, split, max(9, round(count * RUNS)), held, kind="run")
    return found


def _split_jobs(
    inventory: Inventory, seed: int, split: str, count: int, held: dict[str, tuple[str, ...]], kind: str = "report"
) -> list[Job]:
    path = split if kind == "report" else f"{split}/{kind}"
    rng = Random(f"{seed}/{path}/plan")
    unseen = split == "test_unseen_cause"
    names = [label for label in MIX if label not in {"undetermined", "no_timeout"}] if unseen else list(MIX)
    name, strict = line_rules(split)
    lines = Lines(inventory=inventory, split=name, strict=strict)
    pools = {label: _pool(inventory, lines, label, held, unseen, strict) for label in names}
    turns = dict.fromkeys(names, 0)
    found: list[Job] = []
    for index, label in enumerate(_labels(rng, count, names)):
        cause = _cause(rng, pools[label], turns[label])
        turns[label] += 1
        size = rng.choices(("short", "medium", "long"), (64, 22, 14))[0]
        blind = (label == "undetermined" and rng.random() < 0.6) or (
            label not in {"undetermined", "no_timeout"} and rng.random() < 0.025
        )
        found.append(
            Job(
                split=split,
                index=index,
                seed=f"{seed}/{path}/{index}",
                label=label,
                cause=cause,
                size=size,
                blind=blind,
                kind=kind,
            )
        )
    return found


def _pool(
    inventory: Inventory,
    lines: Lines,
    label: str,
    held: dict[str, tuple[str, ...]],
    unseen: bool,
    strict: bool,
) -> list[str]:
    if unseen:
        return list(held[label])
    every = [cause.id for cause in inventory.causes if cause.label == label and cause.id not in held.get(label, ())]
    spoken = [cause for cause in every if lines.has(cause)]
    return spoken or ([] if strict else every)


def _cause(rng: Random, pool: list[str], turn: int) -> str | None:
    """Every other job takes its turn through all causes; the rest follow how common a cause is."""
    if not pool:
        return None
    return pool[turn // 2 % len(pool)] if turn % 2 else rng.choices(pool, [COMMON.get(cause, 1) for cause in pool])[0]
