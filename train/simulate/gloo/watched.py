"""Waits that NCCL's watchdog ends: each waiting rank prints its call and counters, and aborts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from train.simulate import waiting
from train.simulate.collectives import Call
from train.simulate.gloo.run import Run
from train.simulate.gloo.works import work

_LAST_S = 1.0


def give_up(run: Run, calls: Mapping[int, str], marks: Mapping[int, int]) -> None:
    """The watchdog of every rank in `calls` prints its timeout; the others may be told of it.

    A mark of 2 or more says that this rank's call differs from the others': it and one of them become evidence.
    """
    story, world, rng = run.story, run.world, run.rng
    before = len(story.records)
    absent = [rank for rank in run.rest(tuple(calls)) if rng.random() < 0.35 and rank not in run.unrecorded]
    deep = rng.choice((0, 0, 0, 1, 3, 8))
    story.detection = waiting.watchdog(
        story, world, rng, sorted(calls), lambda rank: _call(run, rank, calls[rank], deep), run.now, notified=absent
    )
    made = [_call(run, rank, calls[rank], 0) for rank in sorted(calls)]
    story.collective, story.waiting = made[0].op, tuple(sorted(calls))
    odd = {rank for rank, mark in marks.items() if mark >= 2 and rank in calls}
    if odd and len({(call.op, call.numel_in) for call in made}) > 1:
        _mark(run, before, {*odd, next(rank for rank in sorted(calls) if rank not in odd)})
    run.codes.update(dict.fromkeys(rng.sample(sorted(calls), len(calls)), -6))


def last_word(run: Run) -> float:
    """Seconds from the detection to just after the last line of a rank that the watchdog ends."""
    times = [record.time for record in run.story.records if record.rank is not None and record.role != "evidence"]
    return max(times) - run.story.detection + _LAST_S


def _mark(run: Run, before: int, ranks: set[int]) -> None:
    records = run.story.records
    for i in range(before, len(records)):
        if records[i].role == "wait" and records[i].rank in ranks:
            records[i] = replace(records[i], strength=3)


def _call(run: Run, rank: int, call: str, deep: int) -> Call:
    made = work(run.world, call)
    return Call(
        op=made.op,
        numel_in=made.numel_in,
        numel_out=made.numel_out,
        group=run.world.groups[0],
        seq=run.number + run.stands[rank][1],
        ahead=deep,
    )
