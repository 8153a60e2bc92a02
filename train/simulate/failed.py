"""A rank dies or leaves first; the others wait for it, or lose their connection to it."""

from __future__ import annotations

from random import Random

from train.simulate import clock, deaths, nccl, raised, teardown, tracebacks
from train.simulate.collectives import Call, meeting_call, training_call
from train.simulate.record import Record, Story
from train.simulate.scene import Scene
from train.simulate.versions import nccl_number
from train.simulate.world import World

_CODES = {
    "host_oom_kill": -9,
    "gpu_oom": 1,
    "exception": 1,
    "dataloader_worker_killed": 1,
    "shm_exhausted": -7,
    "fd_exhausted": 1,
    "disk_full": 1,
    "disk_readonly": 1,
    "gpu_fault": 1,
    "gpu_lost": 1,
    "sdc": 1,
    "segfault": -11,
    "abort": -6,
    "signal": -15,
    "early_exit": 0,
    "preemption": -15,
    "time_limit": -15,
    "node_loss": 0,
    "node_unhealthy": -9,
    "probe_kill": -9,
    "port_in_use": 1,
    "checkpoint_process_died": 1,
    "checkpoint_download_failed": 1,
    "offload_process_died": 1,
    "stale_shared_memory": 1,
    "training_diverged": 1,
    "remote_peer_died": 1,
    "host_hw_error": -7,
}
_NODE = ("preemption", "node_loss", "node_unhealthy", "time_limit", "probe_kill", "host_hw_error", "signal")
_EARLY = ("port_in_use", "checkpoint_download_failed", "stale_shared_memory")


def act(scene: Scene, cause: str) -> None:
    """The death comes just before the onset; its node is told to stop, others wait or lose it."""
    rng, world, story = scene.rng, scene.world, scene.story
    onset = world.start
    dead = _dead(rng, scene, cause)
    early = cause in _EARLY and rng.random() < 0.6
    death = onset - rng.uniform(0.1, min(30.0, world.step_s + 2))
    scene.begin(death, started=not early)
    story.onset, story.initiating = onset, dead
    code = _CODES.get(cause, 1)
    final = deaths.final_words(scene, rng, cause, dead[0])
    delayed = final is not None and not scene.blind and world.nodes == 1 and rng.random() < 0.18
    told = not scene.blind and not delayed and _shown_death(scene, cause, dead, death, code)
    left = survivors(scene, dead, death, code)
    peers(scene, left, dead, onset, early, timed=delayed)
    if delayed and final is not None:
        deaths.late_traceback(scene, dead[0], final)
    elif not told or rng.random() < 0.45:
        scene.evidence(cause, dead, death - 20, death - 0.01, count=rng.choice((1, 1, 2)))
    scene.decoys()
    if left and not story.hung:
        scene.finish(scene.aborts(left[:16]))


def _dead(rng: Random, scene: Scene, cause: str) -> tuple[int, ...]:
    world = scene.world
    if cause in _NODE and world.nodes > 1 and rng.random() < 0.8:
        return world.ranks_on(rng.randrange(world.nodes))
    return (rng.randrange(world.size),)


def _shown_death(scene: Scene, cause: str, dead: tuple[int, ...], at: float, code: int) -> bool:
    """The dying rank's traceback, memory error or kernel line; False leaves it to the inventory."""
    rng, world, story = scene.rng, scene.world, scene.story
    rank = dead[0]
    if rng.random() > 0.62:
        return False
    if cause in deaths.SHOWN and rng.random() < 0.7:
        return deaths.SHOWN[cause](scene, dead, at)
    if cause == "remote_peer_died":
        deaths.dead_server(scene, at)
        return True
    if cause == "gpu_oom":
        _crash(story, world, rng, rank, at, tracebacks.cuda_oom(world, rng, world.local(rank)))
    elif cause == "exception":
        _crash(story, world, rng, rank, at, tracebacks.any_error(world, rng))
    elif cause == "host_oom_kill":
        _oom_killer(story, world, rng, rank, at)
    elif cause == "segfault":
        _segfault(story, world, rng, rank, at)
    elif cause == "gpu_fault":
        _crash(
            story,
            world,
            rng,
            rank,
            at,
            rng.choice(
                (
                    "RuntimeError: CUDA error: an illegal memory access was encountered",
                    "RuntimeError: CUDA error: uncorrectable ECC error encountered",
                    "RuntimeError: CUDA error: unspecified launch failure",
                    "torch.AcceleratorError: CUDA error: misaligned address",
                )
            ),
        )
    else:
        return False
    return True


