"""Faults of the transport: both ends are in the call and bytes do not move. Often no watchdog line at all."""

from __future__ import annotations

from collections.abc import Sequence

from train.simulate import nccl, sidefiles, teardown
from train.simulate.collectives import first_call, training_call
from train.simulate.record import Record
from train.simulate.scene import Scene
from train.simulate.thrown import thrown_out
from train.simulate.versions import nccl_number

_INIT = (
    "wrong_interface",
    "firewall",
    "dns",
    "cni",
    "gid",
    "partition_key",
    "mtu",
    "efa",
    "registration",
    "fabric_manager",
    "p2p_acs",
    "transport_resources",
    "gdr_off",
    "node_unreachable",
    "socket",
)
_VERBS = {
    "ib_retry_exceeded": 12,
    "rnr_retry_exceeded": 13,
    "link_flap": 12,
    "gid": 12,
    "partition_key": 12,
    "pfc_storm": 12,
    "congestion": 12,
    "nic_reset": 12,
    "nic_stall": 12,
    "nic_hardware": 12,
    "rails": 12,
    "sm_change": 12,
    "mtu_mismatch": 12,
    "rdma_stall": 12,
    "node_unreachable": 12,
}
_SOCKETS = ("wrong_interface", "firewall", "node_unreachable", "socket", "dns", "cni", "low_bandwidth")
_LOCAL = (
    "nvlink_down",
    "nvswitch",
    "fabric_manager",
    "p2p_acs_iommu",
    "pcie_errors",
    "gdr_off",
    "registration",
    "transport_resources",
)


#: How often the launcher's report of a rank that raised stands in the log.
_REPORTED = 0.55
_ERRNO = ("113(No route to host)", "110(Connection timed out)", "111(Connection refused)")


def act(scene: Scene, cause: str) -> None:
    """Draw how the fault shows: completion errors, socket errors, a silent first collective, a slow one."""
    rng, world, story = scene.rng, scene.world, scene.story
    onset = world.start
    early = any(word in cause for word in _INIT) and rng.random() < 0.75
    quiet = cause in _VERBS and rng.random() < 0.5
    scene.begin(onset, started=not early and not quiet)
    if early and thrown_out(scene, cause, (rng.randrange(world.size),), onset, early=True):
        scene.decoys()
        scene.finish(scene.aborts(story.waiting[:16]))
        return
    if (early or cause in _VERBS) and rng.random() < 0.4:
        shown = tuple(range(min(world.size, rng.choice((1, 1, 2, 4)))))
        nccl.bringup(story, world, rng, onset - 8, shown, complete=rng.random() < 0.4, role="context")
    built = _built(scene, cause, onset) if not scene.blind else False
    if not built:
        _waits(scene, cause, onset, early)
    if not built or rng.random() < 0.4:
        _evidence(scene, cause, onset)
    scene.decoys()
    scene.finish({rank: (1 if early and rng.random() < 0.6 else -6) for rank in story.waiting[:16]})


def _evidence(scene: Scene, cause: str, onset: float) -> None:
    rng, world, story = scene.rng, scene.world, scene.story
    ranks = (rng.randrange(world.size),)
    stop = max(onset + 1, story.detection - 1)
    scene.evidence(
        cause,
        ranks,
        onset - rng.uniform(1, 60),
        min(stop, onset + 0.5 * (stop - onset) + 2),
        count=rng.choice((1, 1, 2, 3)),
    )


def _built(scene: Scene, cause: str, onset: float) -> bool:
    rng = scene.rng
    if cause in _VERBS and scene.world.nodes > 1 and rng.random() < 0.55:
        _completion(scene, onset, _VERBS[cause])
        return True
    if any(word in cause for word in _SOCKETS) and scene.world.nodes > 1 and rng.random() < 0.72:
        _socket(scene, cause, onset)
        return True
    return False


def _waits(scene: Scene, cause: str, onset: float, early: bool) -> None:
    """The wait of every rank in a call that all of them have started."""
    rng, world, story = scene.rng, scene.world, scene.story
    call = first_call(rng, world) if early else training_call(rng, world)
    kinds = {"watchdog": 70.0, "blocking": 8.0, "stuck": 8.0, "stacks": 5.0, "gloo": 5.0}
    cards = "p2p" in cause and world.nodes == 1
    # A first meeting often stands in some phase; where the topology explains the hang, it is innocent.
    shown = cards and not scene.blind and rng.random() < 0.5
    phase = "tokenising" if shown and early and rng.random() < 0.4 else None
    scene.show_wait(call.group.members, lambda rank: call, onset, kinds=kinds, phase=phase, telling=False)
    if shown:
        sidefiles.topology(scene, story.detection + 300, across=True, strength=2 if early else 1)
    if rng.random() < 0.25 and not scene.blind and world.nodes > 1:
        kind = rng.choice(("remote", "system", "internal"))
        last = rng.choice(
            (
                f"socketStartConnect: Connect to {world.ips[-1]}<{rng.randrange(30000, 60000)}> "
                "failed : Connection timed out",
                f"Net : Call to recv from {world.ips[-1]}<{rng.randrange(30000, 60000)}> failed : Connection timed out",
            )
        )
        nccl.raised(
            story,
            world,
            rng,
            rng.randrange(world.size),
            story.detection + 0.4,
            kind,
            last,
            call.op,
            strength=2,
            role="evidence",
        )


