"""Which collective the ranks stand in: operation, sizes, group, number in its group's sequence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from train.simulate.world import Group, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One collective as the watchdog would print it. `ahead` is how many more the host had enqueued."""

    op: str
    numel_in: int
    numel_out: int
    group: Group
    seq: int
    ahead: int = 0


_PERIODS = {"DDP": (2, 9), "FSDP": (60, 200), "FSDP2": (60, 200), "Megatron": (20, 400), "NeMo": (20, 400)}


def _seq(rng: Random, world: World) -> int:
    low, high = _PERIODS.get(world.framework, (4, 120))
    return max(6, world.step * rng.randrange(low, high) + rng.randrange(0, 40))


def _shard(rng: Random) -> int:
    hidden = rng.choice((768, 1024, 1600, 2048, 3072, 4096, 5120, 8192))
    return hidden * rng.choice((1, 96, 128, 384, 512, 1536, 3072, 4096, 12800)) + rng.choice((0, 0, 0, 0, hidden, 512))


def _odd(rng: Random) -> int:
    return rng.choice((rng.randrange(10**5, 10**7), rng.randrange(10**7, 6 * 10**8), 1024 * rng.randrange(100, 90000)))


def _gather(rng: Random, group: Group) -> tuple[str, int, int]:
    shard = _shard(rng)
    return "_ALLGATHER_BASE", shard, shard * len(group.members)


def _scatter(rng: Random, group: Group) -> tuple[str, int, int]:
    shard = _shard(rng)
    return "_REDUCE_SCATTER_BASE", shard * len(group.members), shard


def _list(rng: Random, group: Group) -> tuple[str, int, int]:
    """A gather into a list of tensors: metrics, predictions, lengths."""
    count = rng.choice((1, 2, 8, rng.randrange(20, 9000)))
    return "ALLGATHER", count, count * len(group.members)


def _same(op: str, numel: int) -> tuple[str, int, int]:
    return op, numel, numel


def _training_op(rng: Random, world: World, group: Group) -> tuple[str, int, int]:
    framework = world.framework
    if framework in {"FSDP", "FSDP2", "torchtitan", "verl", "DeepSpeed-ZeRO3"}:
        if group.desc == "mesh_dp_replicate":
            return _same("ALLREDUCE", _odd(rng))
        draw = rng.random()
        if draw < 0.27:
            return _same("ALLREDUCE", rng.choice((1, 1, 2, 11, _odd(rng))))
        if draw < 0.52:
            return rng.choice((_same("BROADCAST", _odd(rng)), ("COALESCED", 2**64 - 1, 2**64 - 1), _list(rng, group)))
        return _gather(rng, group) if draw < 0.87 else _scatter(rng, group)
    if framework in {"Megatron", "NeMo"}:
        if "PIPELINE" in group.desc:
            return (
                rng.choice((("COALESCED", 0, 0), ("SEND", _shard(rng), 0), ("RECV", 0, _shard(rng))))
                if rng.random() < 0.6
                else ("COALESCED", 2**64 - 1, 2**64 - 1)
            )
        if "EXPERT" in group.desc:
            return _same("ALLTOALL_BASE", _shard(rng))
        return rng.choice((_gather(rng, group), _scatter(rng, group), _same("ALLREDUCE", _shard(rng))))
    if framework == "DeepSpeed-ZeRO2":
        return rng.choice(
            (
                _same("ALLREDUCE", _odd(rng)),
                _same("REDUCE", _odd(rng)),
                _scatter(rng, group),
                _gather(rng, group),
            )
        )
    return (
        _same("ALLREDUCE", _odd(rng))
        if rng.random() < 0.76
        else _same("BROADCAST", rng.choice((1, 53, 256, 1024, _odd(rng))))
    )