def _crash(story: Story, world: World, rng: Random, rank: int, at: float, final: str) -> None:
    lines = tracebacks.crash(world, rng, final)
    if "CUDA error" in final:
        lines += (
            "CUDA kernel errors might be asynchronously reported at some other API call, so the "
            "stacktrace below might be incorrect.",
            "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
            "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
            "",
        )
    story.add(
        Record(
            time=at,
            lines=lines,
            role="evidence",
            rank=rank,
            node=world.node_of(rank),
            prefix="exc",
            strength=3,
        )
    )


def _oom_killer(story: Story, world: World, rng: Random, rank: int, at: float) -> None:
    node, pid = world.node_of(rank), world.pids[rank]
    name = rng.choice(("python", "python3", "pt_main_thread", "ray::WorkerDict"))
    group = rng.random() < 0.6
    body = (
        f"{'Memory cgroup out of memory' if group else 'Out of memory'}: Killed process {pid} ({name}) "
        f"total-vm:{rng.randrange(10**7, 3 * 10**8)}kB, anon-rss:{rng.randrange(10**7, 2 * 10**8)}kB, "
        f"file-rss:{rng.randrange(10**4, 10**6)}kB, shmem-rss:{rng.randrange(0, 10**6)}kB, UID:1001 "
        f"pgtables:{rng.randrange(10**4, 10**6)}kB oom_score_adj:0"
    )
    shown = world.shown(node, at)
    text = (
        f"{clock.syslog(shown)} {world.hosts[node]} kernel: {body}"
        if rng.random() < 0.5
        else f"[{rng.randrange(10**4, 10**7)}.{rng.randrange(10**6):06d}] {body}"
    )
    story.add(
        Record(
            time=at,
            lines=(text,),
            role="evidence",
            rank=rank,
            node=node,
            channel="system",
            file="dmesg",
            strength=3,
        )
    )


def _segfault(story: Story, world: World, rng: Random, rank: int, at: float) -> None:
    base = rng.randrange(0x7E0000000000, 0x7F0000000000)
    lines = ["Fatal Python error: Segmentation fault", "", f"Thread {base:#x} (most recent call first):"]
    lines += [
        f'  File "{tracebacks.user_file(world, rng)}", line {rng.randrange(30, 900)} in {name}'
        for name in rng.sample(("forward", "collate", "decode", "train_step", "_run_ninja", "backward", "fetch"), 3)
    ]
    story.add(Record(time=at, lines=tuple(lines), role="evidence", rank=rank, node=world.node_of(rank), strength=3))


def survivors(scene: Scene, dead: tuple[int, ...], death: float, code: int) -> tuple[int, ...]:
    """Ranks that outlive the death: those of other nodes when a launcher ends the node, or everybody else."""
    rng, world, story = scene.rng, scene.world, scene.story
    nodes = {world.node_of(rank) for rank in dead}
    elsewhere = tuple(rank for rank in range(world.size) if world.node_of(rank) not in nodes)
    beside = tuple(rank for rank in range(world.size) if rank not in dead)
    if not elsewhere:
        return beside or dead
    if len(dead) == 1 and rng.random() < 0.35:
        return beside
    if code and not scene.blind and world.launcher not in {"ray", "slurm", "mpirun", "files"} and rng.random() < 0.75:
        before = len(story.records)
        teardown.elastic(
            story,
            world,
            rng,
            world.node_of(dead[0]),
            death + rng.uniform(1, 5),
            {rank: code for rank in dead[:8]},
        )
        story.records[before:] = [
            Record(
                time=r.time,
                lines=r.lines,
                role="evidence" if rng.random() < 0.25 else "launch",
                node=r.node,
                channel=r.channel,
                strength=1,
            )
            for r in story.records[before:]
        ]
    return elsewhere


