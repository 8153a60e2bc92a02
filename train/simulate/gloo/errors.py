"""The last line of a traceback that gloo ends: a wait that ran out, a peer that is gone, a size that differs."""

from __future__ import annotations

from random import Random

from train.simulate.world import World

_ROOTS = (
    "/pytorch/third_party/gloo/gloo",
    "/__w/pytorch/pytorch/third_party/gloo/gloo",
    "../third_party/gloo/gloo",
    "/opt/conda/conda-bld/pytorch/work/third_party/gloo/gloo",
)
_TAIL = (
    ". This is typically caused by a remote worker crashing. Check the logs of the remote worker before "
    "reporting an error. GLHF! 🏖️"
)


def root_of(world: World) -> str:
    """Where gloo was built; one place for all ranks of a run."""
    return _ROOTS[int(world.start) % len(_ROOTS)]


def timed_out(world: World, rng: Random, way: str | None = None) -> str:
    """A wait that ran out; `way` is recv or send."""
    way = way or rng.choice(("recv", "recv", "send"))
    line = (129 if way == "send" else 78) if world.torch.rank >= 8 else (137 if way == "send" else 81)
    return (
        f"RuntimeError: [{root_of(world)}/transport/tcp/unbound_buffer.cc:{line}] Timed out waiting "
        f"{world.timeout_s * 1000}ms for {way} operation to complete"
    )


def lost(world: World, rng: Random, peer: int, kind: str = "") -> str:
    """The connection to `peer` is gone: closed, reset or (fabric) timed out."""
    where = f"[{world.ips[world.node_of(peer)]}]:{rng.randrange(1100, 65000)}"
    line = rng.choice((525, 534, 547, 553, 575, 598))
    if not kind:
        kind = "closed" if rng.random() < 0.8 else "reset"
    text = {
        "closed": f"Connection closed by peer {where}{_TAIL if world.torch.rank >= 10 else ''}",
        "reset": f"Read error {where}: Connection reset by peer{_TAIL if world.torch.rank >= 12 else ''}",
        "timeout": f"Read error {where}: Connection timed out",
        "abort": f"Read error {where}: Software caused connection abort{_TAIL if world.torch.rank >= 10 else ''}",
    }[kind]
    return f"RuntimeError: [{root_of(world)}/transport/tcp/pair.cc:{line}] {text}"


def size_differs(world: World, rng: Random) -> str:
    """One rank brought more than another expected."""
    small = rng.choice((4, 64, 96, 128, 1024))
    tail = (
        ". Received data size doesn't match expected size. Is there a distributed collective mismatch in your code?"
        if world.torch.rank >= 10
        else ""
    )
    return (
        f"RuntimeError: [enforce fail at {root_of(world)}/transport/tcp/pair.cc:{rng.choice((446, 454, 506))}] "
        f"op.preamble.length <= op.nbytes. {small * rng.choice((2, 3, 8))} vs {small}{tail}"
    )


def no_mesh(world: World, rng: Random) -> tuple[str, ...]:
    """The ranks of each node never connected to the others: the last line for each node, one for all or one each."""
    where = f"[{world.ips[-1]}]:{rng.randrange(1100, 65000)}"
    pair, socket = f"{root_of(world)}/transport/tcp/pair", f"{root_of(world)}/transport/tcp/socket.cc:142"
    reason = rng.choice(("Network is unreachable", "No route to host", "Connection refused"))
    slow = (
        f"RuntimeError: Gloo connectFullMesh failed with [{pair}.h:311] Connect timeout [none]",
        f"RuntimeError: [enforce fail at {socket}] rv != -1. -1 vs -1. connect: {reason}",
    )
    if rng.random() < 0.6:
        return slow if world.nodes == 2 and rng.random() < 0.75 else (rng.choice(slow),)
    text = rng.choice(
        (
            f"Gloo connectFullMesh failed with [{root_of(world)}/transport/tcp/pair.cc:{rng.choice((144, 149))}] "
            "no error",
            f"[{root_of(world)}/transport/tcp/pair.cc:{rng.choice((799, 853))}] connect {where}: Connection timed out",
            f"[{root_of(world)}/transport/tcp/pair.cc:799] connect {where}: No route to host",
            f"Gloo connectFullMesh failed with Caught exception in connect: connect {where}: Connection refused",
        )
    )
    return (f"RuntimeError: {text}",)


def mismatch(world: World, rng: Random, rank: int, odd: int, mine: str, theirs: str) -> str:
    """Checked collectives name both calls."""
    seq = rng.randrange(12, 400)

    def print_of(op: str) -> str:
        return (
            f"CollectiveFingerPrint(SequenceNumber={seq}, OpType={op}, TensorShape=[{rng.choice((1, 64, 4096))}], "
            "TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cpu, "
            "layout=Strided (default), requires_grad=false (default), pinned_memory=false (default), "
            "memory_format=(nullopt)))"
        )

    return (
        f"RuntimeError: Detected mismatch between collectives on ranks. Rank {rank} is running collective: "
        f"{print_of(mine)}, but Rank {odd} is running collective: {print_of(theirs)}."
        f"Collectives differ in the following aspects: \t Op type: {mine}vs {theirs}"
    )


def unreduced(rank: int, indices: str) -> str:
    """DDP: parameters of the step before got no gradient on this rank."""
    return (
        "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This "
        "error indicates that your module has parameters that were not used in producing loss. You can enable unused "
        "parameter detection by passing the keyword argument `find_unused_parameters=True` to "
        "`torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` function outputs "
        "participate in calculating loss. \nIf you already have done the above, then the distributed data parallel "
        "module wasn't able to locate the output tensors in the return value of your module's `forward` function. "
        "Please include the loss function and the structure of the return value of `forward` of your module when "
        "reporting this issue (e.g. list, dict, iterable).\n"
        f"Parameter indices which did not receive grad for rank {rank}: {indices}\n"
        " In addition, you can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL to print "
        "out information about which particular parameters did not receive gradient on this rank as part of this error"
    )