def _small_op(rng: Random, world: World) -> tuple[str, int, int]:
    size = world.size
    return rng.choice(
        (
            ("ALLREDUCE", 1, 1),
            ("ALLGATHER", 1, size),
            ("BROADCAST", 1, 1),
            ("ALLREDUCE", 2, 2),
            ("ALLREDUCE", 4, 4),
            ("GATHER", 1, size),
            ("BROADCAST", 128, 128),
            ("_ALLGATHER_BASE", 1, size),
            ("ALLGATHER", rng.randrange(20, 9000), rng.randrange(20, 9000) * size),
            ("BROADCAST", 8, 8),
        )
    )


def training_call(rng: Random, world: World) -> Call:
    """A collective of the ordinary step."""
    group = rng.choice(world.groups[1:]) if len(world.groups) > 1 and rng.random() < 0.75 else world.groups[0]
    op, numel_in, numel_out = _training_op(rng, world, group)
    ahead = rng.choice((0, 0, 0, 1, 1, 2, 3, 6, 14, 60, 700))
    return Call(op=op, numel_in=numel_in, numel_out=numel_out, group=group, seq=_seq(rng, world), ahead=ahead)


def meeting_call(rng: Random, world: World, *, early: bool) -> Call:
    """Where ranks meet between steps: a barrier, or a small gather; `early` = before the first step."""
    op, numel_in, numel_out = ("ALLREDUCE", 1, 1) if rng.random() < 0.52 else _small_op(rng, world)
    seq = rng.choice((1, 1, 2, 2, 3, 4, 5, 7)) if early else _seq(rng, world)
    return Call(op=op, numel_in=numel_in, numel_out=numel_out, group=world.groups[0], seq=seq)


def first_call(rng: Random, world: World) -> Call:
    """The first collective of a group: nothing ever completed on it."""
    group = rng.choice(world.groups)
    op, numel_in, numel_out = rng.choice(
        (("ALLREDUCE", 1, 1), _training_op(rng, world, group), ("BROADCAST", _odd(rng), 0))
    )
    numel_out = numel_out if op != "BROADCAST" else numel_in
    return Call(
        op=op,
        numel_in=numel_in,
        numel_out=numel_out,
        group=group,
        seq=1,
        ahead=rng.choice((0, 0, 1, 40, 546)),
    )


def stage_call(rng: Random, world: World) -> Call:
    """The first exchange between pipeline stages."""
    op = rng.choice(("COALESCED", "COALESCED", "SEND", "RECV"))
    size = 0 if op == "COALESCED" else _shard(rng)
    return Call(op=op, numel_in=size, numel_out=size, group=world.groups[0], seq=rng.choice((1, 2, 3, 3, 4)))


def other_call(rng: Random, world: World, call: Call) -> Call:
    """A call that does not match `call`: another size, another operation, or one off in the sequence."""
    way = rng.random()
    if way < 0.55 and call.numel_in > 8:
        numel = max(1, int(call.numel_in * rng.choice((0.5, 0.37, 2, 1.7, 0.02, rng.uniform(0.01, 3)))))
        scale = call.numel_out / max(call.numel_in, 1)
        return replace(call, numel_in=numel, numel_out=max(1, round(numel * scale)))
    ops = [
        op
        for op in (
            _training_op(rng, world, call.group),
            _small_op(rng, world),
            ("ALLREDUCE", 1, 1),
            _gather(rng, call.group),
        )
        if op[0] != call.op
    ]
    op, numel_in, numel_out = rng.choice(ops or [("BROADCAST", 7, 7)])
    seq = call.seq + (rng.choice((-1, 1, -1, 2)) if way > 0.75 and call.seq > 3 else 0)
    return replace(call, op=op, numel_in=numel_in, numel_out=numel_out, seq=seq)


def widen(world: World, call: Call, late: tuple[int, ...]) -> Call:
    """The same call, on the default group when its own has nobody left to wait or nobody late."""
    members = set(call.group.members)
    if members - set(late) and members & set(late):
        return call
    return replace(call, group=world.groups[0])
