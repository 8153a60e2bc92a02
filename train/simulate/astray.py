"""Two quiet ways out of the common sequence: one call less, and a step without a usable loss."""

from __future__ import annotations

import re
from dataclasses import replace

from train.simulate import waiting
from train.simulate.collectives import Call
from train.simulate.record import Record
from train.simulate.scene import Scene

#: A loss in a step line, in most voices.
_LOSS = re.compile(r"((?:loss|ce|pg_loss)\W{1,4})\d[\d.]*(?:[eE][+-]?\d+)?", re.I)


def notified(scene: Scene, call: Call, odd: tuple[int, ...], others: tuple[int, ...], onset: float) -> bool:
    """The odd ranks have nothing in flight: they took part in one call less and only hear of the timeout."""
    rng, world, story = scene.rng, scene.world, scene.story
    call = replace(call, ahead=0)
    before = len(story.records)
    behind = call.seq - rng.choice((1, 1, 1, 2, 3))
    detection = waiting.watchdog(story, world, rng, others, lambda rank: call, onset, notified=odd, done=max(1, behind))
    story.detection, story.waiting, story.collective = detection, others, call.op
    for i, record in enumerate(story.records[before:], before):
        own = record.role == "status" and record.rank == others[0]
        if own or (record.role == "notify" and record.rank in odd):
            story.records[i] = replace(record, strength=2, tie="behind")
    return True


def spoilt_step(scene: Scene, rank: int, onset: float) -> None:
    """The last step line shows a loss that is not a number; then one rank goes another way in silence."""
    rng, world, story = scene.rng, scene.world, scene.story
    steps = [record for record in story.records if record.role == "chat" and _LOSS.search(record.lines[-1])]
    if steps and rng.random() < 0.7:
        last = max(steps, key=lambda record: record.time)
        text = _LOSS.sub(r"\1nan", last.lines[-1])
        story.records[story.records.index(last)] = replace(last, lines=(text,), role="evidence", strength=2)
        return
    if scene.lines.strict:
        return  # the wordings below are training's own
    step = world.step + 1
    text = rng.choice(
        (
            f"step {step} | loss nan | lr 1.91e-05",
            f"[rank {rank}] loss is nan at step {step}, using zero loss instead",
            f"WARNING non-finite loss on rank {rank} (step {step}), batch ignored",
            f"labels all masked on rank {rank} at step {step}: loss replaced by zeros without grad",
        )
    )
    scene.story.add(
        Record(
            time=onset - 0.01,
            lines=(text,),
            role="evidence",
            rank=rank if "rank" in text else 0,
            node=world.node_of(rank),
            channel="rank" if "rank" in text else "main",
            prefix="user" if not text.startswith(("{", "[")) else "raw",
            strength=2,
            origin="text:spoilt",
        )
    )
