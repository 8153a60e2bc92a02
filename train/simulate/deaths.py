"""Deaths with a look of their own: an interrupt, a hung card, a late traceback, a dead server."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from train.simulate import clock, teardown, tracebacks
from train.simulate.cards import bus_of
from train.simulate.record import Record
from train.simulate.scene import Scene


def interrupted(scene: Scene, dead: tuple[int, ...], at: float) -> bool:
    """Somebody stops the launcher of one node; only its own ranks hear of it."""
    rng, world = scene.rng, scene.world
    if world.launcher not in {"torchrun", "tee", "slurm_torchrun", "accelerate", "k8s"} or world.nodes < 2:
        return False
    node, name = world.node_of(dead[0]), rng.choice(("SIGINT", "SIGINT", "SIGTERM", "SIGHUP"))
    number = {"SIGINT": 2, "SIGTERM": 15, "SIGHUP": 1}[name]
    head = teardown.elastic_head(world, node, at, "W", world.torch.elastic_signal)
    lines = [f"{head}Received {number} death signal, shutting down workers"]
    if world.torch.rank >= 3:
        place = f"torch/distributed/elastic/agent/server/api.py:{rng.choice((704, 719, 723))}] "
        lines = [
            f"{head.split(' torch')[0].split(' /')[0]} {place}Received Signals.{name} death signal, "
            "shutting down workers"
        ]
    lines += [f"{head}Sending process {world.pids[rank]} closing signal {name}" for rank in world.ranks_on(node)]
    if rng.random() < 0.7:
        lines += _signal_trace(scene, number, world.agents[node])
    before = ("^C",) if name == "SIGINT" and rng.random() < 0.3 else ()
    _add(scene, (*before, *lines), at, None, node, channel="launcher")
    if name == "SIGINT" and rng.random() < 0.5:
        _add(scene, tracebacks.crash(world, rng, "KeyboardInterrupt"), at + 0.2, dead[0], node, prefix="exc")
    return True


def _signal_trace(scene: Scene, number: int, agent: int) -> list[str]:
    site = scene.world.site
    return [
        "Traceback (most recent call last):",
        f'  File "{site.split("/lib/")[0]}/bin/torchrun", line 8, in <module>',
        "    sys.exit(main())",
        f'  File "{site}/torch/distributed/elastic/multiprocessing/api.py", line 84, in _terminate_process_handler',
        '    raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)',
        f"torch.distributed.elastic.multiprocessing.api.SignalException: Process {agent} got signal: {number}",
    ]


def hung_card(scene: Scene, rank: int, at: float) -> bool:
    """The driver reports the card of a rank, in the program's output or in the kernel's log."""
    rng, world = scene.rng, scene.world
    node, bus = world.node_of(rank), f"0000:{bus_of(world, rank):02x}:00"
    draw = rng.random()
    if draw < 0.35:
        handle = f"(Agent handle: {rng.getrandbits(47):#x})"
        text = f"HW Exception by GPU node-{world.local(rank) + 2} {handle} reason :GPU Hang"
        for other in world.ranks_on(node)[: rng.randrange(1, 9)]:
            _add(scene, (text,), at + 0.01 * other, other, node)
        _kernel(scene, at - 1, node, f"amdgpu {bus}.0: amdgpu: GPU reset begin!")
        return True
    number, words = rng.choice(
        (
            (79, "GPU has fallen off the bus."),
            (48, "An uncorrectable double bit error (DBE) has been detected on GPU"),
            (
                31,
                "MMU Fault: ENGINE GRAPHICS GPC3 faulted @ 0x7f2e_01a40000. Fault is of type FAULT_PDE",
            ),
            (94, "Contained: SM (0x1). RST: No, D-RST: No"),
            (119, "Timeout after 6s of waiting for RPC response from GPU0 GSP!"),
            (62, "2d0f, 00000052 00000000 2027b3e2"),
        )
    )
    pid = f"pid={world.pids[rank]}, name=python" if number in {31, 94} else "pid='<unknown>', name=<unknown>"
    _kernel(scene, at, node, f"NVRM: Xid (PCI:{bus}): {number}, {pid}, {words}")
    return True


def _kernel(scene: Scene, at: float, node: int, text: str) -> None:
    world = scene.world
    shown = world.shown(node, at)
    stamped = f"{clock.syslog(shown)} {world.hosts[node]} kernel: {text}"
    if world.agents[node] % 2:
        stamped = f"[{70000 + world.agents[node]}.{int(shown * 1e6) % 1000000:06d}] {text}"
    _add(scene, (stamped,), at, None, node, channel="system", file="dmesg")


def late_traceback(scene: Scene, rank: int, final: str) -> None:
    """The guilty rank hung in its own clean-up: its traceback comes once the others have given up."""
    rng, world = scene.rng, scene.world
    at = scene.story.detection + rng.uniform(0.4, 12)
    _add(scene, tracebacks.crash(world, rng, final), at, rank, world.node_of(rank), prefix="exc")


_SERVER_UP = (
    "INFO {d} [loader.py:{n}] Loading weights took {x:.2f} seconds",
    "INFO:     Application startup complete.",
    'INFO:     {ip}:{p} - "GET /health HTTP/1.1" 200 OK',
    'INFO:     {ip}:{p} - "POST /generate/ HTTP/1.1" 200 OK',
    'INFO:     {ip}:{p} - "POST /update_named_param/ HTTP/1.1" 200 OK',
    "INFO {d} [block_pool.py:{n}] Successfully reset prefix cache",
)
_SERVER_DOWN = (
    "IndexError: start (0) + length ({n}) exceeds dimension size (1)",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "KeyError: 'model.layers.{k}.mlp.experts.w2_weight'",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "ValueError: There is no module or parameter named 'lora_A' in the model",
)


def dead_server(scene: Scene, at: float) -> None:
    """The rollout server's own file: healthy lines, then a fatal error before the trainers wait."""
    rng, world = scene.rng, scene.world

    def fill(text: str, time: float) -> str:
        return text.format(
            d=f"{clock.moment(time):%m-%d %H:%M:%S}",
            n=rng.randrange(100, 900),
            k=rng.randrange(40),
            x=rng.uniform(4, 90),
            ip=world.ips[0],
            p=rng.randrange(30000, 60000),
        )

    name = rng.choice(("server.log", "rollout.log", "vllm_server.log", "engine.log"))
    for i in range(rng.randrange(1, 6)):
        time = at - 400 + 60 * i
        _add(scene, (fill(rng.choice(_SERVER_UP), time),), time, None, 0, channel="tool", file=name, strength=0)
    start = f"ERROR {clock.moment(at):%m-%d %H:%M:%S} [core.py:{rng.randrange(380, 900)}] "
    rows = ["EngineCore encountered a fatal error.", "Traceback (most recent call last):"]
    rows.append(
        f'  File "{world.site}/vllm/model_executor/model_loader/weight_utils.py", line '
        f"{rng.randrange(100, 900)}, in load"
    )
    rows.append(fill(rng.choice(_SERVER_DOWN), at))
    _add(scene, tuple(start + row for row in rows), at, None, 0, channel="tool", file=name)


