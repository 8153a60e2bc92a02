"""One incident under construction: world, story, inventory, and the steps that all causes share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from train.simulate import healthy, nccl, raised, teardown, tracebacks, waiting
from train.simulate.collectives import Call
from train.simulate.lines import Family, Lines
from train.simulate.record import Record, Story
from train.simulate.world import World


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
            healthy.startup(
                self.story, world, rng, onset - (60 if not started else max(120, world.step * world.step_s))
            )
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
        self._noise(onset, started)

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
        healthy.steps(
            self.story, self.world, rng, onset - rng.uniform(0.02, 1.0), last, count, every_rank=every
        )

    def _noise(self, onset: float, started: bool) -> None:
        rng = self.rng
        count = {
            "short": rng.choice((0, 0, 1, 2, 3)),
            "medium": rng.randrange(2, 14),
            "long": rng.randrange(10, 80),
        }[self.size]
        palette = _palette(
            rng, self.lines.noise(rng, self.world, 4 + count // 4), 2 if self.size == "short" else 4
        )
        for family in [rng.choice(palette) for _ in range(count)] if palette else []:
            early = rng.random() < 0.6 or not started
            at = onset - (
                rng.uniform(5, 60)
                if early and self.size == "short"
                else rng.uniform(0.5, max(60.0, self.world.step_s * 300))
            )
            ranks = self._printers(family)
            for rank in ranks:
                self.story.add(
                    self.lines.record(family, rng, self.world, rank, at + rng.random() * 0.2, "chat")
                )

    def _printers(self, family: Family) -> list[int]:
        if family.who == "all" and family.channel == "rank":
            return list(range(min(self.world.size, 8)))
        return [self.rng.randrange(self.world.size) if family.channel == "rank" else 0]

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
        for family in self.lines.evidence(rng, self.story.label, cause, self.world, wanted):
            times = rng.randrange(2, 5) if repeat and _trending(family) and rng.random() < 0.4 else 1
            for i in range(times):
                at = start + (stop - start) * (rng.random() if times == 1 else (i + rng.random()) / times)
                at, long_s = self._timed(family, at)
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
            best = max(best, family.strength)
        return best

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

    def decoys(self, chance: float = 0.62) -> None:
        """Lines that seem to speak for another label: settings, long before, everywhere, after."""
        rng, story, world = self.rng, self.story, self.world
        if rng.random() > chance:
            return
        for family in self.lines.decoys(
            rng,
            story.label,
            world,
            rng.choice((1, 1, 2, 3)),
            borrowed=self.size != "short" and story.label != "undetermined",
        ):
            self._harmless(family)

    def _harmless(self, family: Family) -> None:
        rng, story, world = self.rng, self.story, self.world
        shared = family.label in {"straggler", "offload_latency"}
        place = (
            rng.choice(("before", "before", "everywhere" if shared else "before", "after"))
            if family.role == "evidence"
            else rng.choice(("start", "start", "before", "near"))
        )
        at = {
            "start": story.onset - min(600.0, world.step * world.step_s) - 50,
            "before": story.onset - rng.uniform(3, 40) * 3600,
            "near": story.onset - rng.uniform(1, 300),
            "everywhere": story.onset - rng.uniform(1, 40) * max(world.step_s, 20),
            "after": story.detection + rng.uniform(2, 30),
        }[place]
        ranks = (
            list(range(min(world.size, 8)))
            if place == "everywhere" and family.channel == "rank"
            else [rng.randrange(world.size)]
        )
        for rank in ranks:
            self.story.add(self.lines.record(family, rng, world, rank, at + rng.random(), "decoy"))

    def show_wait(
        self,
        ranks: Iterable[int],
        call_of: Callable[[int], Call],
        onset: float,
        *,
        kinds: dict[str, float],
        late: tuple[int, ...] = (),
    ) -> float:
        """Show the waiting ranks in one of `kinds`; sets detection, waiting ranks and collective."""
        rng, world, story = self.rng, self.world, self.story
        shown = tuple(sorted(ranks))
        kind = rng.choices(list(kinds), list(kinds.values()))[0]
        if not shown:
            shown = (0,)
        call = call_of(shown[0])
        frames = self.wait_frames(call)
        notified = [rank for rank in late if rng.random() < 0.5]
        if kind == "watchdog":
            at = waiting.watchdog(story, world, rng, shown, call_of, onset, notified=notified)
        elif kind == "store":
            at = raised.store(story, world, rng, [rank for rank in shown if rank] or shown, onset, frames)
        elif kind == "gloo":
            at = raised.gloo(story, world, rng, shown, onset, frames)
        elif kind == "monitored" and late and 0 not in late:
            at = raised.monitored(story, world, rng, late, onset, frames)
        elif kind == "stuck" and world.torch.rank >= 2:
            at = waiting.stuck(story, world, rng, shown, onset)
        elif kind == "gone":
            at = raised.gone(story, world, rng, shown, onset, frames)
        elif kind == "aborted":
            at = waiting.aborted(story, world, rng, shown, onset)
        elif kind == "stacks":
            at = self._stacks(shown, onset, frames)
        else:
            at = raised.blocking(story, world, rng, shown, call_of, onset, frames)
        story.detection, story.waiting, story.collective = at, shown, call.op
        return at

    def _stacks(self, ranks: tuple[int, ...], onset: float, frames: list[tracebacks.Frame]) -> float:
        at = onset + self.rng.uniform(0.2, 2) * self.world.timeout_s
        for i, rank in enumerate(ranks[: self.rng.randrange(1, 5)]):
            waiting.stack_dump(self.story, self.world, self.rng, rank, at + i, frames)
        self.story.hung = True
        return at

    def wait_frames(self, call: Call) -> list[tracebacks.Frame]:
        """Frames of a rank that stands in `call`."""
        rng, world = self.rng, self.world
        return tracebacks.outer(world, rng) + tracebacks.inner_wait(
            world, rng, call.op, call.op == "ALLREDUCE" and call.numel_in == 1
        )

    def finish(self, codes: dict[int, int]) -> None:
        """Teardown after the detection, and what the wait itself broke."""
        if self.story.hung:
            return
        delay = 62 if self.world.torch.rank >= 7 and self.rng.random() < 0.7 else 2
        teardown.end(self.story, self.world, self.rng, self.story.detection + delay, codes)
        if self.rng.random() < 0.12:
            self._broken_by_it()
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
            shown = "after" if role == "collateral" else "decoy"
            self.story.add(self.lines.record(family, rng, world, rng.choice(ranks), at, shown))

    def _broken_by_it(self) -> None:
        rng, world = self.rng, self.world
        rank = rng.randrange(world.size)
        text = (
            tracebacks.cuda_oom(world, rng, world.local(rank))
            if rng.random() < 0.3
            else rng.choice(
                (
                    "RuntimeError: DataLoader worker (pid 40122) exited unexpectedly",
                    "BrokenPipeError: [Errno 32] Broken pipe",
                    "EOFError",
                    "RuntimeError: CUDA error: unspecified launch failure",
                )
            )
        )
        lines = tracebacks.crash(world, rng, text)
        self.story.add(
            Record(
                time=self.story.detection + rng.uniform(2, 9),
                lines=lines,
                role="decoy",
                rank=rank,
                node=world.node_of(rank),
                prefix="exc",
            )
        )

    def aborts(self, ranks: Iterable[int]) -> dict[int, int]:
        """Exit codes of ranks that their own watchdog aborted."""
        return {rank: -6 for rank in ranks}


def _palette(rng: Random, found: list[Family], own: int) -> list[Family]:
    """The voices of one run: few lines of its own code, the rest from libraries."""
    lines = [family for family in found if not _is_step(family) or rng.random() < 0.12]
    mine = [family for family in lines if family.emitter == "user"][:own]
    return mine + [family for family in lines if family.emitter != "user"]


def _is_step(family: Family) -> bool:
    """A step line in some voice: a run has one voice, and this world has chosen its own."""
    return "{loss}" in family.template or "{step}" in family.template


def _trending(family: Family) -> bool:
    """A weak line with numbers, printed by a process: it may come again at the next steps."""
    measured = any(
        slot in family.template for slot in ("{step", "{medium", "{float", "{short", "{pct", "{gib", "{more")
    )
    return family.strength <= 2 and measured and family.channel in {"rank", "main"} and not family.follow
