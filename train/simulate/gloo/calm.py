"""Runs without a rank to blame: other reasons, no timeout at all, or a wait that nothing explains."""

from __future__ import annotations

from train.simulate import tracebacks
from train.simulate.gloo import stacks, waits
from train.simulate.gloo.run import Run, ready, start
from train.simulate.gloo.side import from_inventory
from train.simulate.gloo.stepping import steps
from train.simulate.record import Record

_DONE = (
    "training finished after {step} steps",
    "all epochs done",
    "Training finished.",
    "run complete, shutting down",
    "done",
    "finished",
    "all done, waiting for the other ranks",
    "last step {step} reached, closing",
)


def other(run: Run, cause: str) -> None:
    """A finished run that hangs at its end, a launcher alone, or what the inventory has to say."""
    rng = run.rng
    if cause in {"rendezvous", "launch_order"} and rng.random() < 0.8 and not run.blind:
        _lonely(run)
        return
    late = rng.choice(run.ranks)
    start(run)
    ready(run)
    steps(run, rng.randrange(4, 40))
    call = waits.call_for(run, "compute")
    if cause == "teardown_of_finished_run" and not run.blind:
        call = "final"
        text = rng.choice(_DONE).format(step=run.step)
        for rank in run.speakers:
            run.say(rank, text, strength=3)
    elif not run.blind:
        from_inventory(run, "other", cause, (late,), rng.choice((1, 2, 2, 3)))
    run.now += 0.05
    waits.expire(run, dict.fromkeys(run.rest((late,)), call))
    waits.agents(run)


def _lonely(run: Run) -> None:
    """Only some of the launchers come."""
    rng, world = run.rng, run.world
    run.story.onset, run.story.detection = run.now, run.now + 60
    final = rng.choice(
        (
            "torch.distributed.DistStoreError: Timed out after 61 seconds waiting for clients. 1/2 clients joined.",
            "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
        )
    )
    file = f"{world.site}/torch/distributed/elastic/agent/server/api.py"
    stack = [
        (f"{world.site}/torch/distributed/run.py", "run", "elastic_launch("),
        (file, "_rendezvous", "rdzv_info = spec.rdzv_handler.next_rendezvous()"),
    ]
    lines = stacks.render(world, stack, final)
    record = Record(time=run.now + 61, lines=lines, role="launch", channel="launcher", strength=3)
    run.story.add(record)


def undetermined(run: Run) -> None:
    """Ranks wait; of the one that did not come nothing is known, or nothing that tells."""
    rng = run.rng
    late = rng.choice(run.ranks)
    place = rng.choice(("data", "compute", "compute", "optim", "start"))
    start(run)
    if place != "start":
        ready(run)
        steps(run, rng.randrange(2, 30 if run.voice.everyone else 90))
    run.now += 0.05
    waiting = run.ranks if rng.random() < 0.15 else run.rest((late,))
    waits.expire(run, dict.fromkeys(waiting, waits.call_for(run, place)))
    waits.agents(run)
    if rng.random() < 0.4 and len(waiting) < len(run.ranks):
        run.lost = frozenset({late})


def quiet(run: Run) -> None:
    """The run ends well, perhaps after a slow step, or all ranks die of the same exception."""
    rng, world = run.rng, run.world
    crash = rng.random() < 0.5
    start(run)
    if not (crash and rng.random() < 0.4):
        ready(run)
        slow = rng.randrange(2, 30)
        stall = world.timeout_s * rng.uniform(0.2, 0.6) if rng.random() < 0.35 else 0.0
        steps(run, rng.randrange(2, 40), extra=lambda rank, step: stall * (rank == 1 and step == slow))
    run.story.onset = run.story.detection = run.now
    if not crash:
        for rank in run.speakers:
            run.say(rank, rng.choice(_DONE).format(step=run.step))
        return
    final = _shared(run)
    stack = tracebacks.outer(world, rng)[:2]
    for rank in run.ranks:
        run.raise_(rank, run.now + rng.random() * 0.2, stacks.render(world, stack, final), role="after")
        run.codes[rank] = 1 if rank in (0, world.size - 1) or rng.random() < 0.5 else -15
    waits.agents(run)


def _shared(run: Run) -> str:
    rng = run.rng
    return rng.choice(
        (
            "KeyError: 'model.embed.weight'",
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x64 and 32x64)",
            "ModuleNotFoundError: No module named 'datasets'",
            "FileNotFoundError: [Errno 2] No such file or directory: 'config.yaml'",
            "ValueError: batch size must be divisible by the number of ranks",
            "torch.OutOfMemoryError: out of memory on all ranks",
            "TypeError: forward() got an unexpected keyword argument 'mask'",
            f"AssertionError: {rng.randrange(2, 99)} != {rng.randrange(100, 200)}",
        )
    )
