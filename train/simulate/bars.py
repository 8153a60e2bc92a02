"""Progress bars of slow phases: the line that a late rank leaves behind most often."""

from __future__ import annotations

import re
from random import Random

from train.simulate import healthy
from train.simulate.record import Record
from train.simulate.scene import Scene

#: Progress bars of slow phases; each description is a family of its own for the held-out split.
_BARS: dict[str, tuple[tuple[str, str], ...]] = {
    "tokenising": (
        ("Running tokenizer on dataset", "examples"),
        ("Tokenizing train dataset", "examples"),
        ("Tokenizing Prompts (num_proc=64)", "examples"),
        ("Map (num_proc=8)", "examples"),
        ("Tokenizing texts", "it"),
        ("Encoding corpus", "docs"),
        ("Applying chat template", "examples"),
        ("Running tokenizer on dataset (num_proc=16)", "ba"),
    ),
    "dataset_prep": (
        ("Grouping texts in chunks of 2048", "examples"),
        ("Packing train dataset", "examples"),
        ("Building index", "it"),
        ("Filter", "examples"),
        ("Generating train split", "examples"),
        ("Saving the dataset (12/40 shards)", "examples"),
        ("Casting the dataset", "examples"),
        ("Creating shuffled indices", "it"),
        ("Scanning images", "files"),
        ("Caching latents", "it"),
    ),
    "evaluation": (
        ("Evaluating", "it"),
        ("Validation DataLoader 0", "it"),
        ("eval", "batch"),
        ("Computing perplexity", "it"),
        ("Predict", "it"),
        ("Scoring", "it"),
        ("Val", "it"),
        ("Running evals", "it"),
    ),
    "generation": (
        ("Generating", "it"),
        ("Rollout", "it"),
        ("Sampling completions", "it"),
        ("Decoding", "sent"),
        ("Generating samples for eval", "it"),
        ("Beam search", "it"),
    ),
    "model_load": (
        ("Loading checkpoint shards", "it"),
        ("Loading weights", "it"),
        ("Materializing layers", "it"),
        ("Quantizing", "layers"),
    ),
    "model_download": (
        ("Downloading shards", "it"),
        ("Fetching 48 files", "it"),
        ("model-00017-of-00030.safetensors", "B"),
    ),
    "checkpoint_on_rank_0": (
        ("Saving shards", "it"),
        ("Merging shards", "it"),
        ("Consolidating", "it"),
        ("Writing safetensors", "it"),
    ),
    "checkpoint_upload": (("Uploading", "it"), ("Upload 31 LFS files", "it"), ("pushing to bucket", "part")),
    "rank0_extra_work": (
        ("k-means", "it"),
        ("Computing statistics", "it"),
        ("FID features", "it"),
        ("Building vocabulary", "it"),
        ("Embedding documents", "doc"),
        ("Mining hard negatives", "q"),
    ),
    "resume_skip": (("Skipping batches", "it"), ("Skipping the first batches", "it")),
    "compile": (("Compiling blocks", "it"), ("Capturing CUDA graphs", "it"), ("autotune", "cfg")),
    "optim_cpu_offload": (("Gathering optimizer state", "it"), ("Offloading optimizer states to CPU", "it")),
    "state_dict_to_cpu": (
        ("Gathering full state dict", "it"),
        ("Copying params to CPU", "it"),
        ("full_tensor -> cpu", "param"),
    ),
    "param_cpu_offload": (
        ("Moving layers to CPU", "it"),
        ("Offloading params", "it"),
        ("Reloading params to GPU", "layer"),
    ),
    "nvme_swap": (("Swapping in", "it"), ("Reading partitions from NVMe", "it")),
}


def _total(desc: str, unit: str, rng: Random) -> int:
    """As many as the description says, or what is usual for the unit."""
    said = re.search(r"(?:Fetching|Upload) (\d+)|of-(\d+)", desc)
    if said and unit == "it":
        return int(said[1] or said[2])
    if unit in {"B"}:
        return rng.choice((4976698672, 4915916176, 9977291336))
    if "hard" in desc or unit in {"layers", "layer", "part", "cfg"}:
        return rng.choice((4, 8, 17, 30, 48, 61, 126, 163))
    large = unit in {"examples", "docs", "doc", "ba", "files", "param", "q"}
    return rng.choice((3120, 31250, 84013, 361884, 2871403) if large else (20, 63, 300, 800, 1319, 4000, 9210))


def bar(scene: Scene, cause: str, rank: int, onset: float, detection: float) -> bool:
    """A bar of the slow phase whose elapsed time nears the timeout; its last frame has no newline."""
    rng, world = scene.rng, scene.world
    choices = [pair for pair in _BARS.get(cause, ()) if scene.lines.usable(f"bar:{pair[0]}")]
    if not choices or rng.random() > 0.6:
        return False
    desc, unit = rng.choice(choices)
    total = _total(desc, unit, rng)
    share = rng.uniform(0.03, 0.95)
    span = detection - onset
    width = rng.choice((10, 10, 10, 10, 30, 80))
    frames = rng.choice((1, 1, 2, 3, 6, 10)) if scene.size != "long" else rng.randrange(3, 40)
    slowing = rng.choice((1.0, 1.0, 0.6))
    lead = rng.uniform(0, 6)
    for i in range(frames):
        elapsed = span * ((i + 1) / frames if frames < 4 or rng.random() < 0.99 else 1.0) - rng.uniform(0, 2)
        elapsed = max(1.0, elapsed - lead * (i == frames - 1))
        done = max(1, int(total * share * (elapsed / span) ** slowing))
        text = healthy.bar(desc, done, total, elapsed, unit, width)
        last = i == frames - 1
        scene.story.add(
            Record(
                time=onset + elapsed,
                lines=(text,),
                role="evidence",
                rank=rank,
                node=world.node_of(rank),
                channel="main" if rank == 0 else "rank",
                open=last and rng.random() < 0.75,
                strength=3 if last else 2,
                origin=f"bar:{desc}",
            )
        )
    return True
