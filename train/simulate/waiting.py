"""How ranks that wait become visible: watchdog, store, gloo, monitored barrier, exceptions, stacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from random import Random

from train.simulate import c10d, monitor, tracebacks
from train.simulate.collectives import Call
from train.simulate.record import Record, Story
from train.simulate.world import World

CallOf = Callable[[int], Call]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dog:
    """How the watchdogs of one run print: spread of their lateness, share of detail, depth of C++ frames."""

    detail: float
    depth: int
    traced: bool
    spread: float
    usual: int
    repeats: int


def _dog(world: World, rng: Random, told: bool) -> _Dog:
    detail, depth = rng.random(), rng.choice((0, 1, 2, 2, 4, 7))
    return _Dog(
        detail=detail,
        depth=depth,
        traced=rng.random() < (0.7 if world.torch.rank >= 11 else 0.5 if told else 0.22),
        spread=rng.choice((0.02, 0.05, 0.1, 0.3, 1.5)),
        usual=rng.choice((15, 60, 60, 100, 100, 100, 700)),
        repeats=rng.choice((1, 1, 1, 1, 2, 3)),
    )


def watchdog(
    story: Story,
    world: World,
    rng: Random,
    ranks: Iterable[int],
    call_of: CallOf,
    onset: float,
    *,
    notified: Iterable[int] = (),
    done: int | None = None,
    told: list[tracebacks.Frame] | None = None,
) -> float:
    """Every rank of `ranks` times out in `call_of(rank)`; `notified` ranks only receive the dump signal.

    `told` are frames of the program between its loop and the call, shown where stacks are.

    Returns the detection time. The counters of notified ranks are `done`, or one before the call they miss.
    """
    waiting = tuple(ranks)
    dog = _dog(world, rng, bool(told))
    detection = onset + world.timeout_s + 3600
    for rank in waiting:
        detection = min(detection, _bark(story, world, rng, rank, call_of(rank), onset, dog, told or []))
    _notify(story, world, rng, notified, call_of(waiting[0]), waiting[0], detection, done)
    return detection


def _bark(
    story: Story,
    world: World,
    rng: Random,
    rank: int,
    call: Call,
    onset: float,
    dog: _Dog,
    told: list[tracebacks.Frame],
) -> float:
    """One rank's timeout, counters, stack and end; returns when it timed out."""
    late = rng.random() * dog.spread + (
        world.timeout_s * 0.01 * rng.random() if world.torch.rank < 2 and rng.random() < 0.3 else 0
    )
    ran = world.timeout_s * 1000 + rng.randrange(3, dog.usual)
    if rng.random() < 0.15:
        ran += rng.randrange(900, 9000)
    at = onset + world.timeout_s + late
    add = _adder(story, world, rank)
    for i in range(min(dog.repeats, call.ahead + 1)):
        again = replace(call, seq=call.seq + i, ahead=0) if i else call
        line = c10d.timeout_line(world, again, rank, at + i * 0.004, ran - i, rng)
        add(at + i * 0.004, [line], "status" if i else "wait")
    add(at + 0.01, c10d.status_lines(world, call, rank, at + 0.01, rng), "status")
    frames = tracebacks.trace_frames(world, rng, call.op, call.numel_in, told) if dog.traced else []
    add(at + 0.011, c10d.trace_lines(world, rank, at + 0.011, frames, rng), "stack")
    if world.torch.rank >= 7 and dog.detail < 0.6:
        counted = call.seq - 1 if call.seq > 1 else -1
        add(at + 0.2, c10d.dump_lines(world, call, rank, at + 0.2, None, counted, rng), "notify")
    down = at + (60 if world.torch.rank >= 7 and rng.random() < 0.7 else 0.3)
    add(down, c10d.down_lines(world, call, rank, down, rng), "after")
    add(down + 0.1, c10d.end_lines(world, call, rank, down + 0.1, ran, dog.depth, rng), "frames")
    return at


def _adder(story: Story, world: World, rank: int) -> Callable[[float, list[str], str], None]:
    def add(time: float, lines: list[str], role: str) -> None:
        if lines:
            story.add(
                Record(
                    time=time,
                    lines=tuple(lines),
                    role=role,
                    rank=rank,
                    node=world.node_of(rank),
                    prefix="c10",
                )
            )

    return add


