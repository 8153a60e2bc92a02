"""The lines of torch's NCCL watchdog and heartbeat monitor, by release."""

from __future__ import annotations

from random import Random

from train.simulate import clock
from train.simulate.collectives import Call
from train.simulate.world import World

_BOILER = (
    "This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used across "
    "ranks, the order of collectives is not same "
    "for all ranks or the scheduled collective, for some reason, didn't run. Additionally, this "
    "can be caused by GIL deadlock or other reasons "
    "such as network errors or bugs in the communications library (e.g. NCCL), etc. "
)
_CORRUPT = (
    "Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data."
)


def head(
    world: World,
    rank: int,
    time: float,
    line: int,
    rng: Random,
    severity: str = "E",
    file: str = "ProcessGroupNCCL.cpp",
) -> str:
    """The prefix of a c10 C++ line printed by a rank at a true time."""
    number = line + (world.shift if line > 300 else 0)
    at = world.torch.rank
    if at <= 1:
        return f"[{severity} {file}:{number}] "
    if at <= 3:
        return f"[rank{rank}]:[{severity} {file}:{number}] "
    return f"[rank{rank}]:[{severity}{clock.c10(world.shown(world.node_of(rank), time), rng)} {file}:{number}] "


def group_head(world: World, call: Call, rank: int) -> str:
    """`[PG … Rank r] ` as the release writes it; the rank is the one inside the group."""
    at, group, place = world.torch.rank, call.group, call.group.place(rank)
    if at <= 2:
        return f"[Rank {place}] "
    if at == 3:
        return f"[PG {group.ident} Rank {place}] "
    desc = f"({group.desc})" if group.desc else ""
    if at == 4:
        return f"[PG {group.name}{' ' + desc if desc else ''} Rank {place}] "
    return f"[PG ID {group.ident} PG GUID {group.name}{desc} Rank {place}] "


def work_head(world: World, call: Call, rank: int) -> str:
    """The prefix of lines that a work prints."""
    if world.torch.rank >= 14:
        desc = f"({call.group.desc})" if call.group.desc else ""
        return f"[PG GUID {call.group.name}{desc} Rank {call.group.place(rank)}] "
    return f"[Rank {call.group.place(rank)}] "


def work_text(world: World, call: Call) -> str:
    """`WorkNCCL(…)` of a call."""
    name = "WorkHCCL" if world.backend == "hccl" else "WorkNCCL"
    parts = [f"SeqNum={call.seq}", f"OpType={call.op}"]
    if world.torch.rank >= 1:
        parts += [f"NumelIn={call.numel_in}", f"NumelOut={call.numel_out}"]
    parts.append(f"Timeout(ms)={world.timeout_s * 1000}")
    return f"{name}({', '.join(parts if world.torch.rank > -90 else parts[1:])})"


def caught(world: World, call: Call, rank: int, ran_ms: int) -> str:
    """The body of the timeout line, with the work's prefix."""
    return (
        f"{work_head(world, call, rank)}Watchdog caught collective operation timeout: "
        f"{work_text(world, call)} "
        f"ran for {ran_ms} milliseconds before timing out."
    )


def timeout_line(world: World, call: Call, rank: int, time: float, ran_ms: int, rng: Random) -> str:
    """The watchdog's timeout line of a rank."""
    if world.backend == "hccl" and world.agents[0] % 2:
        return f"[E{clock.c10(world.shown(world.node_of(rank), time), rng)}] {caught(world, call, rank, ran_ms)}"
    return head(world, rank, time, world.torch.timeout, rng) + caught(world, call, rank, ran_ms)


def status_lines(world: World, call: Call, rank: int, time: float, rng: Random) -> list[str]:
    """What the release says about enqueued and completed work (nothing before 2.3)."""
    torch, prefix = world.torch, group_head(world, call, rank)
    enqueued, done = call.seq + call.ahead, call.seq - 1 if call.seq > 1 else -1
    tail = f"last enqueued NCCL work: {enqueued}, last completed NCCL work: {done}."
    if not torch.status:
        return []
    if torch.rank == 3:
        return [f"{head(world, rank, time, torch.status, rng)}{prefix}Timeout at NCCL work: {call.seq}, {tail}"]
    if torch.rank <= 5:
        first = f"{prefix}Exception (either an error or timeout) detected by watchdog at work: {call.seq}, {tail}"
        second = f"{prefix}Timeout at NCCL work: {call.seq}, {tail}"
        return [
            head(world, rank, time, torch.status, rng) + first,
            head(world, rank, time, torch.status2, rng) + second,
        ]
    text = (
        f"{prefix} failure detected by watchdog at work sequence id: {call.seq} PG status: last "
        f"enqueued work: {enqueued}, last completed work: {done}"
    )
    return [head(world, rank, time, torch.status, rng) + text]


def trace_lines(world: World, rank: int, time: float, frames: list[str], rng: Random) -> list[str]:
    """The stack trace of the hung call (2.6+), or the line that says it is not there."""
    if not world.torch.stack:
        return []
    start = head(world, rank, time, world.torch.stack, rng)
    if frames:
        return [f"{start}Stack trace of the failed collective: ", *frames, ""]
    name = "TORCH_FR_BUFFER_SIZE" if world.torch.rank >= 11 else "TORCH_NCCL_TRACE_BUFFER_SIZE"
    return [
        f"{start}Stack trace of the failed collective not found, potentially because FlightRecorder "
        "is disabled. "
        f"You can enable it by setting {name} to a non-zero value."
    ]


