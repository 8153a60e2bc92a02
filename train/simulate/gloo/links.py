"""Links that fail between healthy ranks: everybody waits, or everybody loses a connection."""

from __future__ import annotations

from train.simulate.gloo import errors, stacks, waits
from train.simulate.gloo.run import Run, ready, start, steps
from train.simulate.gloo.side import from_inventory

_UNREACHABLE = frozenset({"wrong_interface", "firewall", "cni", "dns", "node_unreachable"})


def fabric(run: Run, cause: str) -> None:
    """The link fails while all ranks are there: everybody waits, or everybody loses a connection."""
    rng, world = run.rng, run.world
    start(run)
    if cause in _UNREACHABLE and rng.random() < 0.45 and not run.blind:
        _unconnected(run)
        waits.agents(run)
        return
    ready(run)
    steps(run, rng.randrange(4, 40))
    if rng.random() < 0.5:
        _slower(run)
    run.now += world.step_s * 0.5
    if not run.blind and rng.random() < 0.45:
        from_inventory(run, "fabric_congestion", cause, run.ranks[:: world.per_node])
    call = waits.call_for(run, "compute")
    if rng.random() < 0.6:
        told = dict.fromkeys(run.ranks, 1) if world.nodes > 1 and not run.blind else {}
        waits.expire(run, dict.fromkeys(run.ranks, call), mixed=True, marks=told)
    else:
        _dropped(run, call)
    waits.agents(run)


def _slower(run: Run) -> None:
    """All ranks get slower together."""
    base, ramp = run.step, run.world.timeout_s * run.rng.uniform(0.01, 0.08)
    steps(run, run.rng.randrange(2, 8), extra=lambda rank, step: ramp * (step - base))


def _dropped(run: Run, call: str) -> None:
    """Connections between the nodes are reset or run out; each rank blames one of the other side."""
    rng, world = run.rng, run.world
    kind = rng.choice(("reset", "reset", "closed", "timeout"))
    run.story.onset = run.now
    run.story.detection = run.now + (world.timeout_s * rng.uniform(0.3, 0.9) if kind == "timeout" else 0.2)
    told = 0 if run.blind else 1 if kind == "closed" else 2
    for rank in run.ranks:
        far = [peer for peer in run.ranks if world.node_of(peer) != world.node_of(rank)] or list(run.rest((rank,)))
        final = errors.lost(world, rng, rng.choice(far), kind)
        if kind == "timeout" and rng.random() < 0.5:
            final = errors.timed_out(world, rng)
        stack = stacks.frames(world, run.names, rng, call)
        at = run.story.detection + rng.uniform(0, 0.4)
        run.raise_(rank, at, stacks.render(world, stack, final), strength=told)
        run.codes[rank] = 1
    run.story.waiting, run.story.collective = run.ranks, stacks.OPS[call]


def _unconnected(run: Run) -> None:
    rng, world = run.rng, run.world
    script = f"{world.root}/{world.script}"
    file = f"{world.site}/torch/distributed/distributed_c10d.py"
    stack = [
        (script, "<module>", f"{run.names.main}()"),
        (script, run.names.main, 'dist.init_process_group("gloo")'),
        (file, "init_process_group", "default_pg, _ = _new_process_group_helper("),
        (file, "_new_process_group_helper", "backend_class = ProcessGroupGloo("),
    ]
    run.story.onset, run.story.detection = run.now, run.now + world.timeout_s
    final = errors.no_mesh(world, rng)
    for rank in run.ranks:
        run.raise_(rank, run.story.detection + rng.random(), stacks.render(world, stack, final), strength=3)
        run.codes[rank] = 1
    run.story.waiting = run.ranks
