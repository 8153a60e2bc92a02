"""From a job to an incident: a world is drawn, the cause acts, a person reports it, the truth is noted."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import cast

from train.inventory import Inventory, load
from train.simulate import desync, fabric, failed, late, layout, others, quiet, reporter, tracebacks, wellness
from train.simulate.gloo import make
from train.simulate.layout import Shown
from train.simulate.lines import Lines
from train.simulate.plan import MIX, Job, split_lines
from train.simulate.prefix import pick_dialect
from train.simulate.record import Notes, Record, Story, notes_of
from train.simulate.scene import Scene
from train.simulate.world import World, make_world

ACTS: dict[str, Callable[[Scene, str], None]] = {
    "straggler": late.act_straggler,
    "offload_latency": late.act_offload,
    "uneven_sharding": late.act_uneven,
    "desync": desync.act,
    "fabric_congestion": fabric.act,
    "rank_failure": failed.act,
    "other": others.act,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A finished incident: its neutral id, the text of `incident.json`, the log files by name, the corpus's notes."""

    id: str
    truth: str
    files: dict[str, str]
    notes: Notes


@cache
def inventory() -> Inventory:
    """The checkout's inventory, read once a process."""
    return load()


@cache
def lines_for(split: str) -> Lines:
    """The families that a split may print."""
    return split_lines(inventory(), split)


def build(job: Job) -> Incident:
    """Make one incident; the same job gives the same bytes."""
    if job.kind == "run":
        return _run(job)
    rng = Random(job.seed)
    world = build_world(rng, job)
    story = Story(label=job.label, cause=job.cause)
    scene = Scene(world=world, story=story, lines=lines_for(job.split), rng=rng, size=job.size, blind=job.blind)
    _act(scene, job)
    kept = _limit_chat(reporter.keep(story, world, rng, job.size))
    if not kept:
        kept = sorted(story.records, key=lambda record: record.time)[-3:]
    dialect = pick_dialect(world, rng)
    kept = layout.repeated(kept, world, rng, dialect.label)
    whole = _before(rng, world, story, kept)
    files = layout.lay_out(whole, world, rng, dialect)
    files, newline = reporter.damage(files, rng)
    texts = {file: newline.join(shown.text for shown in lines) + newline for file, lines in sorted(files.items())}
    truth = _truth(job, scene, kept, files, "".join(texts.values()))
    return _incident(job, truth, texts, notes_of(whole, job.label))


def _run(job: Job) -> Incident:
    """The whole log of a small run."""
    made = make.make(job.seed, job.label, job.cause, lines_for(job.split), train=job.split != "val", blind=job.blind)
    return _incident(job, made.truth, made.files, made.notes)


#: Faults inside one machine; every other transport fault needs two.
_INSIDE = frozenset({"p2p_acs_iommu", "nvlink_down", "nvswitch", "fabric_manager", "pcie_errors"})


def build_world(rng: Random, job: Job) -> World:
    """A world in which the cause can happen and its evidence can be printed."""
    inside = job.cause in _INSIDE and rng.random() < 0.85
    far = job.label == "fabric_congestion" and not inside and rng.random() < 0.95
    several = far or (job.label == "rank_failure" and rng.random() < 0.5)
    wanted = _wanted(job.cause, rng) if rng.random() < 0.85 else frozenset()
    for _ in range(40):
        world = make_world(
            rng,
            held=job.dialect,
            least=3 if job.label == "rank_failure" else 2,
            least_nodes=2 if several else 1,
        )
        if (not wanted or wanted & set(world.tags)) and not (inside and world.nodes > 1):
            break
    return world


def _wanted(name: str | None, rng: Random) -> frozenset[str]:
    """The tags that a cause needs; none if it happens anywhere or its frameworks are not simulated."""
    if name == "compile" and rng.random() < 0.35:
        return frozenset({"torchtitan", "megatron"})
    cause = inventory().cause(name) if name else None
    if cause is None or "any" in cause.frameworks:
        return frozenset()
    return frozenset(cause.frameworks)


def _act(scene: Scene, job: Job) -> None:
    if job.label == "no_timeout":
        quiet.act(scene)
    elif job.label == "undetermined" and (not job.blind or job.cause is None):
        _unknown(scene, job)
    else:
        assert job.cause is not None
        ACTS[job.label](scene, job.cause)


def _unknown(scene: Scene, job: Job) -> None:
    """Half are bare waits; the rest are worlds of another label without their decisive lines."""
    rng, story = scene.rng, scene.story
    if rng.random() < 0.5:
        others.act_unknown(scene)
        return
    scene.blind = True
    labels = [label for label in ACTS if label != "other"]
    label = rng.choices(labels, [MIX[label] for label in labels])[0]
    causes = [cause.id for cause in inventory().causes if cause.label == label]
    story.label = label
    ACTS[label](scene, rng.choice(causes))
    story.label, story.cause, story.initiating, story.alt_label = "undetermined", None, (), None