def _notify(
    story: Story,
    world: World,
    rng: Random,
    ranks: Iterable[int],
    call: Call,
    source: int,
    detection: float,
    done: int | None,
) -> None:
    if world.torch.rank < 6:
        return
    counted = call.seq - 1 if done is None else done
    for rank in ranks:
        if rank not in call.group.members:
            continue
        at = detection + 0.3 + rng.random()
        lines = c10d.dump_lines(world, call, rank, at, source, counted, rng)
        story.add(Record(time=at, lines=tuple(lines), role="notify", rank=rank, node=world.node_of(rank), prefix="c10"))


def stuck(story: Story, world: World, rng: Random, ranks: Iterable[int], onset: float) -> float:
    """The heartbeat monitor of each rank ends a process whose watchdog is blocked."""
    at = onset + world.torch.heartbeat
    for rank in ranks:
        time = at + rng.random() * 2
        lines = monitor.stuck_lines(world, rank, time, rng)
        story.add(
            Record(
                time=time,
                lines=tuple(lines[:1]),
                role="wait",
                rank=rank,
                node=world.node_of(rank),
                prefix="c10",
            )
        )
        later = time + (world.torch.heartbeat if world.torch.rank <= 5 else 61)
        story.add(
            Record(
                time=later,
                lines=tuple(lines[1:]),
                role="after",
                rank=rank,
                node=world.node_of(rank),
                prefix="c10",
            )
        )
    return at


def aborted(story: Story, world: World, rng: Random, ranks: Iterable[int], onset: float) -> float:
    """Ranks die by SIGABRT whose native stack holds the watchdog; nothing else is printed (as under Ray)."""
    at = onset + world.timeout_s
    for rank in ranks:
        time = at + rng.random()
        name = (
            "c10d::ProcessGroupNCCL::Watchdog::run()"
            if world.torch.rank >= 8
            else "c10d::ProcessGroupNCCL::ncclCommWatchdog()"
        )
        base = rng.randrange(0x7E0000000000, 0x7F0000000000)
        lines = [
            "Fatal Python error: Aborted",
            "",
            f"Thread {base:#018x} (most recent call first):",
            "  <no Python frame>",
            "",
            f"*** SIGABRT received at time={int(world.shown(world.node_of(rank), time))} on cpu "
            f"{rng.randrange(190)} ***",
            f"PC: @     {base + 0x9000:#x}  (unknown)  pthread_kill",
            f"    @     {base + 0x7000:#x}  {rng.randrange(90, 900):>10}  {name}",
        ]
        story.add(Record(time=time, lines=tuple(lines), role="wait", rank=rank, node=world.node_of(rank), prefix="raw"))
    return at


def phrases(story: Story, world: World, rng: Random, ranks: Iterable[int], onset: float) -> float:
    """The bare phrases that people quote instead of a log."""
    rank = next(iter(ranks))
    other = rng.randrange(world.size)
    text = rng.choice(
        (
            f"AllGather timed out waiting for work on rank {rank}",
            f"FSDP forward pass hangs at param all-gather: wait() never completes on rank {rank}",
            "NCCL timeout error during FSDP parameter shard collection",
            "FSDP reduce_scatter backward hook timed out waiting for gradient sync",
        )
    )
    story.add(Record(time=onset + world.timeout_s, lines=(text,), role="wait", channel="main"))
    if rng.random() < 0.3:
        story.add(
            Record(
                time=onset + world.timeout_s + 1,
                lines=(f"Rank {other} shows CUDA memory 0 bytes allocated while other ranks have full utilization",),
                role="after",
                channel="main",
            )
        )
    return onset + world.timeout_s


def stack_dump(story: Story, world: World, rng: Random, rank: int, time: float, frames: list[tracebacks.Frame]) -> None:
    """A stack of a waiting rank, taken by a person with py-spy."""
    lines = [
        f"Process {world.pids[rank]}: {world.site.split('/lib/')[0]}/bin/python -u {world.script}",
        f"Python v{world.python}.{rng.randrange(1, 14)} ({world.site.split('/lib/')[0]}/bin/python{world.python})",
        "",
        f'Thread {world.pids[rank]} (active): "MainThread"',
    ]
    lines += [
        f"    {function} ({file.split('site-packages/')[-1].split('dist-packages/')[-1]}:{rng.randrange(30, 2900)})"
        for file, function, _ in reversed(frames)
    ]
    story.add(
        Record(
            time=time,
            lines=tuple(lines),
            role="wait",
            rank=None,
            node=world.node_of(rank),
            channel="tool",
            file="pyspy",
        )
    )
