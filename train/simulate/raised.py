"""Waits that end in a Python exception: store keys, gloo, monitored barriers, bounded waits."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from train.simulate import c10d, tracebacks
from train.simulate.record import Record, Story
from train.simulate.waiting import CallOf
from train.simulate.world import World


def store(
    story: Story,
    world: World,
    rng: Random,
    ranks: Iterable[int],
    onset: float,
    frames: list[tracebacks.Frame],
) -> float:
    """Ranks wait for the key that rank 0 publishes when it arrives; the wait on the store expires."""
    port = rng.randrange(2000, 65000)
    key = rng.choice(
        ("/default_pg/0//cuda//0", "/default_pg/0//0", "/default_pg/0//cuda//1", "/worker_groups/0//cuda//0")
    )
    detection = onset + world.timeout_s
    for rank in ranks:
        at = onset + world.timeout_s + rng.random() * 0.8
        detection = min(detection, at)
        if world.torch.rank >= 6 and rng.random() < 0.7:
            _poll(story, world, rng, rank, at, port)
        short = (
            f"wait timeout after {world.timeout_s * 1000}ms, keys: {key}" if world.torch.rank >= 4 else "Socket Timeout"
        )
        name = "torch.distributed.DistBackendError" if world.torch.rank >= 1 else "RuntimeError"
        verb = "retrieving" if world.torch.rank >= 2 else "retreiving"
        final = (
            f"{name}: [{rank}] is setting up NCCL communicator and {verb} ncclUniqueId from [0] via "
            f"c10d key-value store by key '0', but store->get('0') got error: {short}"
        )
        if rng.random() < 0.2:
            final = f"torch.distributed.DistStoreError: {short}" if world.torch.rank >= 4 else f"RuntimeError: {short}"
        lines = (*tracebacks.render(world, rng, frames, final), *_store_frames(world, rng))
        story.add(Record(time=at + 0.01, lines=lines, role="wait", rank=rank, node=world.node_of(rank), prefix="exc"))
    return detection


def _poll(story: Story, world: World, rng: Random, rank: int, at: float, port: int) -> None:
    ip = world.ips[0]
    host = rng.choice((world.hosts[0], ip, "localhost"))
    socket = f"SocketImpl(fd={rng.randrange(30, 190)}, addr=[{host}]:{port}, remote=[{host}]:29500)"
    first = (
        f"{c10d.head(world, rank, at, 464, rng, 'W', 'socket.cpp')}[c10d] waitForInput: poll for socket "
        f"{socket} returned 0, likely a timeout"
    )
    second = (
        f"{c10d.head(world, rank, at, 489, rng, 'W', 'socket.cpp')}[c10d] waitForInput: socket {socket} "
        f"timed out after {world.timeout_s * 1000}ms"
    )
    story.add(Record(time=at, lines=(first, second), role="wait", rank=rank, node=world.node_of(rank), prefix="c10"))


def _store_frames(world: World, rng: Random) -> list[str]:
    if rng.random() < 0.5:
        return []
    root = "../torch" if world.torch.rank <= 5 else "/pytorch/torch"
    lib = f"{world.site}/torch/lib"
    symbols = (
        "c10::Error::Error(c10::SourceLocation, std::string)",
        "c10d::TCPStore::doWait(c10::ArrayRef<std::string>, std::chrono::duration<long, std::ratio<1l, 1000l> >)",
        "c10d::TCPStore::doGet(std::string const&)",
        "c10d::TCPStore::get(std::string const&)",
        "c10d::PrefixStore::get(std::string const&)",
        "c10d::ProcessGroupNCCL::broadcastUniqueNCCLID(ncclUniqueId*, bool, std::string const&, int)",
        "c10d::ProcessGroupNCCL::getNCCLComm(std::string const&, c10::Device&, c10d::OpType, int, bool)",
    )
    start = rng.randrange(0x7F0000000000, 0x7FFFF0000000)
    name = "doWait" if world.torch.rank >= 4 else "recvBytes"
    file = "TCPStore.cpp" if world.torch.rank >= 4 else "Utils.hpp"
    lines = [
        f"Exception raised from {name} at {root}/csrc/distributed/c10d/{file}"
        f":{rng.choice((580, 582, 597, 670))} (most recent call first):"
    ]
    count = rng.randrange(1, len(symbols) + 1)
    return lines + [
        f"frame #{i}: {symbol} + {rng.randrange(33, 999):#x} ({start + rng.randrange(1 << 22):#x} "
        f"in {lib}/libtorch_{'cpu' if i < 5 else 'cuda'}.so)"
        for i, symbol in enumerate(symbols[:count])
    ]


def gloo(
    story: Story,
    world: World,
    rng: Random,
    ranks: Iterable[int],
    onset: float,
    frames: list[tracebacks.Frame],
    *,
    closed: bool = False,
) -> float:
    """Ranks fail in a gloo operation: it timed out, or (`closed`) the peer's connection is gone."""
    root = rng.choice(
        (
            "/pytorch/third_party/gloo/gloo",
            "../third_party/gloo/gloo",
            "/opt/conda/conda-bld/pytorch/work/third_party/gloo/gloo",
        )
    )
    detection = onset + (rng.random() * 3 if closed else world.timeout_s)
    for rank in ranks:
        at = detection + rng.random() * 0.6
        if closed:
            peer = f"[{rng.choice(world.ips)}]:{rng.randrange(1100, 65000)}"
            tail = (
                ". This is typically caused by a remote worker crashing. Check the logs of the "
                "remote worker before reporting an error. GLHF! 🏖️"
                if world.torch.rank >= 10
                else ""
            )
            text = rng.choice(
                (
                    f"Connection closed by peer {peer}{tail}",
                    f"Read error {peer}: Connection reset by peer",
                    f"Connection closed by peer {peer}{tail}",
                )
            )
            final = f"RuntimeError: [{root}/transport/tcp/pair.cc:{rng.choice((525, 534, 547, 553, 575, 598))}] {text}"
        else:
            final = (
                f"RuntimeError: [{root}/transport/tcp/unbound_buffer.cc:{rng.choice((78, 81, 84, 119))}"
                f"] Timed out waiting {world.timeout_s * 1000}ms for "
                f"{rng.choice(('recv', 'recv', 'send'))} operation to complete"
            )
        story.add(
            Record(
                time=at,
                lines=tracebacks.render(world, rng, frames, final),
                role="wait",
                rank=rank,
                node=world.node_of(rank),
                prefix="exc",
            )
        )
    return detection


