"""What a run prints on its way that seems to speak for another label: it is overcome, the run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from train.simulate.lines import Family

if TYPE_CHECKING:
    from train.simulate.gloo.run import Run

#: How many runs hold such a line at all.
_SHARE = 0.8


def distract(run: Run) -> None:
    """Print one or two look-alikes of other labels at the current time, once a run."""
    rng, label = run.rng, run.story.label
    if run.distracted:
        return
    run.distracted = True
    if rng.random() > _SHARE:
        return
    borrowed = label not in {"undetermined", "no_timeout"}
    for family in run.lines.decoys(rng, label, run.world, rng.choice((1, 2, 2)), borrowed=borrowed):
        if family.channel in {"rank", "main"}:
            _print(run, family)


def _print(run: Run, family: Family) -> None:
    rng = run.rng
    rank = 0 if family.channel == "main" or not run.voice.everyone else rng.choice(run.ranks)
    record = run.lines.record(family, rng, run.world, rank, run.now, "decoy")
    everywhere = run.voice.everyone and rng.random() < 0.3 and family.channel == "rank"
    for printer in run.ranks if everywhere else (rank,):
        if record.prefix == "user":
            run.say(printer, "\n".join(record.lines), origin=family.id, said=record.said, speaks=record.speaks)
        else:
            run.add(
                printer, run.now, record.lines, role="decoy", origin=family.id, said=record.said, speaks=record.speaks
            )
