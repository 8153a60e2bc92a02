"""Lines of the NCCL library: bring-up, warnings with their return chains, completion errors by version."""

from __future__ import annotations

from random import Random

from train.simulate import c10d, clock, tracebacks
from train.simulate.cards import bus_of
from train.simulate.record import Record, Story
from train.simulate.versions import nccl_number
from train.simulate.world import World

_FABRICS = ("IB", "IB", "Socket", "Socket", "AWS Libfabric", "IBext_v8")


def head(world: World, rank: int, rng: Random) -> str:
    """`host:pid:tid [dev] ` of a rank."""
    pid = world.pids[rank]
    return f"{world.hosts[world.node_of(rank)]}:{pid}:{pid + rng.randrange(60, 900)} [{world.local(rank)}] "


def warn(world: World, rank: int, time: float, place: str, text: str, chain: tuple[str, ...], rng: Random) -> list[str]:
    """A WARN (an empty line comes first) and the INFO chain under it, from the same thread."""
    start = head(world, rank, rng)
    stamp = f"[{clock.plain(world.shown(world.node_of(rank), time))}] " if nccl_number(world.nccl) >= 2600 else ""
    return ["", f"{stamp}{start}{place} NCCL WARN {text}", *[f"{start}NCCL INFO {step}" for step in chain]]


def _plain_rows(fabric: str) -> tuple[str, ...]:
    """What most set-ups say on the way, without any meaning for a fault."""
    found = "" if "IB" in fabric else "NET/IB : No device found."
    return tuple(
        row
        for row in (
            "cudaDriverVersion 12040",
            "NET/Plugin: No plugin found (libnccl-net.so), using internal implementation",
            f"NCCL_IB_DISABLE set by environment to {0 if 'IB' in fabric else 1}.",
            found,
        )
        if row
    )


def bringup(
    story: Story,
    world: World,
    rng: Random,
    time: float,
    ranks: tuple[int, ...],
    complete: bool = True,
    role: str = "chat",
) -> None:
    """Communicator set-up as NCCL_DEBUG=INFO shows it; without `complete` the rings are never reported."""
    fabric = rng.choice(_FABRICS) if world.nodes > 1 else "Socket"
    nic = rng.choice(("eth0", "enp67s0", "ib0", "bond0", "enp71s0", "ens5", "eno1"))
    ident = f"{rng.getrandbits(60):#x}"
    for rank in ranks:
        start, ip = head(world, rank, rng), world.ips[world.node_of(rank)]
        peer = (rank + 1) % world.size
        via = (
            "P2P/CUMEM"
            if nccl_number(world.nccl) >= 1900 and world.node_of(rank) == world.node_of(peer)
            else "P2P/IPC"
            if world.node_of(rank) == world.node_of(peer)
            else f"NET/{fabric}/{rng.randrange(2)}"
        )
        rows = [
            f"Bootstrap : Using {nic}:{ip}<0>",
            f"NET/{'IB' if 'IB' in fabric else 'Socket'} : Using "
            f"[0]{'mlx5_0:1/IB' if 'IB' in fabric else nic} ; OOB {nic}:{ip}<0>",
            f"Using network {fabric}",
        ]
        rows[1:1] = [row for row in _plain_rows(fabric) if rng.random() < 0.4]
        rows += [
            f"Channel {channel:02d}/0 : {rank}[{world.local(rank)}] -> {peer}[{world.local(peer)}] via {via}"
            for channel in range(rng.choice((1, 2, 4)))
        ]
        if complete:
            rows += [
                "Connected all rings",
                f"ncclCommInitRank comm {rng.randrange(1 << 40, 1 << 46):#x} rank {rank} nranks "
                f"{world.size} cudaDev {world.local(rank)} nvmlDev {world.local(rank)} busId "
                f"{bus_of(world, rank):x}000 commId {ident} - Init COMPLETE",
            ]
        for i, row in enumerate(rows):
            story.add(
                Record(
                    time=time + 0.3 * i + rng.random() * 0.1,
                    lines=(f"{start}NCCL INFO {row}",),
                    role=role,
                    rank=rank,
                    node=world.node_of(rank),
                    prefix="c10",
                )
            )