def monitored(
    story: Story,
    world: World,
    rng: Random,
    missing: tuple[int, ...],
    onset: float,
    frames: list[tracebacks.Frame],
) -> float:
    """Rank 0 names the ranks that did not come; some others report that they got there."""
    ms = world.timeout_s * 1000
    at = onset + world.timeout_s
    prefix = c10d.head(world, 0, at, rng.choice((67, 73, 2778)), rng, "E", "ProcessGroupGloo.cpp")
    name = f"Ranks {', '.join(map(str, missing))}" if len(missing) > 1 else f"Rank {missing[0]}"
    text = f"[Rank 0]: {name} failed to pass monitoredBarrier in {ms} ms"
    story.add(Record(time=at, lines=(prefix + text,), role="wait", rank=0, prefix="c10"))
    final = (
        f"RuntimeError: {text}\n Original exception: \n[/pytorch/third_party/gloo/gloo/transport/tcp/"
        f"unbound_buffer.cc:81] Timed out waiting {ms}ms for recv operation to complete"
    )
    story.add(
        Record(
            time=at + 0.02,
            lines=tracebacks.render(world, rng, frames, final),
            role="wait",
            rank=0,
            prefix="exc",
        )
    )
    others = [rank for rank in range(1, world.size) if rank not in missing]
    for rank in others[:3]:
        lost = (
            f"RuntimeError: Rank {rank} successfully reached monitoredBarrier, but received errors "
            "while waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank."
        )
        story.add(
            Record(
                time=at + 0.5,
                lines=tracebacks.render(world, rng, frames, lost),
                role="after",
                rank=rank,
                node=world.node_of(rank),
                prefix="exc",
            )
        )
    return at


def blocking(
    story: Story,
    world: World,
    rng: Random,
    ranks: Iterable[int],
    call_of: CallOf,
    onset: float,
    frames: list[tracebacks.Frame],
) -> float:
    """Ranks whose wait is bounded in Python: the call itself raises."""
    at = onset + world.timeout_s
    for rank in ranks:
        call = call_of(rank)
        ran = world.timeout_s * 1000 + rng.randrange(1, 400)
        text = c10d.caught(world, call, rank, ran)
        if rng.random() < 0.5:
            text = f"Work {c10d.work_text(world, call)} timed out in blocking wait."
        name = "torch.distributed.DistBackendError" if world.torch.rank >= 1 else "RuntimeError"
        if rng.random() < 0.2:
            text = f"NCCL communicator was aborted on rank {rank}.  Original reason for failure was: {text}"
        final = f"{name}: {text}"
        story.add(
            Record(
                time=at + rng.random(),
                lines=tracebacks.render(world, rng, frames, final),
                role="wait",
                rank=rank,
                node=world.node_of(rank),
                prefix="exc",
            )
        )
    return at