def dump_lines(
    world: World, call: Call, rank: int, time: float, source: int | None, done: int, rng: Random
) -> list[str]:
    """Dump signal lines of 2.6+; `source` None = this rank itself; counters are the default group's."""
    torch = world.torch
    if not torch.received:
        return []
    prefix = group_head(world, _on_default(world, call), rank)
    origin = "this local rank" if source is None else f" rank {source}"
    counts = (
        f"Last enqueued NCCL work: {done + (call.ahead if source is None else 0)}, last completed NCCL work: {done}."
    )
    received = (
        f"Received a dump signal due to a collective timeout from {origin} and we will try our best to "
        f"dump the debug info. {counts}{_BOILER}"
    )
    extra = " Include stack trace: 1" + (", only active collectives: 0" if torch.rank >= 11 else "")
    first = (
        (torch.first, "First PG on this rank to signal dumping.")
        if source is None
        else (torch.received - 65, "Observed flight recorder dump signal from another rank via TCPStore.")
    )
    rows = [
        first,
        (torch.received, received),
        (torch.preparing, f"ProcessGroupNCCL preparing to dump debug info.{extra}"),
    ]
    return [f"{head(world, rank, time + 0.0002 * i, line, rng)}{prefix}{text}" for i, (line, text) in enumerate(rows)]


def _on_default(world: World, call: Call) -> Call:
    return Call(op=call.op, numel_in=0, numel_out=0, group=world.groups[0], seq=call.seq)


def down_lines(world: World, call: Call, rank: int, time: float, rng: Random) -> list[str]:
    """Why the process is taken down: one line up to 1.12, two lines after."""
    torch = world.torch
    prefix = work_head(world, call, rank) if torch.rank >= 3 else ""
    some = (
        f"{head(world, rank, time, torch.some, rng)}{prefix}Some NCCL operations have failed or timed out. {_CORRUPT}"
    )
    if not torch.avoid:
        return [f"{some} To avoid this inconsistency, we are taking the entire process down."]
    return [
        some,
        f"{head(world, rank, time, torch.avoid, rng)}{prefix}To avoid data inconsistency, we are "
        "taking the entire process down.",
    ]


def end_lines(world: World, call: Call, rank: int, time: float, ran_ms: int, depth: int, rng: Random) -> list[str]:
    """How the watchdog thread ends: its exception, C++ frames up to `depth`, and the terminate banner."""
    torch, text = world.torch, caught(world, call, rank, ran_ms)
    lines: list[str] = []
    if torch.thread:
        name = "NCCL watchdog" if torch.rank <= 2 else "Process group watchdog"
        prefix = group_head(world, call, rank)
        lines.append(
            f"{head(world, rank, time, torch.thread, rng)}{prefix}{name} thread terminated with exception: {text}"
        )
        lines += frames(world, depth, rng)
    kind = "std::runtime_error" if torch.rank <= 0 else "c10::DistBackendError"
    banner = [
        f"terminate called after throwing an instance of '{kind}'",
        f"  what():  {text}",
        *frames(world, depth, rng),
    ]
    return lines + (banner if rng.random() < 0.7 else [])


def frames(world: World, depth: int, rng: Random, raised: str = "checkTimeout") -> list[str]:
    """`Exception raised from …` and `frame #i` lines; none if `depth` is zero or the release has none."""
    if not depth or world.torch.rank < 1:
        return []
    root = "../torch" if world.torch.rank <= 5 else "/pytorch/torch"
    root = "/opt/pytorch/pytorch/torch" if world.ngc else root
    symbols = _symbols(world)[:depth]
    base = rng.randrange(0x7F0000000000, 0x7FFFF0000000)
    lines = [
        f"Exception raised from {raised} at {root}/csrc/distributed/c10d/"
        f"ProcessGroupNCCL.cpp:{world.torch.timeout} (most recent call first):"
    ]
    for i, (symbol, lib) in enumerate(symbols):
        lines.append(
            f"frame #{i}: {symbol} + {rng.randrange(0x40, 0xFFF):#x} ({base + rng.randrange(1 << 24):#x} in {lib})"
        )
    return [*lines, ""]


def _symbols(world: World) -> list[tuple[str, str]]:
    torch_lib = f"{world.site}/torch/lib"
    at = world.torch.rank
    handler = "workCleanupLoop()" if at <= 2 else "watchdogHandler()" if at <= 7 else "Watchdog::runLoop()"
    string = (
        "std::string" if at == 6 else "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
    )
    option = "std::optional" if at >= 3 else "c10::optional"
    return [
        (f"c10::Error::Error(c10::SourceLocation, {string})", f"{torch_lib}/libc10.so"),
        (
            f"c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout({option}<std::chrono::duration<long, "
            "std::ratio<1l, 1000l> > >)",
            f"{torch_lib}/libtorch_cuda.so",
        ),
        (f"c10d::ProcessGroupNCCL::{handler}", f"{torch_lib}/libtorch_cuda.so"),
        (
            "c10d::ProcessGroupNCCL::ncclCommWatchdog()" if at <= 7 else "c10d::ProcessGroupNCCL::Watchdog::run()",
            f"{torch_lib}/libtorch_cuda.so",
        ),
        (
            "<unknown function>",
            f"{torch_lib}/libtorch.so" if at >= 5 else "/opt/conda/bin/../lib/libstdc++.so.6",
        ),
        ("<unknown function>", "/lib/x86_64-linux-gnu/libc.so.6"),
        ("<unknown function>", "/lib/x86_64-linux-gnu/libc.so.6"),
    ]