def peers(
    scene: Scene,
    left: tuple[int, ...],
    dead: tuple[int, ...],
    onset: float,
    early: bool,
    *,
    timed: bool,
) -> None:
    """The ranks `left` time out one timeout later (always if `timed`), or see the connection close at once."""
    rng, world, story = scene.rng, scene.world, scene.story
    call: Call = meeting_call(rng, world, early=early) if early or rng.random() < 0.25 else training_call(rng, world)
    draw = 0.0 if timed or scene.blind else rng.random()
    in_group = tuple(rank for rank in left if rank in call.group.members) or left
    if any(rank not in call.group.members for rank in in_group):
        call = Call(op=call.op, numel_in=call.numel_in, numel_out=call.numel_out, group=world.groups[0], seq=call.seq)
    if draw < 0.7:
        kinds = {
            "watchdog": 86.0,
            "store": 12.0 if early and 0 in dead else 0.0,
            "blocking": 5.0,
            "aborted": 5.0,
            "stacks": 2.0,
        }
        scene.show_wait(in_group, lambda rank: call, onset, kinds=kinds)
    elif draw < 0.88:
        _closed(scene, in_group, dead, onset)
        story.collective = call.op
    else:
        frames = scene.wait_frames(call)
        story.detection = raised.gloo(story, world, rng, in_group[:4], onset, frames, closed=True)
        story.waiting = in_group[:4]


def _unanswered(scene: Scene, printers: tuple[int, ...], peer: int, onset: float) -> None:
    """A dead peer does not acknowledge: retries run out, as where the fabric is at fault."""
    rng, world, story = scene.rng, scene.world, scene.story
    for rank in printers:
        at = onset + rng.uniform(0.5, 8)
        place, text = nccl.completion(world, rng, peer, rng.choice((12, 12, 12, 5)))
        lines = nccl.warn(world, rank, at, place, text, nccl.chain(rng, 6, False), rng)
        story.add(Record(time=at, lines=tuple(lines), role="wait", rank=rank, node=world.node_of(rank), prefix="c10"))
        if rng.random() < 0.6:
            nccl.raised(story, world, rng, rank, at + 0.3, "remote", text, "ALLREDUCE")
    story.detection, story.waiting = onset + 0.5, printers


def _closed(scene: Scene, survivors: tuple[int, ...], dead: tuple[int, ...], onset: float) -> None:
    """NCCL reports that the remote end closed the connection, or that it no longer answers over InfiniBand."""
    rng, world, story = scene.rng, scene.world, scene.story
    far = tuple(rank for rank in survivors if world.node_of(rank) != world.node_of(dead[0]))
    if far and rng.random() < 0.3:
        _unanswered(scene, far[: rng.choice((1, 2, 3))], world.node_of(dead[0]), onset)
        return
    shown = survivors[: rng.choice((1, 2, 3))]
    peer = world.ips[world.node_of(dead[0])]
    version = nccl_number(world.nccl)
    address = f"{world.hosts[world.node_of(dead[0])] if rng.random() < 0.4 else peer}<{rng.randrange(30000, 60000)}>"
    for rank in shown:
        at = onset + rng.uniform(0.05, 3)
        if version < 1600:
            place, text = "include/socket.h:416", f"Net : Connection closed by remote peer {address}"
        else:
            place, text = (
                f"misc/socket.cc:{rng.choice((49, 57, 58, 789))}",
                rng.choice(
                    (
                        f"socketProgress: Connection closed by remote peer {address}",
                        f"socketProgressOpt: Call to recv from {address} failed : Connection reset by peer",
                    )
                ),
            )
        lines = nccl.warn(world, rank, at, place, text, nccl.chain(rng, 6 if version >= 1400 else 2, False), rng)
        story.add(Record(time=at, lines=tuple(lines), role="wait", rank=rank, node=world.node_of(rank), prefix="c10"))
        if rng.random() < 0.6:
            nccl.raised(story, world, rng, rank, at + 0.3, "remote", text, "ALLREDUCE")
    story.detection, story.waiting = onset + 0.05, shown
