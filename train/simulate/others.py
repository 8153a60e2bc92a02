"""Timeouts with a nameable cause outside the six labels, and incidents that nobody can explain."""

from __future__ import annotations

from dataclasses import replace

from train.simulate import c10d, healthy, monitor, sidefiles, waiting
from train.simulate.collectives import Call, first_call, meeting_call, training_call
from train.simulate.record import Record
from train.simulate.scene import Scene

_FIRST = ("device_binding", "launch_order", "library_deadlock", "rendezvous", "jit_lock")
_STUCK = ("gil_deadlock", "driver_hang", "teardown_of_finished_run", "cuda_graph_bug")


def act(scene: Scene, cause: str) -> None:
    """`other`: the first call never works, the watchdog itself is blocked, or the run had finished."""
    rng, world, story = scene.rng, scene.world, scene.story
    onset = world.start
    finished = cause == "teardown_of_finished_run"
    first = cause in _FIRST and rng.random() < 0.7
    scene.begin(onset, world.steps if finished else None, started=not first)
    call: Call = (
        first_call(rng, world)
        if first
        else meeting_call(rng, world, early=False)
        if finished
        else training_call(rng, world)
    )
    if cause == "device_binding" and rng.random() < 0.7:
        call = replace(call, op="ALLREDUCE", numel_in=1, numel_out=1, ahead=0)
    kinds = {
        "watchdog": 70.0,
        "stuck": (200.0 if finished else 80.0) if cause in _STUCK else 3.0,
        "blocking": 5.0,
        "aborted": 4.0,
    }
    if cause == "rendezvous":
        kinds = {"store": 70.0, "gloo": 20.0, "watchdog": 15.0}
    ranks = (
        call.group.members
        if rng.random() < 0.6
        else tuple(sorted(rng.sample(call.group.members, max(1, len(call.group.members) // 2))))
    )
    detection = scene.show_wait(ranks, lambda rank: call, onset, kinds=kinds)
    if not scene.blind:
        built = (finished and rng.random() < 0.5 and _finished(scene, onset)) or (
            cause == "device_binding" and rng.random() < 0.5 and _guessed(scene, onset)
        )
        scene.evidence(
            cause,
            (0, *range(1, world.size)) if finished else ranks[:1],
            onset - rng.uniform(1, 30),
            onset + 0.3 * (detection - onset),
            count=rng.choice((0, 1)) if built else rng.choice((1, 1, 2)),
        )
    if cause == "gil_deadlock" and world.torch.rank >= 2 and not scene.blind:
        text = (
            c10d.head(world, ranks[0], detection + 1, 1300, rng)
            + "Could not acquire GIL within 300 ms on exit, possible GIL induced hang"
        )
        story.add(
            Record(
                time=detection + 1,
                lines=(text,),
                role="evidence",
                rank=ranks[0],
                node=world.node_of(ranks[0]),
                prefix="c10",
                strength=3,
            )
        )
    scene.decoys()
    scene.finish(scene.aborts(ranks[:16]))


_DONE = (
    "Training complete.",
    "Training finished. Saving final model to {root}/output",
    "train_runtime = 5:12:41, train_samples_per_second = 41.2",
    "`Trainer.fit` stopped: `max_steps={steps}` reached.",
    "max_steps reached, exiting training loop",
    "[done] final checkpoint written",
    "Finished training after {steps} steps, best val loss 1.832",
    "All epochs done. Bye!",
    "results saved to {root}/results.json",
    "{{'train_runtime': 18231.4, 'train_samples_per_second': 3.2, 'train_steps_per_second': 0.1, "
    "'train_loss': 1.183, 'epoch': 3.0}}",
    "Done. Total time: 6h 12m",
)


def _finished(scene: Scene, onset: float) -> bool:
    rng, world = scene.rng, scene.world
    usable = [text for text in _DONE if scene.lines.usable(f"done:{text}")]
    if not usable:
        return False
    if rng.random() < 0.5:
        desc, unit = rng.choice((("", "it"), ("", "it"), ("Train", "it"), ("Evaluate", "it"), ("Epoch 3", "it")))
        total = world.steps if desc != "Evaluate" else rng.choice((8, 11, 25, 100))
        bar = healthy.bar(desc, total, total, total * min(world.step_s, 3.0), unit)
        scene.story.add(Record(time=onset - 6, lines=(bar,), role="evidence", rank=0, channel="main", strength=1))
    for i, text in enumerate(rng.sample(usable, min(len(usable), rng.choice((1, 1, 2))))):
        scene.story.add(
            Record(
                time=onset - 4 + i,
                lines=(text.format(root=world.root, steps=world.steps),),
                role="evidence",
                rank=0,
                channel="main",
                prefix="user",
                strength=3,
                origin=f"done:{text}",
            )
        )
    return True


def _guessed(scene: Scene, onset: float) -> bool:
    """c10d says that it guessed the device of a barrier."""
    rng, world, story = scene.rng, scene.world, scene.story
    group = Call(op="", numel_in=0, numel_out=0, group=world.groups[0], seq=1)
    for rank in range(min(world.size, rng.choice((1, 2, 8)))):
        text = (
            f"{c10d.head(world, rank, onset - 1, 4115 if world.torch.rank > 5 else 3262, rng, 'W')}"
            f"{c10d.group_head(world, group, rank)} using GPU "
            f"{world.local(rank) if rng.random() < 0.7 else 0} to perform barrier as devices used "
            "by this process are currently unknown. "
            "This can potentially cause a hang if this rank to GPU mapping is incorrect. Specify "
            "device_ids in barrier() to force use of a particular device, or call "
            "init_process_group() with a device_id."
        )
        story.add(
            Record(
                time=onset - 1 + 0.01 * rank,
                lines=(text,),
                role="evidence",
                rank=rank,
                node=world.node_of(rank),
                prefix="c10",
                strength=2,
            )
        )
    return True


def act_unknown(scene: Scene) -> None:
    """Only waiting lines: some ranks of some run wait in some call, and nothing says why."""
    rng, world, story = scene.rng, scene.world, scene.story
    onset = world.start
    draw = rng.random()
    early = draw < 0.38
    call = (
        first_call(rng, world)
        if draw < 0.2
        else meeting_call(rng, world, early=early)
        if draw < 0.5
        else training_call(rng, world)
    )
    if rng.random() < 0.07:
        scene.begin(onset)
        story.detection = waiting.phrases(story, world, rng, (rng.randrange(world.size),), onset)
        return
    scene.begin(onset, started=not early)
    members = call.group.members
    count = len(members) if rng.random() < 0.55 else rng.randrange(1, len(members) + 1)
    ranks = tuple(sorted(rng.sample(members, count)))
    scene.show_wait(
        ranks,
        lambda rank: call,
        onset,
        kinds={
            "watchdog": 95.0,
            "gloo": 2.0,
            "store": 3.0 if early else 0.0,
            "blocking": 4.0,
            "aborted": 3.0,
            "stuck": 4.0,
            "stacks": 2.0,
        },
    )
    if rng.random() < 0.1 and world.torch.rank >= 1:
        _all_joined(scene, call, ranks)
    if call.seq == 1 and world.nodes == 1 and rng.random() < 0.08:
        sidefiles.topology(scene, story.detection + 200, across=False, strength=0)
    scene.decoys(0.75)
    scene.finish(scene.aborts(ranks[:16]))


def _all_joined(scene: Scene, call: Call, ranks: tuple[int, ...]) -> None:
    """A desync report that lists every rank: then nobody is missing."""
    rng, world, story = scene.rng, scene.world, scene.story
    places = ", ".join(str(place) for place in range(len(call.group.members)))
    parts = [
        " - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:",
        f"   - [{places}] joined but didn't finish collective #{call.seq} (count from 1)",
        " - Snapshot of ranks' latest states:",
        f"   #{call.seq} started ranks:",
        f"     [{places}] started {call.op}",
    ]
    for rank in ranks[:3]:
        lines = monitor.desync_report(world, call, rank, story.detection + 0.01, parts, rng)
        story.add(
            Record(
                time=story.detection + 0.01,
                lines=tuple(lines),
                role="status",
                rank=rank,
                node=world.node_of(rank),
                prefix="c10",
            )
        )