def completion(world: World, rng: Random, peer: int, status: int) -> tuple[str, str]:
    """Place and text of an InfiniBand completion error against a peer node, by NCCL release."""
    version = nccl_number(world.nccl)
    address = f"{world.ips[peer]}<{rng.randrange(30000, 60000)}>"
    vendor = {12: 129, 5: 249, 13: 135, 4: 81, 10: 136}.get(status, 129)
    kind, device = rng.choice(("Send", "Recv")), f"mlx5_{rng.randrange(8)}"
    name = {
        12: "IBV_WC_RETRY_EXC_ERR",
        5: "IBV_WC_WR_FLUSH_ERR",
        13: "IBV_WC_RNR_RETRY_EXC_ERR",
        4: "IBV_WC_LOC_PROT_ERR",
        10: "IBV_WC_REM_ACCESS_ERR",
    }.get(status, "IBV_WC_RETRY_EXC_ERR")
    opcode, length = rng.choice((0, 1, 129, 32635)), rng.choice((0, 0, 0, 21931))
    gids = (
        f" localGid ::ffff:{world.ips[0]} remoteGid{'s' if version >= 2000 else ' '}::ffff:{world.ips[peer]}"
        if rng.random() < 0.4
        else ""
    )
    if version < 1800:
        return (
            f"transport/net_ib.cc:{rng.choice((93, 741, 1161, 1295))}",
            f"NET/IB : Got completion from peer {address} with error {status}, opcode {opcode}, len "
            f"{length}, vendor err {vendor}",
        )
    if version < 2000:
        return (
            f"transport/net_ib.cc:{rng.choice((1295, 1374))}",
            f"NET/IB : Got completion from peer {address} with error {status}, opcode {opcode}, len "
            f"{length}, vendor err {vendor} ({kind}){gids}",
        )
    if version < 2200:
        return (
            f"transport/net_ib.cc:{rng.choice((1718, 1691))}",
            f"NET/IB : Got completion from peer {address} with status={status} opcode={opcode} "
            f"len={length} vendor err {vendor} ({kind}){gids}",
        )
    if version < 2807:
        return (
            f"transport/net_ib.cc:{rng.choice((2293, 2449))}",
            f"NET/IB: Got completion from peer {address} with status={status} opcode={opcode} "
            f"len={length} vendor err {vendor} ({kind}){gids} hca {device}",
        )
    return (
        f"transport/net_ib/p2p.cc:{rng.choice((690, 812))}",
        f"NET/IB: Got completion from peer {address} with status={name}({status}) "
        f"opcode=IBV_WC_{kind.upper()}({opcode}) vendor_err={vendor} hca {device}",
    )


_INIT_CHAIN = ("misc/socket.cc:564", "misc/socket.cc:618", "bootstrap.cc:285", "init.cc:1532", "group.cc:64")
_RUN_CHAIN = ("transport/net.cc:1298", "proxy.cc:694", "proxy.cc:874")


def chain(rng: Random, code: int, init: bool) -> tuple[str, ...]:
    """`file:line -> code` steps up to the thread that gave up."""
    rows = _INIT_CHAIN if init else _RUN_CHAIN
    tail = " [Async thread]" if init else rng.choice((" [Progress Thread]", " [Progress Thread]", " [Proxy Thread]"))
    picked = rows[: rng.randrange(2, len(rows) + 1)]
    shift = rng.randrange(-20, 20)
    moved = [f"{file}:{int(line) + shift} -> {code}" for file, line in (place.split(":") for place in picked)]
    return (*moved[:-1], moved[-1] + tail)


_MEANING = {
    "remote": (
        "remote process exited or there was a network error",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
    ),
    "system": (
        "unhandled system error",
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
    ),
    "internal": ("internal error", "ncclInternalError: Internal check failed."),
    "cuda": ("unhandled cuda error", "ncclUnhandledCudaError: Call to CUDA function failed."),
    "usage": ("invalid usage", "ncclInvalidUsage: This usually reflects invalid usage of NCCL library."),
}


def error_text(world: World, rng: Random, kind: str, last: str) -> str:
    """The text of an exception that carries an NCCL error; `last` is the last warning without its prefix."""
    short, long = _MEANING[kind]
    hint = ""
    if kind != "remote" and nccl_number(world.nccl) >= 1900:
        hint = (
            " (run with NCCL_DEBUG=INFO for details)"
            if kind != "internal"
            else " - please report this issue to the NCCL developers"
        )
    root = "../torch" if world.torch.rank <= 5 else "/pytorch/torch"
    file = f"NCCLUtils.hpp:{rng.choice((219, 268, 317))}"
    if world.torch.rank < 2:
        file = f"ProcessGroupNCCL.cpp:{rng.choice((1275, 1331, 1691))}"
    place = f"{root}/csrc/distributed/c10d/{file}"
    name = "torch.distributed.DistBackendError" if world.torch.rank >= 1 else "RuntimeError"
    tail = f"\nLast error:\n{last}" if world.torch.rank >= 0 else ""
    return f"{name}: NCCL error in: {place}, {short}{hint}, NCCL version {world.nccl}\n{long}{tail}"


def async_error(world: World, rank: int, time: float, rng: Random, kind: str, last: str) -> list[str]:
    """The watchdog's lines when a communicator reports an error of its own."""
    short, long = _MEANING[kind]
    prefix = f"[Rank {rank}] "
    start = c10d.head(world, rank, time, 541 if world.torch.rank < 6 else world.torch.timeout + 40, rng)
    return [
        f"{start}{prefix}found async exception when checking for NCCL errors: NCCL error: {short}, "
        f"NCCL version {world.nccl}",
        long,
        "Last error:",
        last,
    ]


def raised(
    story: Story,
    world: World,
    rng: Random,
    rank: int,
    time: float,
    kind: str,
    last: str,
    op: str,
    strength: int = 0,
    role: str = "wait",
) -> None:
    """A rank's Python code gets the NCCL error as an exception."""
    frames = tracebacks.outer(world, rng) + tracebacks.inner_wait(world, rng, op, barrier=rng.random() < 0.5)
    lines = tracebacks.render(world, rng, frames, error_text(world, rng, kind, last))
    story.add(
        Record(
            time=time,
            lines=lines,
            role=role,
            rank=rank,
            node=world.node_of(rank),
            prefix="exc",
            strength=strength,
        )
    )
