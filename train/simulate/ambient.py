"""What a run prints beside its steps: one or two voices, phases that begin and end, harmless look-alikes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from train.simulate import nccl, tracebacks
from train.simulate.lines import Family
from train.simulate.record import Record

if TYPE_CHECKING:
    from train.simulate.scene import Scene


def noise(scene: Scene, onset: float, started: bool) -> None:
    """Harmless lines before the onset, from few voices."""
    rng, world = scene.rng, scene.world
    count = {
        "short": rng.choice((0, 0, 0, 1, 1, 2)),
        "medium": rng.randrange(1, 9),
        "long": rng.randrange(6, 60),
    }[scene.size]
    voices = [family for family in scene.lines.voices(rng, world) if not _is_step(family)]
    span = max(60.0, world.step_s * 300) if started else 90.0
    once = {family.id for family in voices if "{float" not in family.template or rng.random() < 0.4}
    said: set[str] = set()
    for family in [rng.choice(voices) for _ in range(count)] if voices else []:
        # A line without a measured number is a line of the start: it comes once.
        if family.id in said & once:
            continue
        said.add(family.id)
        at = onset - (rng.uniform(1, 60) if scene.size == "short" else rng.uniform(0.5, span))
        for rank in _printers(scene, family):
            scene.story.add(scene.lines.record(family, rng, world, rank, at + rng.random() * 0.2, "chat"))


def _is_step(family: Family) -> bool:
    """A step line in some voice: a run has one voice, and this world has chosen its own."""
    return "{loss}" in family.template or "{step}" in family.template


def _printers(scene: Scene, family: Family) -> list[int]:
    if family.who == "all" and family.channel == "rank":
        return list(range(min(scene.world.size, 8)))
    if family.channel == "rank" and "{rank}" in family.template and scene.rng.random() < 0.4:
        return list(range(min(scene.world.size, 4)))
    return [scene.rng.randrange(scene.world.size) if family.channel == "rank" else 0]


def phases(scene: Scene, onset: float, started: bool) -> None:
    """Phases that end before the onset: begin and end of each, in order, seconds apart."""
    rng, world = scene.rng, scene.world
    count = {
        "short": int(rng.random() < 0.18),
        "medium": rng.choice((0, 0, 1, 1, 2)),
        "long": rng.randrange(0, 6),
    }[scene.size]
    pairs = [(begin, ends) for begin, ends in scene.lines.phases(world) if ends]
    for begin, ends in rng.sample(pairs, min(len(pairs), count)):
        took = rng.choice((0.3, 1.5, 4.0, 12.0)) * rng.uniform(0.5, 1.6)
        at = onset - took - rng.uniform(0.5, max(40.0, world.step_s * 40) if started else 60.0)
        _pair(scene, begin, rng.choice(ends), at, took)


def _pair(scene: Scene, begin: Family, end: Family, at: float, took: float) -> None:
    rng, world = scene.rng, scene.world
    same = scene.lines.place(rng)
    each = begin.channel == "rank" and end.channel == "rank" and rng.random() < 0.4
    for rank in range(min(world.size, 4)) if each else (0,):
        late = rng.random() * 0.1
        for family, time in ((begin, at + late), (end, at + took + late)):
            scene.story.add(scene.lines.record(family, rng, world, rank, time, "chat", given=same))


#: What the name or text of a phase must hold to be the one in which a cause holds a rank up.
_HELD_UP: dict[str, tuple[str, ...]] = {
    "checkpoint_on_rank_0": ("sav", "ckpt", "consolidat", "export"),
    "checkpoint_storage": ("sav", "ckpt"),
    "checkpoint_upload": ("upload",),
    "evaluation": ("eval", "valid", "final test", "inference"),
    "tokenising": ("tok", "dataset map", "converting"),
    "dataset_prep": ("dataset", "index", "data pipeline"),
    "model_load": ("reading pretrained", "loading", "restoring"),
    "model_download": ("fetching",),
    "generation": ("rollout phase", "sampling demo", "generat"),
    "reward": ("scoring",),
    "remote_server": ("rollout server", "weight sync"),
    "rank0_only_collective": ("sav", "state dict"),
    "rank0_extra_work": ("k-means", "final test"),
    "compile": ("compiling train", "torchdynamo", "cuda graph"),
    "jit_build": ("extension module", "fused kernels"),
    "profiler": ("profil",),
    "param_cpu_offload": ("offload",),
    "optim_cpu_offload": ("optimizer state off",),
    "state_dict_to_cpu": ("state dict", "full model stat"),
    "nvme_swap": ("aio",),
}


def unpaired(scene: Scene, cause: str, rank: int, at: float) -> bool:
    """The begin of the phase that holds `rank` up, whose end never comes; False if none fits."""
    words = _HELD_UP.get(cause, ())
    found = [
        begin
        for begin, _ in scene.lines.phases(scene.world)
        if (rank == 0 or begin.channel == "rank")
        and any(word in f"{begin.id} {begin.template}".lower() for word in words)
    ]
    if not found:
        return False
    record = scene.lines.record(scene.rng.choice(found), scene.rng, scene.world, rank, at, "evidence", 2)
    scene.story.add(record)
    return True


def decoys(scene: Scene, chance: float) -> None:
    """Lines that seem to speak for another label: settings, an hour before, on all ranks, or after."""
    rng, story = scene.rng, scene.story
    if rng.random() > chance * (0.85 if scene.size == "short" else 1.0):
        return
    borrowed = scene.size != "short" and story.label != "undetermined"
    count = rng.choice((1, 1, 2, 3)) if scene.size != "short" else 1
    for family in scene.lines.decoys(rng, story.label, scene.world, count, borrowed=borrowed):
        if family.channel in {"system", "tool"} and rng.random() < 0.6:
            continue
        _harmless(scene, family)


def _harmless(scene: Scene, family: Family) -> None:
    """Put a look-alike where it means nothing: long overcome, on every rank, or on a waiting rank after.

    What says that all is well means nothing even as the last word of the rank that did not come.
    """
    rng, story, world = scene.rng, scene.story, scene.world
    run = max(60.0, min(5400.0, world.step * world.step_s))
    shared = family.label in {"straggler", "offload_latency"} and family.channel == "rank"
    place = rng.choice(("start", "before", "near", "last", "last", "all_along"))
    if family.role == "evidence":
        place = rng.choice(("before", "before", "everywhere" if shared else "before", "after"))
    at = {
        "start": story.onset - run - rng.uniform(5, 50),
        "before": story.onset - run * rng.uniform(0.3, 0.9) - 20,
        "near": story.onset - rng.uniform(1, min(300.0, run)),
        "last": story.onset - rng.uniform(0.2, 15.0),
        "all_along": story.onset - rng.uniform(0.2, 15.0),
        "everywhere": story.onset - rng.uniform(1, 20) * max(world.step_s, 10),
        "after": story.detection + rng.uniform(2, 30),
    }[place]
    for rank in _hosts(scene, family, place):
        story.add(scene.lines.record(family, rng, world, rank, at + rng.random(), "decoy"))


def _hosts(scene: Scene, family: Family, place: str) -> list[int]:
    world, waiting = scene.world, scene.story.waiting
    if place == "everywhere" or (place == "all_along" and family.channel == "rank"):
        return list(range(min(world.size, 8)))
    if family.channel == "main":
        return [0]
    if place == "last" and scene.story.initiating:
        return [scene.rng.choice(scene.story.initiating)]
    if place == "after" and waiting:
        return [scene.rng.choice(waiting)]
    return [scene.rng.randrange(world.size)]


#: Errors that waiting ranks print because the run is being taken down.
_BROKEN = (
    "RuntimeError: DataLoader worker (pid 40122) exited unexpectedly",
    "BrokenPipeError: [Errno 32] Broken pipe",
    "EOFError",
    "ConnectionResetError: [Errno 104] Connection reset by peer",
    "RuntimeError: CUDA error: unspecified launch failure",
    "RuntimeError: DataLoader worker (pid(s) 3391, 3392) exited unexpectedly",
)


def broken_links(scene: Scene) -> None:
    """A rank that is taken down loses its peers: what the transport says after the detection means nothing."""
    rng, world, story = scene.rng, scene.world, scene.story
    if not story.waiting or world.nodes == 1:
        return
    rank = rng.choice(story.waiting)
    peer = rng.choice([node for node in range(world.nodes) if node != world.node_of(rank)])
    at = story.detection + rng.uniform(1, 20)
    if rng.random() < 0.3:
        place, text = nccl.completion(world, rng, peer, rng.choice((5, 5, 12)))
    else:
        port = rng.randrange(30000, 60000)
        place = f"misc/socket.cc:{rng.choice((49, 57, 58, 789))}"
        text = f"socketProgress: Connection closed by remote peer {world.ips[peer]}<{port}>"
    lines = nccl.warn(world, rank, at, place, text, nccl.chain(rng, 6, False), rng)
    record = Record(
        time=at,
        lines=tuple(lines),
        role="decoy",
        rank=rank,
        node=world.node_of(rank),
        prefix="c10",
        speaks="fabric_congestion",
    )
    story.add(record)


def broken_by_it(scene: Scene) -> None:
    """A waiting rank prints an error of its own after the detection: the timeout made it."""
    rng, world, story = scene.rng, scene.world, scene.story
    if not story.waiting:
        return
    rank = rng.choice(story.waiting)
    text = tracebacks.cuda_oom(world, rng, world.local(rank)) if rng.random() < 0.3 else rng.choice(_BROKEN)
    record = Record(
        time=story.detection + rng.uniform(2, 9),
        lines=tracebacks.crash(world, rng, text),
        role="decoy",
        rank=rank,
        node=world.node_of(rank),
        prefix="exc",
        speaks="rank_failure",
    )
    story.add(record if rng.random() < 0.8 else replace(record, lines=record.lines[-1:]))
