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

    `kind` is `report`, what a person pastes, or `run`, the whole log of a small run with gloo. `dialect` names
    the split whose held combinations of framework and launcher the world is drawn from; empty: the common ones.
    """

    split: str
    index: int
    seed: str
    label: str
    cause: str | None
    size: str
    blind: bool
    kind: str = "report"
    dialect: str = ""


#: One in so many reports of validation shows a cause, and one a dialect, that training never sees.
VAL_UNSEEN = 5


def line_rules(split: str) -> tuple[str, bool]:
    """Which families a split prints: the held-out name and whether only those."""
    return {
        "val": ("val", False),
        "test_unseen_lines": ("test", True),
        "test_unseen_cause": ("test", False),
    }.get(split, ("train", False))


def held_causes(inventory: Inventory) -> dict[str, tuple[str, ...]]:
    """Causes for testing: one per label, two where it has many, by the hash of their names."""
    return {label: names[: 2 if len(names) > 15 else 1] for label, names in _rare_causes(inventory).items()}


def validation_causes(inventory: Inventory) -> dict[str, tuple[str, ...]]:
    """Causes that only validation shows: the next by hash, where a label has enough of them."""
    test = held_causes(inventory)
    rare = _rare_causes(inventory)
    return {label: rare[label][len(test[label]) :][:1] if len(rare[label]) > 6 else () for label in MIX}


def split_lines(inventory: Inventory, split: str) -> Lines:
    """What a split may print: its families, without those of causes that are kept for another split."""
    name, strict = line_rules(split)
    kept = {"val": (held_causes,), "test_unseen_cause": (validation_causes,)}
    chosen = kept.get(split, (held_causes, validation_causes))
    without = frozenset(cause for held in chosen for names in held(inventory).values() for cause in names)
    return Lines(inventory=inventory, split=name, strict=strict, without=without)


def _rare_causes(inventory: Inventory) -> dict[str, tuple[str, ...]]:
    """By label: the causes that lines speak for and that are not common, the smallest hash of the name first."""
    spoken = {family.cause for family in inventory.families if family.role == "evidence"}
    found: dict[str, tuple[str, ...]] = {}
    for label in MIX:
        names = [
            cause.id
            for cause in inventory.causes
            if cause.label == label and cause.id in spoken and cause.id not in COMMON
        ]
        ordered = sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
        found[label] = tuple(ordered)
    return found


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
    found: list[Job] = []
    for split, size in SPLITS.items():
        count = max(9, round(size * scale))
        found += _split_jobs(inventory, seed, split, count)
        if split in WITH_RUNS:
            found += _split_jobs(inventory, seed, split, max(9, round(count * RUNS)), kind="run")
    return found


def _split_jobs(inventory: Inventory, seed: int, split: str, count: int, kind: str = "report") -> list[Job]:
    path = split if kind == "report" else f"{split}/{kind}"
    rng = Random(f"{seed}/{path}/plan")
    unseen = split == "test_unseen_cause"
    names = [label for label in MIX if label not in {"undetermined", "no_timeout"}] if unseen else list(MIX)
    pools = _pools(inventory, split, names)
    unusual = validation_causes(inventory) if split == "val" and kind == "report" else {}
    turns = dict.fromkeys(names, 0)
    found: list[Job] = []
    for index, label in enumerate(_labels(rng, count, names)):
        cause = _cause(rng, pools[label], turns[label])
        turns[label] += 1
        if unusual.get(label) and index % VAL_UNSEEN == 0:
            cause = unusual[label][0]
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
                dialect=_dialect(split, kind, index),
            )
        )
    return found


def _dialect(split: str, kind: str, index: int) -> str:
    if split == "test_unseen_dialect":
        return "test"
    return "val" if split == "val" and kind == "report" and index % VAL_UNSEEN == 1 else ""


def _pools(inventory: Inventory, split: str, labels: Sequence[str]) -> dict[str, list[str]]:
    """The causes of each label that a split simulates: those that its lines speak for, if there are any."""
    held, rare = held_causes(inventory), validation_causes(inventory)
    if split == "test_unseen_cause":
        return {label: list(held[label]) for label in labels}
    lines = split_lines(inventory, split)
    pools: dict[str, list[str]] = {}
    for label in labels:
        kept = {*held[label], *rare[label]}
        every = [cause.id for cause in inventory.causes if cause.label == label and cause.id not in kept]
        spoken = [cause for cause in every if lines.has(cause)]
        pools[label] = spoken or ([] if lines.strict else every)
    return pools


def _cause(rng: Random, pool: list[str], turn: int) -> str | None:
    """Every other job takes its turn through all causes; the rest follow how common a cause is."""
    if not pool:
        return None
    return pool[turn // 2 % len(pool)] if turn % 2 else rng.choices(pool, [COMMON.get(cause, 1) for cause in pool])[0]
