"""Ranks that take another way than the rest: each side waits in its own call, or one has left."""

from __future__ import annotations

from train.simulate.gloo import errors, stacks, waits
from train.simulate.gloo.run import Run, ready, start, steps
from train.simulate.gloo.side import from_inventory

_WAYS = {
    "fewer_batches_on_one_rank": "short",
    "uneven_inputs": "short",
    "resume_mismatch": "short",
    "early_stop_on_one_rank": "early",
    "rank_local_clock": "early",
    "rank0_only_collective": "main",
    "shape_mismatch": "size",
    "state_mismatch": "size",
    "checkpoint_plan_mismatch": "size",
    "skipped_step_on_one_rank": "skip",
    "order_mismatch": "order",
    "wait_cycle": "order",
    "wrong_group": "order",
}
#: Where the odd rank stands, and where the others do.
_PAIRS = (("backward", "forward"), ("extra", "backward"), ("clip", "backward"), ("metrics", "clip"))
_SKIPS = (
    "step {step}: loss is nan, skipping this batch",
    "non-finite gradient at step {step}, optimizer step skipped",
    "empty batch, continue",
    "batch {step} has no valid labels, skipped",
    "skip step {step}: overflow",
)
_STOPS = ("patience exhausted, stopping", "early stop at step {step}", "time budget used up, leaving the loop")
_DONES = (
    "epoch complete",
    "loader exhausted after {step} batches",
    "done, {step} steps",
    "finished training loop at step {step}",
    "no more batches, waiting for the others",
)


def desync(run: Run, cause: str) -> None:
    """One rank issues another collective than the rest, or none at all."""
    rng = run.rng
    way = _WAYS.get(cause, "branch")
    odd = 0 if way == "main" else rng.choice(run.ranks)
    run.story.initiating = (odd,)
    start(run)
    ready(run)
    steps(run, rng.randrange(2, 30 if run.voice.everyone else 90))
    run.now += 0.02
    if not run.blind and rng.random() < 0.2:
        from_inventory(run, "desync", cause, (odd,))
    if not run.blind and rng.random() < (0.3 if way in {"branch", "order"} else 0.06):
        _checked(run, odd)
    elif way == "branch" and run.world.framework == "DDP" and rng.random() < 0.5 and not run.blind:
        _unreduced(run, odd)
    elif (way == "size" or (way == "branch" and rng.random() < 0.2)) and not run.blind:
        _sizes(run, odd)
    else:
        _apart(run, odd, way)
    waits.agents(run)


def _apart(run: Run, odd: int, way: str) -> None:
    """Both sides wait, each in its own call; or the odd one has left."""
    rng = run.rng
    mine, theirs = {
        "short": ("final", waits.call_for(run, "data")),
        "early": ("final", waits.call_for(run, "data")),
        "main": (rng.choice(("evaluate", "metrics", "extra", "forward")), rng.choice(("barrier", "final", "backward"))),
        "skip": (rng.choice(("forward", "metrics")), rng.choice(("backward", "clip"))),
        "order": (rng.choice(("metrics", "clip")), rng.choice(("forward", "backward"))),
    }.get(way) or rng.choice(_PAIRS)
    words = {"short": _DONES, "early": _STOPS, "skip": _SKIPS}.get(way, ())
    if words and not run.blind and (odd in run.speakers or rng.random() < 0.5):
        run.say(odd, rng.choice(words).format(step=run.step), strength=3)
    if run.voice.everyone and way in {"short", "early", "skip"} and rng.random() < 0.5:
        _one_more(run, odd)
    rest = run.rest((odd,))
    if way in {"short", "early"} and rng.random() < 0.3:
        run.codes[odd] = 0
        waits.lose(run, rest, odd, "data", "closed")
        del run.codes[odd]
        return
    calls = {**dict.fromkeys(rest, theirs), odd: mine}
    if run.blind or rng.random() < 0.08:
        del calls[odd]
    waits.expire(run, calls, marks={} if run.blind else {odd: 2})


def _one_more(run: Run, odd: int) -> None:
    """The others print a step more than the odd one."""
    run.step += 1
    for rank in run.rest((odd,)):
        run.say(rank, f"step {run.step} begin", time=run.now + 0.02)


def _sizes(run: Run, odd: int) -> None:
    """A rank gets more bytes than it expects; it raises, its peers lose it."""
    rng, world = run.rng, run.world
    call = rng.choice(("gather", "metrics", "evaluate"))
    hit = rng.sample(run.ranks, rng.randrange(1, world.size))
    run.story.onset = run.now
    run.story.detection = run.now + 0.1
    stack = stacks.frames(world, run.names, rng, call)
    for rank in run.ranks:
        final = errors.size_differs(world, rng) if rank in hit else errors.lost(world, rng, hit[0])
        at = run.now + 0.1 + (rank not in hit) * 0.2 + rng.random() * 0.1
        run.raise_(rank, at, stacks.render(world, stack, final), strength=3 * (rank in hit))
        run.codes[rank] = 1
    run.story.waiting, run.story.collective = run.ranks, stacks.OPS[call]
    run.story.initiating = ()


def _unreduced(run: Run, odd: int) -> None:
    """DDP of one rank finds gradients missing from the step before; it raises and its peers lose it."""
    rng, world = run.rng, run.world
    indices = " ".join(str(i) for i in sorted(rng.sample(range(2, 90), rng.randrange(1, 5))))
    final = errors.unreduced(odd, indices)
    file = f"{world.site}/torch/nn/parallel/distributed.py"
    stack = stacks.frames(world, run.names, rng, "forward")[:5]
    stack.append((file, "_pre_forward", "if torch.is_grad_enabled() and self.reducer._rebuild_buckets():"))
    run.raise_(odd, run.now, stacks.render(world, stack, final), role="evidence", strength=3)
    run.codes[odd] = 1
    waits.lose(run, run.rest((odd,)), odd, "compute", "closed")


def _checked(run: Run, odd: int) -> None:
    """Checked collectives raise at once and name both calls."""
    rng, world = run.rng, run.world
    mine, theirs = rng.choice((("ALLREDUCE", "ALLGATHER"), ("BARRIER", "ALLREDUCE"), ("BROADCAST", "ALLGATHER")))
    run.story.onset, run.story.detection = run.now, run.now + 0.1
    for rank in run.ranks:
        call = "metrics" if rank == odd else "forward"
        other = rng.choice(run.rest((rank,))) if rank == odd else odd
        ops = (mine, theirs) if rank == odd else (theirs, mine)
        final = errors.mismatch(world, rng, rank, other, *ops)
        stack = stacks.frames(world, run.names, rng, call)
        run.raise_(rank, run.now + 0.1 + rng.random() * 0.2, stacks.render(world, stack, final), strength=3)
        run.codes[rank] = 1
    run.story.waiting, run.story.collective = run.ranks, theirs
