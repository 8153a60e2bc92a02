"""The end of a run: waiting ranks raise, their peers lose them, the agent ends what is left."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from train.simulate import teardown
from train.simulate.gloo import errors, stacks, watched
from train.simulate.gloo.run import Run
from train.simulate.gloo.works import order
from train.simulate.record import Record
from train.simulate.tracebacks import Frame

#: Where the others wait while a rank is late in a place, with weights.
_CALLS: dict[str, dict[str, int]] = {
    "start": {"init": 6, "forward": 3, "barrier": 1},
    "data": {"forward": 5, "backward": 2, "prefetch": 1, "clip": 1, "barrier": 1, "metrics": 1},
    "compute": {"forward": 4, "backward": 4, "prefetch": 2, "clip": 1, "metrics": 1},
    "optim": {"forward": 5, "backward": 1, "prefetch": 1, "clip": 2, "metrics": 1},
    "save": {"save": 4, "forward": 3, "backward": 1, "barrier": 2},
    "eval": {"evaluate": 4, "gather": 3, "barrier": 2, "forward": 2},
    "metrics": {"metrics": 5, "forward": 3, "barrier": 1},
}


def call_for(run: Run, place: str) -> str:
    """The call in which the others stand; DDP talks in backward rather than in forward."""
    options = _CALLS[place]
    call = run.rng.choices(list(options), list(options.values()))[0]
    return "backward" if call == "forward" and run.world.framework == "DDP" and run.rng.random() < 0.7 else call


def expire(
    run: Run,
    calls: Mapping[int, str],
    *,
    mixed: bool = False,
    marks: Mapping[int, int] | None = None,
    ahead: Collection[int] = (),
) -> None:
    """Ranks give up when the timeout is over; late noticing ones only see that a peer has gone.

    `calls` maps each waiting rank to its call; `marks` gives strengths; `mixed` draws send and recv evenly. Ranks
    `ahead` stand one collective past the others: theirs was complete for them alone.
    """
    run.story.onset, run.story.detection = run.now, run.now + run.world.timeout_s
    run.number = _number(run)
    run.stands = {rank: (call, int(rank in ahead)) for rank, call in calls.items()}
    if run.nccl:
        watched.give_up(run, calls, marks or {})
    else:
        _raise(run, calls, marks or {}, mixed)


def _number(run: Run) -> int:
    """The number of the collective in which the ranks stand."""
    done = run.step * len(order(run.world))
    return done + run.rng.randrange(1, 12) if run.step else run.rng.choice((1, 1, 2, 3))


def _raise(run: Run, calls: Mapping[int, str], marks: Mapping[int, int], mixed: bool) -> None:
    rng, world, story = run.rng, run.world, run.story
    turn = rng.sample(sorted(calls), len(calls))
    story.collective = stacks.OPS[calls[turn[0]]]
    collateral = len(turn) > 1 and rng.random() < 0.35
    traces = {rank: stacks.frames(world, run.names, rng, calls[rank]) for rank in turn}
    shown = []
    for i, rank in enumerate(turn):
        at = story.detection + (rng.uniform(0, 0.05) if i == 0 else rng.uniform(0.02, 0.5))
        strength = marks.get(rank, 0)
        if i and not strength and len(turn) > 3 and rng.random() < 0.07:
            continue
        way = rng.choice(("recv", "send")) if mixed else None
        final = errors.timed_out(world, rng, way)
        if i and collateral and rng.random() < 0.5:
            at, final = at + 0.1, errors.lost(world, rng, turn[0])
        lines = stacks.render(world, traces[rank], final)
        own = _own(traces, rank, lines) if strength >= 2 else frozenset()
        run.raise_(rank, at, lines, strength=strength if own or strength < 2 else 1, cited=own)
        shown.append(rank)
    story.waiting = tuple(sorted(shown))
    _exits(run, shown)


def _own(traces: Mapping[int, list[Frame]], rank: int, lines: tuple[str, ...]) -> frozenset[str]:
    """The lines of frames in which this rank stands and no other does."""
    common = {(file, name) for other, stack in traces.items() if other != rank for file, name, _ in stack}
    own = [(file, name) for file, name, _ in traces[rank] if (file, name) not in common]
    return frozenset(
        line
        for line in lines
        for file, name in own
        if line.startswith(f'  File "{file}"') and line.endswith(f", in {name}")
    )


def _exits(run: Run, shown: list[int]) -> None:
    """The agent sees the first that exits on each node; it ends the others, some of which were done already."""
    for node in range(run.world.nodes):
        mine = [rank for rank in shown if run.world.node_of(rank) == node]
        for i, rank in enumerate(mine):
            run.codes[rank] = 1 if i == 0 or run.rng.random() < 0.5 else -15


def lose(run: Run, ranks: tuple[int, ...], peer: int, place: str, kind: str = "") -> None:
    """Ranks lose `peer` at once, or are ended by the agent before they notice."""
    rng, world, story = run.rng, run.world, run.story
    call, shown = call_for(run, place), list[int]()
    story.onset, story.detection = run.now, run.now + rng.uniform(0.02, 0.3)
    for rank in ranks:
        if len(shown) and rng.random() < 0.2:
            continue
        stack = stacks.frames(world, run.names, rng, call)
        final = errors.lost(world, rng, peer, kind)
        run.raise_(rank, story.detection + rng.uniform(0, 0.6), stacks.render(world, stack, final))
        shown.append(rank)
        run.codes.setdefault(rank, 1 if rng.random() < 0.4 else -15)
    story.waiting, story.collective = tuple(sorted(shown)), stacks.OPS[call]


def outlive(run: Run, dead: tuple[int, ...], code: int) -> None:
    """The agent of the dead rank's node reports `code` at once and ends its ranks; those elsewhere wait to the end.

    Without a code the node has gone and says nothing.
    """
    node = run.world.node_of(dead[0])
    gone = run.world.ranks_on(node)
    if code and not run.blind:
        run.codes = {dead[0]: code}
        run.story.detection = run.now
        agents(run, told=0 if code == 1 else 3)
    run.codes.clear()
    run.unrecorded.update(gone)
    expire(run, dict.fromkeys(run.rest(gone), call_for(run, "data")))
    agents(run, dead_nodes=(node,))


def agents(run: Run, *, delay: float = 0.1, told: int = 0, dead_nodes: tuple[int, ...] = ()) -> None:
    """The report of each node's agent; ranks without an exit code got SIGTERM. `told` is its strength.

    A node where no rank has failed says nothing.
    """
    world = run.world
    delay += watched.last_word(run) if run.nccl and run.stands else 0.0
    for node in range(world.nodes):
        mine = {rank: code for rank, code in run.codes.items() if world.node_of(rank) == node}
        if node in dead_nodes or not mine:
            continue
        for rank in world.ranks_on(node):
            mine.setdefault(rank, -15)
        ordered = sorted(mine.items(), key=lambda item: item[1] == -15)
        codes = dict([next(iter(mine.items())), *[item for item in ordered if item[0] != next(iter(mine))]])
        _report(run, node, run.story.detection + 0.7 + delay + node * 0.3, codes, told)


def _report(run: Run, node: int, at: float, codes: dict[int, int], told: int) -> None:
    rng, world = run.rng, run.world
    first = next(iter(codes))
    head = teardown.elastic_head(world, node, at, "W", world.torch.elastic_signal)
    sent = tuple(f"{head}Sending process {world.pids[rank]} closing signal SIGTERM" for rank in codes if rank != first)
    binary = world.site.split("/lib/")[0] + "/bin/python"
    failed = (
        f"{teardown.elastic_head(world, node, at + 0.1, 'E', world.torch.elastic_failed)}failed (exitcode: "
        f"{codes[first]}) local_rank: {world.local(first)} (pid: {world.pids[first]}) of binary: {binary}"
    )
    record = Record(time=at, lines=sent, role="launch", node=node, channel="launcher")
    if sent:
        run.story.add(record)
    body = (failed, *teardown.agent_trace(world, rng), *teardown.table(world, codes, at))
    run.story.add(replace(record, time=at + 0.1, lines=body, strength=told))
