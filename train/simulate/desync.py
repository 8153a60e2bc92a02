"""Desynchronised ranks: they issue different calls, so what one waits for never comes."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from train.simulate import ambient, monitor, tracebacks, waiting
from train.simulate.astray import notified, spoilt_step
from train.simulate.collectives import Call, meeting_call, other_call, training_call
from train.simulate.record import Record
from train.simulate.scene import Scene
from train.simulate.thrown import thrown_out
from train.simulate.world import World

_INIT = (
    "shape_mismatch",
    "config_mismatch",
    "version_mismatch",
    "resume_mismatch",
    "node_local_cache",
    "state_mismatch",
    "local_rank_mismatch",
    "autotune_collective",
)
_RANK0 = ("rank0_only_collective", "early_stop_on_one_rank", "rank_local_clock", "wrong_group")
#: How the mismatch becomes visible, with a weight.
_WAYS = {
    "pair": 36,
    "behind": 9,
    "notified": 9,
    "silent": 20,
    "fingerprint": 8,
    "report": 5,
    "groups": 9,
    "sizes": 7,
}
#: Causes in which a batch without a usable loss takes a rank out of the sequence.
_NAN = ("data_dependent_branch", "skipped_step_on_one_rank", "unused_params")


def act(scene: Scene, cause: str) -> None:
    """One rank (or a few) leaves the common sequence; the others' call and its own are both pending."""
    rng, world, story = scene.rng, scene.world, scene.story
    onset = world.start
    early = rng.random() < (0.6 if cause in _INIT else 0.08)
    call = (
        meeting_call(rng, world, early=True)
        if early
        else training_call(rng, world)
        if rng.random() < 0.8
        else meeting_call(rng, world, early=False)
    )
    members = call.group.members
    odd = _odd_ranks(rng, cause, members)
    others = tuple(rank for rank in members if rank not in odd)
    scene.begin(onset, started=not early)
    story.initiating = odd
    if thrown_out(scene, cause, odd, onset, early=early):
        scene.decoys()
        scene.finish(scene.aborts(story.waiting[:16]))
        return
    spoilt = cause in _NAN and not early and not scene.blind and rng.random() < 0.18
    if spoilt:
        spoilt_step(scene, odd[0], onset)
    way = rng.choices(list(_WAYS), list(_WAYS.values()))[0]
    if scene.blind:
        way = "silent"
    told = _show(scene, cause, way, call, odd, others, onset)
    sharded = {"fsdp", "deepspeed"} & set(world.tags) and call.numel_in > 1
    if not told and not scene.blind and sharded and odd == (0,) and rng.random() < 0.3:
        told = ambient.unpaired(scene, cause, 0, onset - rng.uniform(0.1, 3))
    if (not told and not spoilt) or rng.random() < 0.45:
        scene.evidence(
            cause,
            odd,
            onset - rng.uniform(0.2, 40),
            onset + 0.2 * (story.detection - onset),
            count=rng.choice((1, 1, 2)),
        )
    scene.decoys()
    scene.finish(scene.aborts(story.waiting[:16]))