def _limit_chat(records: list[Record], most: int = 3500) -> list[Record]:
    return records if len(records) <= most else records[-most:]


def _before(rng: Random, world: World, story: Story, kept: list[Record]) -> list[Record]:
    """Sometimes an earlier attempt stands in the same file: a crash long before, then a restart."""
    if rng.random() > 0.03 or story.keep_whole or not kept:
        return kept
    shift = rng.uniform(2, 30) * 3600
    lines = tracebacks.crash(
        world,
        rng,
        tracebacks.cuda_oom(world, rng, 0) if rng.random() < 0.5 else tracebacks.any_error(world, rng),
    )
    first = min(record.time for record in kept)
    restart = rng.choice(
        (
            "=== restarting from latest checkpoint ===",
            "+ torchrun --nnodes 1 train.py --resume",
            "resubmitted, attempt 2",
            "[launcher] restart 1/3",
        )
    )
    earlier = [
        Record(time=first - shift, lines=lines, role="decoy", rank=0, prefix="exc", speaks="rank_failure"),
        Record(time=first - shift + 60, lines=(restart,), role="decoy", channel="driver"),
    ]
    return earlier + kept


def _incident(job: Job, truth: dict[str, object], texts: dict[str, str], notes: Notes) -> Incident:
    name = "i" + hashlib.sha256(job.seed.encode()).hexdigest()[:12]
    # A source of its own: what stands beside the run changes nothing in the run.
    files, moved = wellness.beside(texts, Random(f"{job.seed}/tables"))
    cited = wellness.shifted(list(cast("list[str]", truth["decisive_lines"])), moved)
    whole = {"schema_version": 1, "id": name, **truth, "decisive_lines": cited}
    content = json.dumps(whole, indent=1, ensure_ascii=False)
    return Incident(id=name, truth=content + "\n", files=files, notes=notes)


def _truth(job: Job, scene: Scene, kept: list[Record], files: dict[str, list[Shown]], text: str) -> dict[str, object]:
    world, story = scene.world, scene.story
    shown = {record.rank for record in kept if record.role == "wait" and record.rank is not None}
    waiting = [rank for rank in story.waiting if rank in shown]
    best = max((record.strength for record in kept), default=0)
    told = job.label not in {"undetermined", "no_timeout"} and best > 0
    initiating = _initiating(scene, kept, waiting, told)
    decisive = [
        f"{file}:{number}"
        for file, lines in sorted(files.items())
        for number, line in enumerate(lines, 1)
        if line.decisive
    ][:12]
    return {
        "label": job.label,
        "cause_id": story.cause if told else None,
        "cause": None,
        "initiating_ranks": initiating,
        "waiting_ranks": waiting or None if job.label != "no_timeout" else None,
        "world_size": _world_size(world, kept, text),
        "framework": world.framework,
        "launcher": world.launcher,
        "torch": world.torch.text,
        "collective": story.collective,
        "timeout_s": world.timeout_s,
        "decisive_lines": decisive if job.label != "undetermined" else [],
        "determinable_from_log": _determinable(job.label, best),
        "alt_label": story.alt_label,
        "hung": story.hung,
        "source": "simulated",
    }


def _determinable(label: str, best: int) -> str:
    if label == "undetermined":
        return "no"
    if label == "no_timeout":
        return "yes"
    return "yes" if best >= 3 else "partly" if best > 0 else "no"


def _initiating(scene: Scene, kept: list[Record], waiting: list[int], told: bool) -> list[int] | None:
    """The guilty ranks if a kept line of theirs shows them, or if every other rank is shown waiting."""
    world, story = scene.world, scene.story
    if not told or story.label in {"fabric_congestion", "other"} or not story.initiating:
        return None
    rest = set(range(world.size)) - set(story.initiating)
    implied = rest <= set(waiting) and len(waiting) > 0
    telling = [record for record in kept if record.strength >= 2 and record.rank in story.initiating]
    named = any(
        (record.channel == "main" and record.rank == 0)
        or (record.prefix == "exc" and world.hooked)
        or (record.prefix == "c10" and world.torch.rank >= 3)
        or re.search(rf"\brank[ =:_]?{record.rank}\b", " ".join(record.lines), re.I)
        for record in telling
    )
    labelled = bool(telling) and world.launcher in {"slurm", "mpirun", "files"}
    return sorted(story.initiating) if implied or named or labelled else None


def _world_size(world: World, kept: list[Record], text: str) -> int | None:
    ranks = {record.rank for record in kept if record.rank is not None and record.role in {"wait", "notify", "status"}}
    stated = re.search(rf"(world_size[=: ]+|nranks |MEMBER: \d+/|rank \d+/){world.size}\b", text)
    return world.size if stated or len(ranks) == world.size else None
