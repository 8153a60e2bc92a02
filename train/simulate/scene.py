"""One incident under construction: world, story, inventory, and the steps that all causes share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from train.simulate import (
    ambient,
    frames,
    healthy,
    nccl,
    raised,
    sidefiles,
    starting,
    teardown,
    tracebacks,
    undone,
    waiting,
)
from train.simulate.collectives import Call
from train.simulate.lines import Family, Lines
from train.simulate.record import Story
from train.simulate.spread import print_spread, spreads
from train.simulate.world import World

#: People report what else went wrong more often than the shares of the causes alone would have it.
_HOW_SHOWN = {"watchdog": 0.6, "blocking": 0.6, "stacks": 0.5, "gloo": 0.8, "store": 1.6, "monitored": 1.3}


@dataclass(slots=True, kw_only=True)
class Scene:
    """`size` is how much the reporter will keep; `blind` leaves out every decisive line."""

    world: World
    story: Story
    lines: Lines
    rng: Random
    size: str
    blind: bool = False

    def begin(self, onset: float, last_step: int | None = None, *, started: bool = True) -> None:
        """Healthy output up to the onset; without `started` only what precedes the first step."""
        world, rng = self.world, self.rng
        self.story.onset = onset
        self.story.collective = None
        if self.size != "short" or not started:
            starting.startup(
                self.story, world, rng, onset - (60 if not started else max(120, world.step * world.step_s))
            )
        if self.size == "short" and rng.random() < 0.1:
            starting.version(self.story, world, rng, onset - 101)
        if self.size == "short" and rng.random() < 0.1:
            starting.stated_size(self.story, world, rng, onset - 100)
        if (self.size == "long" and rng.random() < 0.35) or (not started and rng.random() < 0.15):
            shown = tuple(range(min(world.size, 8)))
            nccl.bringup(
                self.story,
                world,
                rng,
                onset - (30 if not started else max(60, world.step * world.step_s)),
                shown,
            )
        if started:
            self._steps(onset, world.step if last_step is None else last_step)
        ambient.noise(self, onset, started)
        ambient.phases(self, onset, started)

    def _steps(self, onset: float, last: int) -> None:
        rng = self.rng
        count = {
            "short": rng.randrange(0, 10),
            "medium": rng.randrange(10, 40),
            "long": int(120 * 12 ** rng.random()),
        }[self.size]
        every = rng.random() < 0.15 and self.world.size <= 16
        if every:
            count = max(1, count // self.world.size)
        healthy.steps(self.story, self.world, rng, onset - rng.uniform(0.02, 1.0), last, count, every_rank=every)

    def evidence(
        self,
        cause: str,
        ranks: tuple[int, ...],
        start: float,
        stop: float,
        *,
        count: int | None = None,
        repeat: bool = False,
    ) -> int:
        """Print evidence for `cause` on `ranks` between two times; returns the greatest strength."""
        if self.blind or not ranks:
            return 0
        rng, best = self.rng, 0
        wanted = count if count is not None else rng.choice((1, 1, 1, 2, 2, 3))
        main = 0 in ranks or self.story.label in {"fabric_congestion", "other", "uneven_sharding"}
        for family in self.lines.evidence(rng, self.story.label, cause, self.world, wanted, main=main):
            times = rng.randrange(2, 5) if repeat and _trending(family) and rng.random() < 0.4 else 1
            for i in range(times):
                at = start + (stop - start) * (rng.random() if times == 1 else (i + rng.random()) / times)
                self._speak(family, ranks, at)
            best = max(best, family.strength)
        return best

    def _speak(self, family: Family, ranks: tuple[int, ...], at: float) -> None:
        if spreads(family):
            print_spread(self, family, ranks, at)
            return
        rng, (at, long_s) = self.rng, self._timed(family, at)
        for rank in self._speakers(family, ranks):
            self.story.add(
                self.lines.record(
                    family,
                    rng,
                    self.world,
                    rank,
                    at + rng.random() * 0.05,
                    "evidence",
                    family.strength,
                    long_s,
                )
            )

    def _timed(self, family: Family, at: float) -> tuple[float, float | None]:
        """A line with a long duration comes that long after the onset; frames come after the wait."""
        rng, story, limit = self.rng, self.story, self.world.timeout_s
        if family.template.startswith('  File "'):
            return story.detection + rng.random() * 0.3, None
        if "{long" not in family.template:
            return at, None
        long_s = limit * rng.choice((rng.uniform(0.3, 0.98), rng.uniform(0.9, 1.0)))
        return min(story.onset + long_s, story.detection - 0.5), long_s

    def _speakers(self, family: Family, ranks: tuple[int, ...]) -> list[int]:
        world, rng = self.world, self.rng
        if family.channel in {"main", "driver", "launcher", "tool", "system"}:
            return [0 if family.channel == "main" else ranks[0]]
        if family.who == "all":
            return list(range(min(world.size, rng.choice((2, 4, 8)))))
        if family.who == "waiting":
            others = [rank for rank in range(world.size) if rank not in ranks]
            return rng.sample(others, min(len(others), rng.choice((1, 1, 2)))) if others else list(ranks[:1])
        return list(ranks[: rng.choice((1, 2, 4, 8))])

    def decoys(self, chance: float = 0.9) -> None:
        """Lines that seem to speak for another label and do not."""
        ambient.decoys(self, chance)

    def show_wait(
        self,
        ranks: Iterable[int],
        call_of: Callable[[int], Call],
        onset: float,
        *,
        kinds: dict[str, float],
        late: tuple[int, ...] = (),
        phase: str | None = None,
        telling: bool = True,
    ) -> float:
        """Show the waiting ranks in one of `kinds`; sets detection, waiting ranks and collective.

        With `phase`, a cause, stacks and tracebacks hold the frames of the phase that it holds up; they are
        evidence if `telling`.
        """
        rng, world, story = self.rng, self.world, self.story
        shown = tuple(sorted(ranks))
        # A heartbeat monitor may end the wait whatever its cause: no label is to be known by it alone.
        kinds = {"stuck": 3.0, **kinds} if "watchdog" in kinds else kinds
        kind = rng.choices(list(kinds), [_HOW_SHOWN.get(name, 1.0) * share for name, share in kinds.items()])[0]
        if not shown:
            shown = (0,)
        call = call_of(shown[0])
        before = len(story.records)
        told = [] if self.blind else frames.phase_frames(world, rng, phase)
        stack = self.wait_frames(call, told)
        notified = [rank for rank in late if rng.random() < 0.5]
        if kind == "watchdog":
            at = waiting.watchdog(story, world, rng, shown, call_of, onset, notified=notified, told=told)
            if told and rng.random() < 0.4:
                undone.after_watchdog(story, world, rng, rng.choice(shown), at, call, stack)
        elif kind == "store":
            at = raised.store(story, world, rng, [rank for rank in shown if rank] or shown, onset, stack)
        elif kind == "gloo":
            at = raised.gloo(story, world, rng, shown, onset, stack)
        elif kind == "monitored" and late and 0 not in late:
            at = raised.monitored(story, world, rng, late, onset, stack)
        elif kind == "stuck" and world.torch.rank >= 2:
            at = waiting.stuck(story, world, rng, shown, onset)
        elif kind == "gone":
            at = undone.gone(story, world, rng, shown, onset, stack)
        elif kind == "aborted":
            at = waiting.aborted(story, world, rng, shown, onset)
        elif kind == "stacks":
            at = self._stacks(shown, onset, stack)
        else:
            at = raised.blocking(story, world, rng, shown, call_of, onset, stack)
        story.detection, story.waiting, story.collective = at, shown, call.op
        if told and telling:
            frames.mark(story, told, before)
        return at

    def _stacks(self, ranks: tuple[int, ...], onset: float, stack: list[tracebacks.Frame]) -> float:
        at = onset + self.rng.uniform(0.2, 2) * self.world.timeout_s
        for i, rank in enumerate(ranks[: self.rng.randrange(1, 5)]):
            waiting.stack_dump(self.story, self.world, self.rng, rank, at + i, stack)
        self.story.hung = True
        return at

    def wait_frames(self, call: Call, told: list[tracebacks.Frame] | None = None) -> list[tracebacks.Frame]:
        """Frames of a rank that stands in `call`, through the frames `told` of a phase if there are any."""
        rng, world = self.rng, self.world
        meeting = call.op == "ALLREDUCE" and call.numel_in == 1
        between = told or (frames.neutral_frames(world, rng) if meeting else [])
        return tracebacks.outer(world, rng) + between + tracebacks.inner_wait(world, rng, call.op, meeting)

    def finish(self, codes: dict[int, int]) -> None:
        """Teardown after the detection, and what the wait itself broke."""
        if self.story.hung:
            return
        delay = 62 if self.world.torch.rank >= 7 and self.rng.random() < 0.7 else 2
        teardown.end(self.story, self.world, self.rng, self.story.detection + delay, codes)
        if self.rng.random() < (0.14 if self.story.label == "undetermined" else 0.07):
            ambient.broken_by_it(self)
        if self.rng.random() < 0.08:
            ambient.broken_links(self)
        if self.rng.random() < 0.02 and self.story.label not in {"straggler", "offload_latency"}:
            sidefiles.everyone_runs(self, self.story.detection - 5)
        elif self.rng.random() < 0.025 and self.story.label != "uneven_sharding":
            sidefiles.everyone_holds(self, self.story.detection - 5)
        if self.rng.random() < 0.25:
            self._ambient("collateral", self.story.detection + 2, self.story.detection + 40)
        if self.rng.random() < 0.15:
            self._ambient("symptom", self.story.onset + 5, self.story.detection - 0.5)

    def _ambient(self, role: str, start: float, stop: float) -> None:
        """Lines of a role that names no cause, on ranks that wait."""
        rng, world = self.rng, self.world
        ranks = self.story.waiting or tuple(range(world.size))
        for family in self.lines.of_role(rng, role, world, rng.choice((1, 1, 2))):
            at = rng.uniform(start, max(start, stop))
            shown, waited = "after" if role == "collateral" else "decoy", at - self.story.onset
            self.story.add(self.lines.record(family, rng, world, rng.choice(ranks), at, shown, 0, waited))

    def aborts(self, ranks: Iterable[int]) -> dict[int, int]:
        """Exit codes of ranks that their own watchdog aborted."""
        return {rank: -6 for rank in ranks}


def _trending(family: Family) -> bool:
    """A weak line with numbers, printed by a process: it may come again at the next steps."""
    measured = any(slot in family.template for slot in ("{step", "{medium", "{float", "{short", "{pct", "{gib"))
    return family.strength <= 2 and measured and family.channel in {"rank", "main"} and not family.follow
