"""Inference servers: access lines, throughput, and watchdogs that have nothing to do with training."""

from __future__ import annotations

from train.simulate import c10d, clock
from train.simulate.collectives import Call
from train.simulate.record import Record
from train.simulate.scene import Scene


def say(
    scene: Scene,
    at: float,
    text: str,
    *,
    rank: int = 0,
    channel: str = "main",
    prefix: str = "raw",
    role: str = "evidence",
    strength: int = 2,
) -> None:
    """Add one record at a time; a text may hold several lines."""
    world = scene.world
    scene.story.add(
        Record(
            time=at,
            lines=tuple(text.split("\n")),
            role=role,
            rank=rank,
            node=world.node_of(rank),
            channel=channel,
            prefix=prefix,
            strength=strength,
        )
    )


_ACCESS = (
    'INFO:     {ip}:{p} - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    'INFO:     {ip}:{p} - "POST /v1/completions HTTP/1.1" 500 Internal Server Error',
    'INFO:     {ip}:{p} - "GET /health HTTP/1.1" 200 OK',
    "INFO {d} [loggers.py:{n}] Engine 000: Avg prompt throughput: {x:.1f} tokens/s, Avg generation "
    "throughput: {y:.1f} tokens/s, Running: {r} reqs, Waiting: {w} reqs, GPU KV cache usage: "
    "{k:.1f}%",
    "[{t} TP0] Decode batch. #running-req: {r}, #token: {n}, token usage: 0.{w}, gen throughput ("
    "token/s): {y:.2f}, #queue-req: {w}",
    "[{t} TP0] Prefill batch. #new-seq: 1, #new-token: {n}, #cached-token: {r}, token usage: 0.{w}",
    "INFO {d} [metrics.py:{n}] Avg prompt throughput: {x:.1f} tokens/s, Running: {r} reqs, "
    "Swapped: 0 reqs, Pending: {w} reqs",
)
_GAVE_UP = (
    "[{t} TP0] Watchdog timeout (self.watchdog_timeout=300)\n[{t} TP0] Pyspy failed to dump PID "
    "{n}. Error: /bin/sh: py-spy: command not found\n[{t}] Received sigquit from a child process. "
    "It usually means the child failed.",
    "ERROR {d} [engine.py:{n}] TimeoutError: RPC call to execute_model timed out.",
    "ERROR {d} [async_llm.py:{n}] AsyncLLM output_handler "
    "failed.\nvllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See "
    "stack trace (above) for the root cause.",
    "(VllmWorker rank=1 pid={n}) ERROR {d} [multiproc_executor.py:{n}] WorkerProc hit an exception.",
    "asyncio.exceptions.TimeoutError: generation request {n} timed out after 600 s",
    "Health check failed, server timeout after 30 s, restarting pod",
    "[server] Server process exited with code 1.",
)


def server(scene: Scene) -> None:
    """An inference server: access lines, throughput, and sometimes torch's own collective timeout."""
    rng, world, story = scene.rng, scene.world, scene.story
    start = world.start

    def fill(text: str, at: float) -> str:
        return text.format(
            ip=rng.choice(world.ips),
            p=rng.randrange(30000, 60000),
            d=f"{clock.moment(at):%m-%d %H:%M:%S}",
            t=clock.plain(at),
            n=rng.randrange(100, 9000),
            x=rng.uniform(10, 9000),
            y=rng.uniform(10, 4000),
            r=rng.randrange(1, 200),
            w=rng.randrange(0, 90),
            k=rng.uniform(0, 99),
        )

    voice = [rng.choice(_ACCESS[:2] + _ACCESS[3:]), *rng.sample(_ACCESS, rng.randrange(0, 3))]
    for i in range(rng.randrange(3, 30) if scene.size != "long" else rng.randrange(60, 400)):
        text = voice[0] if i == 0 else rng.choice(voice)
        say(scene, start - 300 + i, fill(text, start - 300 + i), strength=1)
    if rng.random() < 0.7:
        say(scene, start, fill(rng.choice(_GAVE_UP), start))
    if rng.random() < 0.35:
        call = Call(
            op=rng.choice(("ALLREDUCE", "_ALLGATHER_BASE", "BROADCAST")),
            numel_in=rng.randrange(10**4, 10**7),
            numel_out=rng.randrange(10**4, 10**7),
            group=world.groups[0],
            seq=rng.randrange(500, 10**6),
        )
        for rank in range(min(world.size, rng.choice((1, 2, 8)))):
            text = c10d.timeout_line(world, call, rank, start + 1, world.timeout_s * 1000 + rng.randrange(1, 99), rng)
            say(scene, start + 1, text, rank=rank, channel="rank", prefix="c10")
        if rng.random() < 0.5:
            lines = [
                line
                for rank in range(1, min(world.size, 4))
                for line in c10d.dump_lines(world, call, rank, start + 1.2, 0, call.seq - 1, rng)
            ]
            say(scene, start + 1.2, "\n".join(lines), channel="rank") if lines else None
    story.keep_whole = True
