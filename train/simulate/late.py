"""Straggler, offload latency and uneven sharding: every rank issues the same calls, and some come later."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from train.simulate import ambient, clock, healthy, sidefiles
from train.simulate.bars import bar
from train.simulate.collectives import Call, first_call, meeting_call, stage_call, training_call, widen
from train.simulate.record import Record
from train.simulate.scene import Scene
from train.simulate.skew import skew

_EARLY = (
    "tokenising",
    "dataset_prep",
    "model_load",
    "model_download",
    "model_init",
    "checkpoint_download",
    "compile",
    "jit_build",
    "gpu_init",
    "resume_skip",
    "staging",
    "pinned_memory",
    "aio_config",
    "device_map",
    "ranks_per_node",
    "host_mem_pressure",
)
_MEETING = (
    "checkpoint",
    "evaluation",
    "generation",
    "reward",
    "remote_server",
    "rank0_extra_work",
    "logger_upload",
    "profiler",
    "state_dict",
    "tokenising",
    "dataset_prep",
    "model_load",
    "model_download",
    "object_store",
    "shared_memory_transfer",
)
_RANK0 = (
    "checkpoint_on_rank_0",
    "checkpoint_upload",
    "evaluation",
    "tokenising",
    "dataset_prep",
    "rank0_extra_work",
    "logger_upload",
    "model_download",
    "state_dict_to_cpu",
    "model_load",
    "device_map",
)


#: Frameworks with pipeline stages that exchange activations from the first step on.
_STAGED = frozenset({"torchtitan", "Megatron", "NeMo"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """When and where the late ranks are held up."""

    early: bool
    meeting: bool
    late: tuple[int, ...]
    staged: bool = False


def _matches(cause: str, words: tuple[str, ...]) -> bool:
    return any(word in cause for word in words)


def plan(scene: Scene, cause: str) -> Plan:
    """Draw who is late and at which kind of call the others stand."""
    rng = scene.rng
    early = _matches(cause, _EARLY) and rng.random() < 0.75
    staged = cause == "compile" and early and scene.world.framework in _STAGED and rng.random() < 0.6
    meeting = (early and rng.random() < 0.8) or (_matches(cause, _MEETING) and rng.random() < 0.85)
    return Plan(early=early, meeting=meeting, late=_late_ranks(rng, scene, cause), staged=staged)


def _late_ranks(rng: Random, scene: Scene, cause: str) -> tuple[int, ...]:
    world = scene.world
    first = 0.85 if _matches(cause, _RANK0) else scene.lines.main_share(cause)
    first = 1.0 if "rank_0" in cause or "rank0" in cause else first
    if rng.random() < first:
        return (0,)
    node = rng.randrange(world.nodes)
    whole_node = world.nodes > 1 and rng.random() < 0.3
    if whole_node:
        return world.ranks_on(node)
    return (rng.randrange(world.size),)


def _call(scene: Scene, made: Plan) -> Call:
    rng, world = scene.rng, scene.world
    if made.staged:
        return stage_call(rng, world)
    if made.meeting:
        return meeting_call(rng, world, early=made.early)
    return first_call(rng, world) if made.early else training_call(rng, world)


_KINDS = {
    "watchdog": 46.0,
    "gloo": 16.0,
    "blocking": 8.0,
    "monitored": 4.0,
    "aborted": 2.5,
    "stacks": 2.5,
    "gone": 5.0,
}


def act_straggler(scene: Scene, cause: str) -> None:
    """The late rank is busy elsewhere; the others stand in the next collective."""
    _act(
        scene,
        cause,
        plan(scene, cause),
        repeat=_matches(
            cause,
            (
                "slow",
                "throttle",
                "starved",
                "data_loading",
                "gc",
                "alloc",
                "pcie",
                "ecc",
                "power",
                "recompile",
            ),
        ),
    )


def act_offload(scene: Scene, cause: str) -> None:
    """The late rank waits for host memory."""
    _act(scene, cause, plan(scene, cause), repeat=True)


def _act(scene: Scene, cause: str, made: Plan, repeat: bool) -> None:
    rng, world, story = scene.rng, scene.world, scene.story
    onset = world.start
    call = widen(world, _call(scene, made), made.late)
    members = call.group.members
    late = tuple(rank for rank in made.late if rank in members) or (members[0],)
    others = tuple(rank for rank in members if rank not in late) or members
    scene.begin(onset, started=not made.early)
    story.initiating = late
    kinds = dict(_KINDS)
    if made.early and late == (0,):
        kinds["store"] = 34.0
        kinds["watchdog"] = 50.0
    if not made.meeting and not made.early:
        kinds = {"watchdog": 88.0, "blocking": 5.0, "aborted": 4.0, "stacks": 3.0}
    if late == (0,):
        kinds.pop("monitored", None)
    phase = cause if rng.random() < 0.55 else None
    detection = scene.show_wait(others, lambda rank: call, onset, kinds=kinds, late=late, phase=phase)
    told = not scene.blind and _held_up(scene, cause, made, late[0], onset, detection)
    before = onset - (world.step_s * rng.randrange(1, 30) if repeat else rng.uniform(0.5, 30))
    until = onset + (detection - onset) * rng.choice((0.01, 0.2, 0.6, 0.95))
    scene.evidence(cause, late, before, until, count=rng.choice((0, 0, 1)) if told else None, repeat=repeat)
    scene.decoys()
    scene.finish(scene.aborts(others[:16]))


def _held_up(scene: Scene, cause: str, made: Plan, rank: int, onset: float, detection: float) -> bool:
    """What shows the late rank at work: a bar, a begin without an end, a table of processes or cards."""
    if _matches(cause, _LAST) and scene.rng.random() < 0.18:
        _last_step(scene, onset)
    rng, middle = scene.rng, onset + (detection - onset) * scene.rng.uniform(0.3, 0.95)
    if made.staged:
        _cold_compile(scene, onset)
        return True
    if bar(scene, cause, rank, onset, detection):
        return True
    told = rng.random() < 0.4 and ambient.unpaired(scene, cause, rank, onset + rng.uniform(0.0, 2.0))
    if rng.random() < 0.35 and sidefiles.processes(scene, cause, rank, middle):
        told = True
    if rng.random() < 0.06 and scene.world.per_node > 1:
        sidefiles.utilisation(scene, (rank,), middle, 1)
    return told


#: Causes that often hold the main process up after the last step of an epoch or of the run.
_LAST = ("checkpoint_on_rank_0", "evaluation", "checkpoint_upload", "generation")


def _last_step(scene: Scene, onset: float) -> None:
    """A full bar and a saved checkpoint: the steps are over, the run is not."""
    rng, world = scene.rng, scene.world
    total = rng.choice((63, 260, 500, world.steps))
    desc = rng.choice(("", "Train", "Epoch 3", "S0E0", "Training"))
    text = healthy.bar(desc, total, total, total * min(world.step_s, 140.0))
    saved = rng.choice(("  [ckpt] saved -> {p}", "saved {p}", "checkpoint written: {p}", ""))
    lines = (text, *((saved.format(p=f"{world.root}/runs/step_{total}"),) if saved else ()))
    scene.story.add(Record(time=onset - 1, lines=lines, role="context", rank=0, channel="main"))


def _cold_compile(scene: Scene, onset: float) -> None:
    """Every stage compiles at its first step; nobody says so again."""
    world, rng = scene.world, scene.rng
    if scene.lines.strict:
        return  # these wordings are training's own
    text = rng.choice(
        (
            "Compiling each TransformerBlock with torch.compile",
            "torch.compile: cold cache, compiling stage module",
            "compiling model with inductor (mode=max-autotune), first step will be slow",
        )
    )
    for rank in range(min(world.size, 8)):
        at = onset - 8 + rng.random() * 0.1
        text_of = text
        if world.framework == "torchtitan":
            text_of = f"[titan] {clock.comma(world.shown(world.node_of(rank), at))} - root - INFO - {text}"
        scene.story.add(
            Record(
                time=at,
                lines=(text_of,),
                role="evidence",
                rank=rank,
                node=world.node_of(rank),
                strength=2,
                tie="compile",
                origin="text:compile",
            )
        )


def act_uneven(scene: Scene, cause: str) -> None:
    """Some ranks hold more than the others, step after step, until one step is too much."""
    rng, world, story = scene.rng, scene.world, scene.story
    onset = world.start
    heavy = _heavy(scene, cause)
    call = training_call(rng, world) if rng.random() < 0.8 else meeting_call(rng, world, early=rng.random() < 0.4)
    early = call.seq < 8
    call = widen(world, call, heavy)
    members = call.group.members
    others = tuple(rank for rank in members if rank not in heavy) or members
    scene.begin(onset, started=not early)
    story.initiating = heavy
    detection = scene.show_wait(
        others,
        lambda rank: call,
        onset,
        kinds={"watchdog": 85.0, "blocking": 5.0, "aborted": 5.0, "stacks": 3.0},
        late=heavy,
    )
    built = not scene.blind and rng.random() < 0.45 and skew(scene, cause, heavy, onset, detection)
    start = onset - world.step_s * rng.randrange(2, 60) - 5
    scene.evidence(
        cause,
        heavy,
        start,
        onset + (detection - onset) * 0.3,
        count=rng.choice((0, 1)) if built else rng.choice((1, 2, 2)),
        repeat=True,
    )
    if rng.random() < 0.35:
        story.alt_label = "straggler" if rng.random() < 0.7 else "desync"
    scene.decoys()
    scene.finish(scene.aborts(others[:16]))


def _heavy(scene: Scene, cause: str) -> tuple[int, ...]:
    rng, world = scene.rng, scene.world
    if "pipeline" in cause and world.size >= 4:
        stage = max(1, world.size // rng.choice((2, 4)))
        return tuple(range(world.size - stage, world.size)) if rng.random() < 0.7 else tuple(range(stage))
    if _matches(cause, ("mixed_gpus", "ranks_per_node")) and world.nodes > 1:
        return world.ranks_on(rng.randrange(world.nodes))
    if cause == "device_map":
        return (0,)
    return (rng.choice((0, world.size - 1, rng.randrange(world.size))),)
