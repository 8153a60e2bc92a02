"""Links that fail between healthy ranks: everybody waits, or everybody loses a connection."""

from __future__ import annotations

from train.simulate import c10d
from train.simulate.gloo import errors, stacks, waits
from train.simulate.gloo.run import Run, ready, start
from train.simulate.gloo.side import from_inventory
from train.simulate.gloo.stepping import steps, unprinted
from train.simulate.tracebacks import Frame

_UNREACHABLE = frozenset({"wrong_interface", "firewall", "cni", "dns", "node_unreachable"})


def fabric(run: Run, cause: str) -> None:
    """The link fails while all ranks are there: everybody waits, or everybody loses a connection."""
    rng, world = run.rng, run.world
    start(run)
    if cause in _UNREACHABLE and rng.random() < 0.85 and not run.blind and not run.nccl:
        _unconnected(run)
        return
    ready(run)
    steps(run, rng.randrange(4, 40))
    draw = rng.random()
    if draw < 0.35:
        _slower(run)
    elif draw < 0.55:
        _stalled(run)
    run.now += world.step_s * 0.5
    if run.voice.everyone and rng.random() < 0.25:
        unprinted(run, tuple(rng.sample(run.ranks, rng.randrange(1, world.size))))
    if not run.blind and rng.random() < 0.45:
        from_inventory(run, "fabric_congestion", cause, run.ranks[:: world.per_node])
    call = waits.call_for(run, "compute")
    if run.nccl or rng.random() < 0.5:
        _all_wait(run, call)
    else:
        _dropped(run, call)
    waits.agents(run)


def _all_wait(run: Run, call: str) -> None:
    """Everybody stands in a call; those for which the last one was just complete stand in the one after it."""
    rng, told = run.rng, {}
    if run.world.nodes > 1 and not run.blind:
        told = dict.fromkeys(run.ranks, 1)
    apart = rng.random() < 0.5
    ahead = [rank for rank in run.ranks if apart and rng.random() < 0.5]
    after = waits.call_for(run, "compute")
    calls = {rank: after if rank in ahead else call for rank in run.ranks}
    waits.expire(run, calls, mixed=True, marks=told, ahead=ahead)


def _stalled(run: Run) -> None:
    """One step, or two, takes nearly as long as the timeout or longer, for all ranks alike; bytes trickle on."""
    rng = run.rng
    stall = run.world.timeout_s * rng.uniform(0.5, 1.6)
    steps(run, rng.choice((1, 1, 2)), extra=lambda rank, step: stall)


def _slower(run: Run) -> None:
    """All ranks get slower together."""
    base, ramp = run.step, run.world.timeout_s * run.rng.uniform(0.01, 0.08)
    steps(run, run.rng.randrange(2, 8), extra=lambda rank, step: ramp * (step - base))


def _dropped(run: Run, call: str) -> None:
    """Connections between the nodes are reset or run out; each rank blames one of the other side."""
    rng, world = run.rng, run.world
    kind = rng.choice(("reset", "reset", "closed", "timeout", "abort"))
    other = rng.choice(("reset", "abort")) if kind in {"reset", "abort"} and rng.random() < 0.5 else kind
    run.story.onset = run.now
    run.story.detection = run.now + (world.timeout_s * rng.uniform(0.3, 0.9) if kind == "timeout" else 0.2)
    # A peer that dies resets its connections too: only an abort or a lapse on the way speaks for the way.
    told = 0 if run.blind else 1 if kind in {"closed", "reset"} else 2
    for rank in run.ranks:
        far = [peer for peer in run.ranks if world.node_of(peer) != world.node_of(rank)] or list(run.rest((rank,)))
        final = errors.lost(world, rng, rng.choice(far), kind if world.node_of(rank) == 0 else other)
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
    stack: list[Frame] = [
        (script, "<module>", f"{run.names.main}()"),
        (script, run.names.main, 'dist.init_process_group("gloo")'),
        (file, "init_process_group", "default_pg, _ = _new_process_group_helper("),
        (file, "_new_process_group_helper", "backend_class = ProcessGroupGloo("),
    ]
    finals = errors.no_mesh(world, rng)
    # Where each node has an error of its own, that of the second comes at once: it has no way at all.
    for node in sorted(range(world.nodes), reverse=True):
        at_once = node > 0 and len(finals) > 1
        run.story.onset = run.now
        run.story.detection = run.now + (rng.uniform(0.1, 3) if at_once else world.timeout_s)
        _refused(run, node, stack, finals[node % len(finals)])
        waits.agents(run)
        run.codes.clear()
    run.story.waiting = run.ranks if run.voice.everyone else ()


def _refused(run: Run, node: int, stack: list[Frame], final: str) -> None:
    """The ranks of a node raise `final` while the process group is set up."""
    rng, world = run.rng, run.world
    for rank in world.ranks_on(node):
        at = run.story.detection + rng.random()
        lines = stacks.render(world, stack, final)
        if "connectFullMesh" in final and world.torch.rank >= 8:
            head = c10d.head(world, rank, at, 67, rng, "E", "ProcessGroupGloo.cpp").split("]:", 1)[1]
            lines = (head + final.split(": ", 1)[1], *lines)
        # The hook that puts the rank in front is not there before the process group is.
        run.add(rank, at, lines, role="wait", strength=3, tie="\n".join((lines[0], final)))
        run.codes[rank] = 1