def _completion(scene: Scene, onset: float, status: int) -> None:
    """InfiniBand completion errors: the first status is the cause, status 5 after it is flush noise."""
    rng, world, story = scene.rng, scene.world, scene.story
    peer = rng.randrange(world.nodes)
    printers = [rank for rank in range(world.size) if world.node_of(rank) != peer]
    printers = rng.sample(printers, min(len(printers), rng.choice((1, 1, 2, 4))))
    text = ""
    for i, rank in enumerate(sorted(printers)):
        at = onset + rng.uniform(0.0, 1.5) + 0.1 * i
        count = rng.choice((1, 1, 2, 4))
        for j in range(count):
            code = status if j == 0 or rng.random() < 0.4 else 5
            place, text = nccl.completion(world, rng, peer, code)
            lines = nccl.warn(world, rank, at + j * 0.001, place, text, nccl.chain(rng, 6, False), rng)
            story.add(
                Record(
                    time=at + j * 0.001,
                    lines=tuple(lines),
                    role="evidence" if code == status else "wait",
                    rank=rank,
                    node=world.node_of(rank),
                    prefix="c10",
                    strength=3 if code == status and i < 2 and j < 2 else 1,
                )
            )
    story.waiting, story.detection, story.collective = (), onset, None
    _consequence(scene, tuple(sorted(printers)), onset + 2, "remote", text)


def _consequence(scene: Scene, ranks: tuple[int, ...], at: float, kind: str, text: str) -> None:
    """What the printing ranks do next: an async NCCL error, an exception, or nothing that was kept."""
    rng, world, story = scene.rng, scene.world, scene.story
    draw = rng.random()
    if draw < 0.5 and world.torch.rank >= 0:
        for rank in ranks[:2]:
            lines = nccl.async_error(world, rank, at, rng, kind, text)
            story.add(
                Record(
                    time=at,
                    lines=tuple(lines),
                    role="wait",
                    rank=rank,
                    node=world.node_of(rank),
                    prefix="c10",
                )
            )
    elif draw < 0.7:
        nccl.raised(story, world, rng, ranks[0], at, kind, text, "ALLREDUCE")
        _exits(scene, ranks[0], at + 1)


#: Addresses that only their own host can reach.
_LOCAL_IPS = ("172.17.0.2", "169.254.3.1", "10.88.0.1", "192.168.122.1", "fe80::9a03:9bff:fe1c%ib0", "127.0.1.1")
_LOCAL_NICS = ("docker0", "virbr0", "ip6tnl0", "cni0", "tailscale0", "eth0")
_REASONS = ("Connection timed out", "No route to host", "Connection refused", "Network is unreachable")
_RAISED = ("system", "system", "remote", "internal")


def _socket(scene: Scene, cause: str, onset: float) -> None:
    """Connections between nodes that are refused, unroutable or time out, with NCCL's return chain."""
    rng, world, story = scene.rng, scene.world, scene.story
    node, local = rng.randrange(1, world.nodes), cause in {"wrong_interface", "cni"}
    rank = rng.choice([r for r in range(world.size) if world.node_of(r) != node] or [0])
    bad = rng.choice(_LOCAL_IPS) if local else world.ips[node]
    place, text = _unconnected(scene, bad)
    at = onset + rng.uniform(20, 140)
    lines = nccl.warn(world, rank, at, place, text, nccl.chain(rng, rng.choice((2, 3, 6)), True), rng)
    _tell(scene, rank, at, lines)
    if local:
        nic = rng.choice(_LOCAL_NICS)
        _tell(scene, rank, onset - 1, [f"{nccl.head(world, rank, rng)}NCCL INFO Bootstrap : Using {nic}:{bad}<0>"])
    story.waiting, story.detection = (), at
    if rng.random() < 0.55:
        nccl.raised(story, world, rng, rank, at + 0.5, rng.choice(_RAISED), text, "ALLREDUCE")
        _exits(scene, rank, at + 1)


def _unconnected(scene: Scene, ip: str) -> tuple[str, str]:
    """Where and how this release of NCCL says that a connection did not come about."""
    rng, address = scene.rng, f"{ip}<{scene.rng.randrange(30000, 60000)}>"
    reason, version = rng.choice(_REASONS), nccl_number(scene.world.nccl)
    if version < 1600:
        return f"include/socket.h:{rng.choice((403, 409, 421))}", f"Net : Connect to {address} failed : {reason}"
    if version < 2400:
        place = f"misc/socket.cc:{rng.choice((456, 484, 503))}"
        return place, f"socketStartConnect: Connect to {address} failed : {reason}"
    returned = f"returned {rng.choice(_ERRNO)} errno 115, exceeded error retry count after 35 attempts"
    return f"misc/socket.cc:{rng.choice((508, 537, 752))}", f"socketPollConnect: connect to {address} {returned}"


def _tell(scene: Scene, rank: int, at: float, lines: Sequence[str]) -> None:
    node = scene.world.node_of(rank)
    told = Record(time=at, lines=tuple(lines), role="evidence", rank=rank, node=node, prefix="c10", strength=3)
    scene.story.add(told)


def _exits(scene: Scene, rank: int, at: float) -> None:
    """A rank that the transport threw out exits with 1, which its launcher reports: the cause stays the transport."""
    if scene.rng.random() < _REPORTED:
        teardown.end(scene.story, scene.world, scene.rng, at, {rank: 1})