def _add(
    scene: Scene,
    lines: tuple[str, ...],
    at: float,
    rank: int | None,
    node: int,
    *,
    channel: str = "rank",
    prefix: str = "raw",
    file: str = "",
    strength: int = 3,
) -> None:
    role = "evidence" if strength else "chat"
    scene.story.add(
        Record(
            time=at,
            lines=lines,
            role=role,
            rank=rank,
            node=node,
            channel=channel,
            prefix=prefix,
            file=file,
            strength=strength,
        )
    )


#: Deaths by cause: each writes its lines, or returns False if this run cannot show it.
SHOWN: dict[str, Callable[[Scene, tuple[int, ...], float], bool]] = {
    "signal": interrupted,
    "gpu_fault": lambda scene, dead, at: hung_card(scene, dead[0], at),
    "gpu_lost": lambda scene, dead, at: hung_card(scene, dead[0], at),
}


def final_words(scene: Scene, rng: Random, cause: str, rank: int) -> str | None:
    """The last line of the exception that `cause` ends a rank with, if it ends it with one."""
    world = scene.world
    if cause == "gpu_oom":
        return tracebacks.cuda_oom(world, rng, world.local(rank))
    if cause == "training_diverged":
        return rng.choice(
            (
                f"FloatingPointError: non-finite loss at step {world.step}",
                "ValueError: loss is nan, giving up",
                f"FloatingPointError: non-finite values in sampled targets (step {world.step})",
            )
        )
    return tracebacks.any_error(world, rng) if cause == "exception" else None