def _odd_ranks(rng: Random, cause: str, members: tuple[int, ...]) -> tuple[int, ...]:
    if len(members) < 2:
        return members
    if cause in _RANK0 and rng.random() < 0.75:
        return (members[0],)
    if len(members) > 4 and rng.random() < 0.2:
        return tuple(sorted(rng.sample(members, rng.randrange(2, len(members) // 2 + 1))))
    return (rng.choice(members),)


def _show(
    scene: Scene,
    cause: str,
    way: str,
    call: Call,
    odd: tuple[int, ...],
    others: tuple[int, ...],
    onset: float,
) -> bool:
    """Make the ranks visible; returns whether the mismatch itself can be read."""
    rng, world, story = scene.rng, scene.world, scene.story
    if not others or way == "silent":
        scene.show_wait(
            others or odd,
            lambda rank: call,
            onset,
            kinds={"watchdog": 80.0, "gloo": 6.0, "blocking": 8.0, "aborted": 3.0, "stacks": 3.0},
            late=odd,
            phase=cause if rng.random() < 0.5 else None,
        )
        return False
    if way == "fingerprint":
        return _fingerprint(scene, call, odd, others, onset)
    if way == "notified" and world.torch.rank >= 6 and call.group.ident == 0:
        return notified(scene, call, odd, others, onset)
    if way == "sizes" and rng.random() < 0.7:
        call = replace(call, op=rng.choice(("ALLTOALL", "ALLTOALL_BASE", "BROADCAST", "BROADCAST")))
        call = replace(call, numel_in=rng.randrange(900, 20000) if call.op == "BROADCAST" else call.numel_in)
    theirs = _their_call(rng, world, way, call)
    everyone = tuple(sorted((*odd, *others)))
    sizes = (
        {
            rank: replace(call, numel_in=n, numel_out=n)
            for rank in everyone
            for n in [max(1, int(call.numel_in * rng.uniform(0.05, 3)))]
        }
        if way == "sizes"
        else {}
    )

    def call_of(rank: int) -> Call:
        return sizes.get(rank) or (theirs if rank in odd else call)

    detection = waiting.watchdog(story, world, rng, everyone, call_of, onset)
    story.detection, story.collective = detection, call.op
    story.waiting = everyone if len(everyone) <= 2 or rng.random() < 0.4 else others
    if way == "sizes" or len(odd) * 2 == len(everyone):
        story.initiating = () if way == "sizes" or rng.random() < 0.5 else odd
    _mark_pair(scene, odd, others)
    if way == "report":
        _report(scene, call, odd, others, detection)
    return True


def _their_call(rng: Random, world: World, way: str, call: Call) -> Call:
    if way == "behind":
        return replace(call, seq=max(1, call.seq - 1), ahead=0, numel_in=call.numel_in, op=call.op)
    if way == "groups" and len(world.groups) > 1:
        group = next(found for found in world.groups if found.ident != call.group.ident)
        op, numel = rng.choice((("ALLREDUCE", 1), ("ALLGATHER", 1), ("BROADCAST", 8), ("_ALLGATHER_BASE", 4096)))
        if set(group.members) >= set(call.group.members):
            return Call(op=op, numel_in=numel, numel_out=numel, group=group, seq=rng.randrange(2, max(3, call.seq)))
    return other_call(rng, world, call)


def _mark_pair(scene: Scene, odd: tuple[int, ...], others: tuple[int, ...]) -> None:
    """The odd rank's timeout line and one of the others' must survive together: they are the evidence."""
    shown = {odd[0], others[0]}
    records = scene.story.records
    for i, record in enumerate(records):
        if record.role == "wait" and record.rank in shown:
            records[i] = replace(record, strength=3)


def _tensor(call: Call, rank_call: Call, rng: Random) -> str:
    dims = (
        str(rank_call.numel_in) if rng.random() < 0.6 or rank_call.numel_in % 64 else f"{rank_call.numel_in // 64}, 64"
    )
    kind = rng.choice(("Float", "BFloat16", "Long", "Half"))
    return (
        f"TensorShape=[{dims}], TensorDtypes={kind}, TensorDeviceTypes=TensorOptions(dtype=float ("
        "default), device=cuda, layout=Strided (default), requires_grad=false (default), "
        "pinned_memory=false (default), memory_format=(nullopt))"
    )


def _fingerprint(scene: Scene, call: Call, odd: tuple[int, ...], others: tuple[int, ...], onset: float) -> bool:
    """TORCH_DISTRIBUTED_DEBUG=DETAIL compares the calls and raises on every rank at once."""
    rng, world, story = scene.rng, scene.world, scene.story
    theirs = other_call(rng, world, call)
    frames = tracebacks.outer(world, rng) + tracebacks.inner_wait(
        world, rng, call.op, call.op == "ALLREDUCE" and call.numel_in == 1
    )
    for rank, mine, other, yours in ((others[0], call, odd[0], theirs), (odd[0], theirs, others[0], call)):
        number = "" if world.torch.rank < 1 else "SequenceNumber={}, OpType="
        first = f"CollectiveFingerPrint({number.format(mine.seq) or 'OpType='}{mine.op}, {_tensor(call, mine, rng)})"
        second = (
            f"CollectiveFingerPrint({number.format(yours.seq) or 'OpType='}{yours.op}, {_tensor(call, yours, rng)})"
        )
        parts = "".join(
            (
                f"\t Sequence number: {mine.seq}vs {yours.seq}" if mine.seq != yours.seq else "",
                f"  Op type: {mine.op}vs {yours.op}" if mine.op != yours.op else "",
                f"  Tensor Tensor shapes: {mine.numel_in}vs {yours.numel_in}"
                if mine.numel_in != yours.numel_in
                else "",
            )
        )
        final = (
            f"RuntimeError: Detected mismatch between collectives on ranks. Rank {rank} is running "
            f"collective: {first}, but Rank {other} is running collective: {second}."
        )
        final += f"Collectives differ in the following aspects: {parts}" if world.torch.rank >= 1 else ""
        lines = tracebacks.render(world, rng, frames, final)
        story.add(
            Record(
                time=onset + rng.random(),
                lines=lines,
                role="wait",
                rank=rank,
                node=world.node_of(rank),
                prefix="exc",
                strength=3,
            )
        )
        if rng.random() < 0.5:
            break
    story.detection, story.waiting, story.collective = onset, others, call.op
    return True


def _report(scene: Scene, call: Call, odd: tuple[int, ...], others: tuple[int, ...], detection: float) -> None:
    """The report of TORCH_NCCL_DESYNC_DEBUG from one rank: who started and who did not."""
    rng, world = scene.rng, scene.world
    place = ", ".join(str(call.group.place(rank)) for rank in odd)
    rest = ", ".join(str(call.group.place(rank)) for rank in others)
    rank = others[0]
    parts = [
        " - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:",
        f"     [{place}] finished collective #{call.seq - 1}, but didn't join collective #{call.seq} (count from 1)",
        " - Snapshot of ranks' latest states:",
        f"   #{call.seq} started ranks:",
        f"     [{rest}] started {call.op}",
    ]
    lines = monitor.desync_report(world, call, rank, detection + 0.01, parts, rng)
    scene.story.add(
        Record(
            time=detection + 0.01,
            lines=tuple(lines),
            role="wait",
            rank=rank,
            node=world.node_of(rank),
            prefix="c10",
            strength=2,
        )
    )
