"""Ranks that take another way than the rest: each side waits in its own call, or one has left."""

from __future__ import annotations

from dataclasses import replace

from train.simulate import tracebacks
from train.simulate.combos import FRAMEWORKS
from train.simulate.gloo import errors, stacks, waits
from train.simulate.gloo.run import Run, ready, start
from train.simulate.gloo.side import from_inventory
from train.simulate.gloo.stepping import steps
from train.simulate.tracebacks import Frame

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
#: Causes of which DDP itself complains at the next step.
_UNREDUCED = frozenset({"data_dependent_branch", "unused_params"})
#: Where the odd rank stands, and where the others do.
_PAIRS = (
    ("backward", "forward"),
    ("backward", "prefetch"),
    ("prefetch", "backward"),
    ("extra", "backward"),
    ("clip", "backward"),
    ("metrics", "clip"),
)
_SKIPS = (
    "step {step}: loss is nan, skipping this batch",
    "non-finite gradient at step {step}, optimizer step skipped",
    "empty batch, continue",
    "batch {step} has no valid labels, skipped",
    "skip step {step}: overflow",
    "batch {step} dropped, its loss is inf",
    "bad batch at {step} ignored on this rank",
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
    if cause in _UNREDUCED and rng.random() < 0.4:
        run.world = replace(run.world, framework="DDP", tags=FRAMEWORKS["DDP"][1])
    start(run)
    ready(run)
    steps(run, rng.randrange(2, 30 if run.voice.everyone else 90))
    run.now += 0.02
    if not run.blind and rng.random() < 0.2:
        from_inventory(run, "desync", cause, (odd,))
    _part(run, odd, way, cause)
    if not run.stands or not run.nccl or run.codes:
        waits.agents(run)


def _part(run: Run, odd: int, way: str, cause: str) -> None:
    """Draw how the ranks come apart: checked, thrown out by an exception, by a size, or each in its own wait."""
    rng = run.rng
    if run.blind:
        _apart(run, odd, way)
    elif not run.nccl and rng.random() < (0.2 if way in {"branch", "order"} else 0.06):
        _checked(run, odd)
    elif (not run.nccl or run.world.nodes > 1) and rng.random() < 0.5 and _thrown_out(run, odd, cause):
        return
    elif not run.nccl and (way == "size" or (way == "branch" and rng.random() < 0.2)):
        _sizes(run, odd)
    else:
        _apart(run, odd, way)


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
        if way == "skip" and rng.random() < 0.4:
            mine = _skips_on(run, odd)
    if run.voice.everyone and way in {"short", "early", "skip"} and rng.random() < 0.5:
        _one_more(run, odd)
    rest = run.rest((odd,))
    if way in {"short", "early"} and not run.nccl and rng.random() < 0.3:
        run.codes[odd] = 0
        waits.lose(run, rest, odd, "data", "closed")
        del run.codes[odd]
        return
    calls = {**dict.fromkeys(rest, theirs), odd: mine}
    if run.blind or rng.random() < 0.08:
        del calls[odd]
    waits.expire(run, calls, marks={} if run.blind else {odd: 2})


def _skips_on(run: Run, odd: int) -> str:
    """The odd rank skips every batch from here to the end, alone, and waits where the run is to end."""
    form = run.rng.choice(_SKIPS)
    for i in range(run.rng.randrange(3, 25)):
        run.say(odd, form.format(step=run.step + 1 + i), time=run.now + 0.01 * i, strength=3)
    run.say(odd, run.rng.choice(("done", "loop finished", "all steps done")), time=run.now + 0.3)
    return "final"


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


def _thrown_out(run: Run, odd: int, cause: str) -> bool:
    """A check of the framework throws the odd rank out; its peers lose it, or wait for it on another node."""
    rng, world = run.rng, run.world
    found = run.lines.raised("desync", cause, world)
    if world.framework == "DDP" and cause in _UNREDUCED:
        stack, final, origin = *_unreduced(run, odd), ""
    elif found:
        family = rng.choice(found)
        record = run.lines.record(family, rng, world, odd, run.now, "evidence")
        stack = [*tracebacks.outer(world, rng)[:2], (run.names.helper, run.names.step, "self.check(batch)")]
        final, origin = "\n".join(record.lines), family.id
    else:
        return False
    told = frozenset(final.split("\n"))
    run.raise_(odd, run.now, stacks.render(world, stack, final), role="evidence", strength=3, cited=told, origin=origin)
    if run.nccl:
        waits.outlive(run, (odd,), 1)
        run.codes.clear()
    else:
        run.codes[odd] = 1
        waits.lose(run, run.rest((odd,)), odd, "compute", rng.choice(("closed", "closed", "reset")))
    return True


def _unreduced(run: Run, odd: int) -> tuple[list[Frame], str]:
    """DDP of one rank finds gradients missing from the step before: where it stands, and what it says."""
    rng, world = run.rng, run.world
    indices = " ".join(str(i) for i in sorted(rng.sample(range(2, 90), rng.randrange(1, 5))))
    file = f"{world.site}/torch/nn/parallel/distributed.py"
    stack = stacks.frames(world, run.names, rng, "forward")[:5]
    stack.append((file, "_pre_forward", "if torch.is_grad_enabled() and self.reducer._rebuild_buckets():"))
    return stack, errors.unreduced(odd, indices)


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
