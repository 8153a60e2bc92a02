"""Frameworks and launchers: which go together, how often, and which combinations are kept for testing."""

from __future__ import annotations

from random import Random

#: Frameworks with a weight and the names that the line inventory uses for them.
FRAMEWORKS: dict[str, tuple[int, tuple[str, ...]]] = {
    "DDP": (18, ("ddp",)),
    "FSDP": (9, ("fsdp",)),
    "FSDP2": (7, ("fsdp", "fsdp2")),
    "DeepSpeed-ZeRO2": (7, ("deepspeed",)),
    "DeepSpeed-ZeRO3": (8, ("deepspeed",)),
    "Megatron": (11, ("megatron",)),
    "HF Trainer": (11, ("hf", "transformers", "accelerate", "ddp")),
    "Accelerate": (9, ("accelerate", "hf", "ddp")),
    "Lightning": (6, ("lightning", "ddp")),
    "torchtitan": (4, ("torchtitan", "fsdp", "fsdp2")),
    "verl": (6, ("verl", "ray", "fsdp")),
    "NeMo": (4, ("nemo", "megatron", "lightning")),
}

#: Launchers with a weight.
LAUNCHERS: dict[str, int] = {
    "torchrun": 36,
    "tee": 4,
    "slurm": 6,
    "slurm_torchrun": 6,
    "mpirun": 2,
    "ray": 5,
    "k8s": 3,
    "deepspeed": 8,
    "accelerate": 11,
    "spawn": 4,
    "files": 5,
}

#: Combinations that only the split of unseen dialects may use.
HELD_OUT = frozenset(
    {
        ("DDP", "mpirun"),
        ("FSDP", "slurm"),
        ("FSDP2", "k8s"),
        ("DeepSpeed-ZeRO2", "tee"),
        ("DeepSpeed-ZeRO3", "slurm"),
        ("Megatron", "k8s"),
        ("HF Trainer", "spawn"),
        ("Accelerate", "slurm_torchrun"),
        ("Lightning", "slurm"),
        ("NeMo", "tee"),
        ("FSDP", "files"),
        ("DDP", "k8s"),
        ("HF Trainer", "tee"),
    }
)


#: Combinations that only validation uses: it measures what training has not seen, as the tests do.
HELD_FOR_VALIDATION = frozenset(
    {
        ("DDP", "slurm_torchrun"),
        ("FSDP", "k8s"),
        ("FSDP2", "slurm"),
        ("DeepSpeed-ZeRO2", "accelerate"),
        ("Megatron", "mpirun"),
        ("HF Trainer", "slurm"),
        ("NeMo", "slurm_torchrun"),
        ("Lightning", "files"),
    }
)
_HELD = {"test": HELD_OUT, "val": HELD_FOR_VALIDATION}


def allowed(framework: str, launcher: str) -> bool:
    """Whether people run this framework under this launcher at all."""
    if launcher == "ray":
        return framework in {"verl", "FSDP2", "Megatron", "DeepSpeed-ZeRO3"}
    if framework == "verl":
        return False
    if launcher == "deepspeed":
        return framework.startswith("DeepSpeed")
    if launcher == "accelerate":
        return framework in {
            "HF Trainer",
            "Accelerate",
            "FSDP",
            "FSDP2",
            "DeepSpeed-ZeRO3",
            "DeepSpeed-ZeRO2",
            "DDP",
        }
    if launcher == "spawn":
        return framework in {"DDP", "FSDP", "Lightning", "HF Trainer"}
    return not (framework == "torchtitan" and launcher in {"mpirun", "files"})


def pick_dialect(rng: Random, held: str = "") -> tuple[str, str]:
    """A framework and a launcher; `held` (`test` or `val`) draws only from the combinations kept for it."""
    if held:
        return rng.choice(sorted(_HELD[held]))
    framework = rng.choices(list(FRAMEWORKS), [weight for weight, _ in FRAMEWORKS.values()])[0]
    kept = HELD_OUT | HELD_FOR_VALIDATION
    names = [name for name in LAUNCHERS if allowed(framework, name) and (framework, name) not in kept]
    return framework, rng.choices(names, [LAUNCHERS[name] for name in names])[0]
