"""Logs without an incident: healthy runs full of the word timeout, crashes, servers, time limits."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from train.simulate import clock, healthy, teardown, tracebacks
from train.simulate.lines import Family
from train.simulate.scene import Scene
from train.simulate.servers import say, server

#: Texts that would make an incident of a quiet log; families that hold one stay out.
_LOUD = (
    "NCCL WARN",
    "closed by",
    "atchdog",
    "WorkNCCL",
    "gloo",
    "monitoredBarrier",
    "timed out",
    "Timed out",
    "remote peer",
    "NCCL error",
    "Connection reset",
    "completion",
    "store->get",
    "mismatch",
    "NET/",
    "status=",
    "barrier",
    "ncclRemote",
    "ncclSystem",
    "ncclInternal",
    "Got async",
    "waiting for",
    "Rendezvous",
)


def quiet(family: Family) -> bool:
    """Whether a family may stand in a log that has no incident."""
    return not any(word in text for text in (*family.texts, *family.follow) for word in _LOUD)


def act(scene: Scene) -> None:
    """Draw one kind of quiet log and write it."""
    kinds: dict[Callable[[Scene], None], float] = {
        _retries: 20,
        _settings: 10,
        _all_crash: 22,
        _one_crash: 18,
        server: 20,
        _time_limit: 8,
        _nan: 5,
        _healthy: 5,
    }
    scene.story.onset = scene.story.detection = scene.world.start
    kind = scene.rng.choices(list(kinds), list(kinds.values()))[0]
    kind(scene)


def _run(scene: Scene, more: bool = True) -> None:
    scene.begin(scene.world.start)
    records = scene.story.records
    scene.story.records = [
        record for record in records if not any(word in line for line in record.lines for word in _LOUD)
    ]
    if more:
        healthy.steps(
            scene.story,
            scene.world,
            scene.rng,
            scene.world.start + scene.world.step_s * 4,
            scene.world.step + 3,
            scene.rng.randrange(1, 6),
        )
    for family in scene.lines.decoys(scene.rng, "", scene.world, scene.rng.choice((1, 2, 2, 3))):
        if family.role == "decoy" and quiet(family) and family.channel in {"rank", "main"}:
            scene.story.add(
                scene.lines.record(
                    family, scene.rng, scene.world, 0, scene.world.start - scene.rng.uniform(5, 3000), "decoy"
                )
            )


_HTTP = (
    "'(ReadTimeoutError(\"HTTPSConnectionPool(host='storage.example', port=443): Read timed out. ("
    "read timeout=10)\"), '(Request ID: {h})')' thrown while requesting GET https://"
    "storage.example/datasets/part-{n}.jsonl.zst\nRetrying in 1s [Retry {k}/5].",
    "WARNING:urllib3.connectionpool:Retrying (Retry(total={k}, connect=None, read=None, "
    "redirect=None, status=None)) after connection broken by 'ReadTimeoutError("
    "\"HTTPSConnectionPool(host='hub.example', port=443): Read timed out. (read timeout=10)\")': /"
    "api/models",
    'botocore.exceptions.ReadTimeoutError: Read timeout on endpoint URL: "https://'
    'bucket.storage.example/shard-{n}.tar" (attempt {k} of 5, will retry)',
    "wandb: Network error (ReadTimeout), entering retry loop.",
    "wandb: ERROR Error while calling W&B API: context deadline exceeded (<Response [500]>)",
    "fsspec: timeout reading block {n}, retry {k}",
    "WARNING - data server did not answer in 30 s, timeout, retry {k}",
    "requests.exceptions.ConnectTimeout: HTTPSConnectionPool(host='tracker.example', port=443): "
    "Max retries exceeded (ignored, metrics kept locally)",
    "slow batch: loader timeout warning after {n} ms, continuing",
    "aiohttp.client_exceptions.ServerTimeoutError: Timeout on reading data from socket - retrying ({k}/10)",
)
_SETTINGS = (
    "ddp_timeout=1800,",
    "NCCL_IB_TIMEOUT=22",
    "export NCCL_TIMEOUT=3600000",
    "timeout: 0:30:00",
    "init_process_group(backend='nccl', timeout=datetime.timedelta(seconds=7200))",
    "distributed_timeout_minutes ............... 10",
    "TORCH_NCCL_BLOCKING_WAIT=0",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING=1",
    "dataloader_timeout: 120",
    "comm.train_timeout_seconds: 100",
    "heartbeat_timeout: 600, watchdog: enabled",
    "  nccl_timeout: 600",
    "NCCL_DEBUG=WARN",
    "checkpoint.timeout_s = 1200",
    "actor_rollout_ref.nccl_timeout: 600",
    "setting the process group timeout to 3600 s because evaluation is long",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=7200",
    "straggler detection: on (report every 300 s)",
    "desync debug: off",
)


def _retries(scene: Scene) -> None:
    """HTTP and storage timeouts that are retried while the run goes on."""
    rng, world = scene.rng, scene.world
    _run(scene)
    text = rng.choice(_HTTP)
    for k in range(1, rng.randrange(2, 6)):
        stamp = f"[{clock.plain(world.start - 40 + k * 9)} WARNING] " if rng.random() < 0.3 else ""
        say(
            scene,
            world.start - 40 + k * 9,
            stamp + text.format(h=f"{rng.getrandbits(64):016x}", n=rng.randrange(9000), k=k),
            rank=rng.randrange(world.size) if rng.random() < 0.5 else 0,
            channel="rank",
        )


def _settings(scene: Scene) -> None:
    """A configuration echo that speaks of timeouts, then healthy steps."""
    rng, world = scene.rng, scene.world
    _run(scene)
    for i, text in enumerate(rng.sample(_SETTINGS, rng.randrange(2, 8))):
        say(scene, world.start - 600 + i * 0.01, text)


def _codes(scene: Scene, ranks: list[int], code: int) -> None:
    rng, story, world = scene.rng, scene.story, scene.world
    start = len(story.records)
    teardown.end(story, world, rng, world.start + 1, {rank: code for rank in ranks})
    story.records[start:] = [
        record for record in story.records[start:] if not any(word in line for line in record.lines for word in _LOUD)
    ]


def _final(scene: Scene, rng: Random, rank: int) -> str:
    world = scene.world
    if rng.random() < 0.4:
        return tracebacks.cuda_oom(world, rng, world.local(rank))
    text = tracebacks.any_error(world, rng)
    return text if not any(word in text for word in _LOUD) else "ValueError: invalid config"


def _all_crash(scene: Scene) -> None:
    """Every rank raises the same error in the same second; nobody waits."""
    rng, world = scene.rng, scene.world
    _run(scene, more=False)
    state = rng.getstate()
    final = _final(scene, rng, 0)
    ranks = list(range(min(world.size, 8)))
    for rank in ranks:
        rng.setstate(state)
        final = _final(scene, rng, rank)
        lines = "\n".join(tracebacks.crash(world, rng, final))
        say(scene, world.start + 0.01 * rank, lines, rank=rank, channel="rank", prefix="exc")
    _codes(scene, ranks, 1)


def _one_crash(scene: Scene) -> None:
    """One rank fails and the launcher ends the others within seconds."""
    rng, world = scene.rng, scene.world
    _run(scene, more=False)
    rank = rng.randrange(world.per_node)
    say(
        scene,
        world.start,
        "\n".join(tracebacks.crash(world, rng, _final(scene, rng, rank))),
        rank=rank,
        channel="rank",
        prefix="exc",
    )
    _codes(scene, [rank], 1)


def _time_limit(scene: Scene) -> None:
    """The scheduler ends all ranks at once."""
    rng, world = scene.rng, scene.world
    _run(scene, more=False)
    job, host = rng.randrange(10**5, 10**8), world.hosts[0]
    say(
        scene,
        world.start + 1,
        rng.choice(
            (
                f"slurmstepd: error: *** JOB {job} ON {host} CANCELLED AT {clock.iso(world.start)} "
                "DUE TO TIME LIMIT ***",
                f"slurmstepd: error: *** STEP {job}.0 ON {host} CANCELLED AT "
                f"{clock.iso(world.start)} DUE TO TIME LIMIT ***\nsrun: Job step aborted: Waiting "
                "up to 32 seconds for job step to finish.",
                "=>> PBS: job killed: walltime 86437 exceeded limit 86400",
                "TERM_RUNLIMIT: job killed after reaching LSF run time limit.",
                f"srun: Force Terminated StepId={job}.0",
                "Job reached active deadline: DeadlineExceeded",
            )
        ),
        channel="driver",
    )
    if rng.random() < 0.5:
        teardown_lines = "\n".join(
            f"{teardown.elastic_head(world, 0, world.start + 1, 'W', 900)}Sending process {pid} closing signal SIGTERM"
            for pid in world.pids[: world.per_node]
        )
        say(scene, world.start + 1.5, teardown_lines, channel="launcher", strength=1)


def _nan(scene: Scene) -> None:
    """The loss becomes NaN and the run goes on, or stops by itself on every rank."""
    rng, world = scene.rng, scene.world
    _run(scene)
    for i in range(rng.randrange(1, 5)):
        say(
            scene,
            world.start + i * world.step_s,
            rng.choice(
                (
                    "step {s} loss nan lr 1.2e-04",
                    "{{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1.9e-05, 'epoch': 0.4}}",
                    "WARNING: NaN or Inf found in input tensor.",
                    "loss is nan, stopping training",
                    "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {s}",
                )
            ).format(s=world.step + i),
        )


def _healthy(scene: Scene) -> None:
    """A healthy run and nothing else."""
    _run(scene)
    if len(scene.story.records) < 3:
        healthy.steps(scene.story, scene.world, scene.rng, scene.world.start, scene.world.step, 8)
