"""Ranks that die: an exception, a signal, an exit, a lost node; the others lose their peer."""

from __future__ import annotations

from dataclasses import replace

from train.simulate import tracebacks
from train.simulate.gloo import stacks, waits
from train.simulate.gloo.run import Run, ready, start
from train.simulate.gloo.side import from_inventory
from train.simulate.gloo.stepping import steps, unprinted
from train.simulate.record import Record

_CODES = {
    "signal": -9,
    "host_oom_kill": -9,
    "preemption": -9,
    "probe_kill": -9,
    "segfault": -11,
    "shm_exhausted": -7,
    "abort": -6,
    "early_exit": 3,
    "node_loss": -9,
}
_ERRORS = {
    "disk_full": ("OSError: [Errno 28] No space left on device: 'checkpoints/step.pt'", "save"),
    "disk_readonly": ("OSError: [Errno 30] Read-only file system: 'checkpoints/last.pt'", "save"),
    "fd_exhausted": ("OSError: [Errno 24] Too many open files", "data"),
    "dataloader_worker_killed": ("RuntimeError: DataLoader worker (pid {n}) is killed by signal: Killed. ", "data"),
    "training_diverged": ("FloatingPointError: loss became nan at step {step}", "compute"),
    "host_oom_kill": (
        "RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate {n}000000 bytes. Error code 12 (Cannot allocate memory)",
        "compute",
    ),
}
_RAISES = (
    "ValueError: bad record in part-{k}.bin at offset {n}",
    "KeyError: 'input_ids'",
    "IndexError: index {n} is out of bounds for axis 0 with size {k}",
    "AssertionError: unexpected shape ({k}, {n})",
    "UnicodeDecodeError: 'utf-8' codec can't decode byte 0x8f in position {n}: invalid start byte",
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied ({n}x16 and 32x64)",
    "FileNotFoundError: [Errno 2] No such file or directory: 'data/part-{k}.bin'",
    "ZeroDivisionError: division by zero",
    "EOFError: Ran out of input",
    "TypeError: 'NoneType' object is not subscriptable",
)


def failure(run: Run, cause: str) -> None:
    """A rank dies; its peers lose their connections within a second."""
    rng, world = run.rng, run.world
    node = cause in {"node_loss", "node_unhealthy"} and world.nodes > 1
    dead = world.ranks_on(1) if node else (rng.choice(run.ranks),)
    run.story.initiating = dead
    start(run)
    early = rng.random() < 0.12
    if not early:
        ready(run)
        steps(run, rng.randrange(2, 30 if run.voice.everyone else 90))
    run.now += rng.uniform(0.01, world.step_s)
    code, place = (1, "start" if early else "data")
    if cause in _CODES and (cause not in _ERRORS or rng.random() < 0.5):
        code = rng.choice((2, 3, 77, 134)) if cause == "early_exit" else _CODES[cause]
        if cause == "host_oom_kill" and rng.random() < 0.4:
            _killed(run, dead[0])
    elif not node and not run.blind:
        _crash(run, dead[0], cause)
    if not node:
        run.codes[dead[0]] = code
    if not run.blind and rng.random() < 0.2:
        from_inventory(run, "rank_failure", cause, dead)
    run.unrecorded.update(dead)
    if run.voice.everyone and rng.random() < 0.3:
        unprinted(run, dead if rng.random() < 0.6 else run.rest(dead))
    if run.nccl:
        waits.outlive(run, dead, code if not node else 0)
        if node and not run.blind:
            _cut(run, dead)
        return
    if node and rng.random() < 0.35:
        waits.expire(run, dict.fromkeys(run.rest(dead), waits.call_for(run, place)))
    else:
        waits.lose(run, run.rest(dead), dead[0], place, rng.choice(("reset", "closed")) if node else "")
    if run.blind:
        run.codes.pop(dead[0], None)
    waits.agents(run, told=0 if run.blind or node or code == 1 else 3, dead_nodes=(1,) if node else ())
    if node and not run.blind and rng.random() < 0.8:
        _cut(run, dead)


def _cut(run: Run, dead: tuple[int, ...]) -> None:
    """A node that goes away is known by its logs ending together, if it has printed anything."""
    records = run.story.records
    places = [i for i, record in enumerate(records) if record.rank in dead]
    if places:
        last = max(places, key=lambda i: records[i].time)
        records[last] = replace(records[last], strength=2, tie="uncited")


def _crash(run: Run, rank: int, cause: str) -> None:
    rng, world = run.rng, run.world
    text = _ERRORS[cause][0] if cause in _ERRORS else rng.choice(_RAISES)
    final = text.format(n=rng.randrange(100, 99999), k=rng.randrange(2, 40), step=run.step + 1)
    stack = tracebacks.outer(world, rng)[:2]
    stack.append((run.names.helper, rng.choice(("read", "__next__", "decode", "check", "apply")), "raise"))
    run.raise_(rank, run.now, stacks.render(world, stack, final), role="evidence", strength=3)


def _killed(run: Run, rank: int) -> None:
    pid = run.world.pids[rank]
    size = f"total-vm:{pid * 7}kB, anon-rss:{pid * 3}kB"
    text = f"[{run.now % 1e6:.6f}] Out of memory: Killed process {pid} (python) {size}"
    run.story.add(Record(time=run.now, lines=(text,), role="evidence", channel="side", strength=3, file="dmesg.txt"))
