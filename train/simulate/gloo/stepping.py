"""How the steps of a run go by: what each rank prints of them, and the innocent phases between."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from train.simulate.gloo.decoys import distract
from train.simulate.gloo.run import Run
from train.simulate.gloo.voices import step_text

#: Seconds, or an amount of work, by rank and step.
Extra = Callable[[int, int], float]


def steps(
    run: Run,
    count: int,
    *,
    extra: Extra | None = None,
    data: bool = False,
    load: Extra | None = None,
    note: Callable[[int], None] | None = None,
    strength: Callable[[int, int], int] | None = None,
) -> None:
    """Let `count` steps go by. `extra` seconds of a rank delay all; with `data` they pass in its loader.

    `load` is the amount of a rank's work relative to the usual; `note` prints more; `strength` marks step lines.
    """
    rng, world, voice = run.rng, run.world, run.voice
    first, odd = run.step + 1, rng.randrange(max(1, count))
    for step in range(first, run.step + count + 1):
        usual = world.step_s * _pace(rng, step)
        own = {rank: extra(rank, step) if extra else 0.0 for rank in run.ranks}
        longest = max(own.values())
        run.now += usual + longest
        run.step = step
        if step - first == odd:
            distract(run)
        if note:
            note(step)
        for rank in run.speakers if step % run.every == 0 else ():
            text = step_text(
                run.voice,
                rng,
                step=step,
                total=max(run.total, step + 1),
                spent=(usual + longest - (own[rank] if data and voice.apart else 0.0)) * _jitter(rng, step),
                data=rng.uniform(0, 0.004) + (own[rank] if data else 0.0),
                load=load(rank, step) if load else 1.0,
            )
            told = strength(rank, step) if strength else 0
            run.say(rank, text, time=run.now + rng.random() * 0.01, strength=told, tie="uncited" if told == 2 else "")
        _phases(run, step)


def _pace(rng: Random, step: int) -> float:
    """How long a step takes beside the usual one: the first warms up, and now and then one takes longer."""
    if step == 1:
        return rng.uniform(1.5, 8)
    return rng.uniform(0.9, 1.15) * (rng.uniform(1.3, 2) if rng.random() < 0.03 else 1.0)


def _jitter(rng: Random, step: int) -> float:
    """How far the times that ranks measure for one step lie apart; most in the first."""
    if step == 1:
        return rng.uniform(0.6, 1.3)
    return max(0.5, rng.gauss(1.0, 0.05)) * (rng.uniform(1.2, 1.9) if rng.random() < 0.04 else 1.0)


def unprinted(run: Run, ranks: tuple[int, ...]) -> None:
    """The last step lines of `ranks` never came out: they were thrown out, or died, before they could print them."""
    head = {rank: max((r.time for r in run.story.records if r.rank == rank), default=0.0) for rank in ranks}
    run.story.records[:] = [
        r for r in run.story.records if r.rank not in head or r.time < head[r.rank] or r.role != "chat" or r.strength
    ]


def _phases(run: Run, step: int) -> None:
    """Innocent evaluations and checkpoints on the way."""
    rng, voice = run.rng, run.voice
    for every, words in ((run.save_every, voice.save_words), (run.eval_every, voice.eval_words)):
        if every and step % every == 0:
            value = rng.uniform(0.2, 2.5)
            for text in words:
                run.now += rng.uniform(0.002, 0.2)
                for rank in run.speakers:
                    run.say(rank, text.format(step=step, loss=value))
