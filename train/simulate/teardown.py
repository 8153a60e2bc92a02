"""What launchers print once a process has ended: elastic's report, Slurm, Ray, mpirun, DeepSpeed."""

from __future__ import annotations

from random import Random

from train.simulate import clock
from train.simulate.record import Record, Story
from train.simulate.world import World

_SIGNALS = {-6: "SIGABRT", -9: "SIGKILL", -11: "SIGSEGV", -7: "SIGBUS", -15: "SIGTERM"}
_WORDS = {
    -6: "Aborted (core dumped)",
    -9: "Killed",
    -11: "Segmentation fault (core dumped)",
    -7: "Bus error",
    -15: "Terminated",
}


def elastic_head(world: World, node: int, time: float, level: str, line: int) -> str:
    """The prefix of an elastic agent's message."""
    at, shown = world.torch.rank, world.shown(node, time)
    if at <= 0:
        return f"{'WARNING' if level == 'W' else 'ERROR'}:torch.distributed.elastic.multiprocessing.api:"
    if at <= 2:
        return (
            f"[{clock.comma(shown)}] torch.distributed.elastic.multiprocessing.api: "
            f"[{'WARNING' if level == 'W' else 'ERROR'}] "
        )
    package = "" if at >= 5 and world.shift == 0 else f"{world.site}/"
    return (
        f"{level}{clock.elastic(shown)} {world.agents[node]} {package}torch/distributed/elastic/"
        f"multiprocessing/api.py:{line}] "
    )


def _table_row(world: World, index: int, rank: int, code: int, time: float) -> list[str]:
    node = world.node_of(rank)
    name = _SIGNALS.get(code, "")
    trace = (
        f"Signal {-code} ({name}) received by PID {world.pids[rank]}"
        if code < 0
        else "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    )
    return [
        f"[{index}]:",
        f"  time      : {clock.report(world.shown(node, time))}",
        f"  host      : {world.hosts[node]}",
        f"  rank      : {rank} (local_rank: {world.local(rank)})",
        f"  exitcode  : {code} (pid: {world.pids[rank]})",
        "  error_file: <N/A>",
        f"  traceback : {trace}",
    ]


def table(world: World, codes: dict[int, int], time: float) -> list[str]:
    """The agent's table of failures; the first entry of `codes` is the root cause."""
    ordered = list(codes.items())
    bar = "=" * 60
    rows = [
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        bar,
        f"{world.script} FAILED",
        "-" * 60,
        "Failures:",
    ]
    for index, (rank, code) in enumerate(ordered[1:], 1):
        rows += _table_row(world, index, rank, code, time)
    if len(ordered) == 1:
        rows.append("  <NO_OTHER_FAILURES>")
    return [
        *rows,
        "-" * 60,
        "Root Cause (first observed failure):",
        *_table_row(world, 0, *ordered[0], time),
        bar,
    ]


def agent_trace(world: World, rng: Random) -> list[str]:
    """The traceback of the agent itself, from how it was started down to where it raises."""
    torch, pointed = f"{world.site}/torch/distributed", int(world.python.split(".")[1]) >= 11
    line = rng.randrange(760, 1040)
    carets = ["           ^^^^^^^^^^^^^^^^^^"] if pointed else []
    return [
        "Traceback (most recent call last):",
        *_started(world, rng, line, pointed),
        f'  File "{torch}/elastic/multiprocessing/errors/__init__.py", line {rng.randrange(340, 370)}, in wrapper',
        "    return f(*args, **kwargs)",
        *carets,
        f'  File "{torch}/run.py", line {line - 4}, in main',
        "    run(args)",
        f'  File "{torch}/run.py", line {line - 13}, in run',
        "    elastic_launch(",
        f'  File "{torch}/launcher/api.py", line {rng.randrange(130, 200)}, in __call__',
        f"    return launch_agent({'' if pointed else 'self._config, self._entrypoint, list(args))'}",
        *(["           ^^^^^^^^^^^^^"] if pointed else []),
        f'  File "{torch}/launcher/api.py", line {rng.randrange(240, 390)}, in launch_agent',
        "    raise ChildFailedError(",
    ]


def _started(world: World, rng: Random, line: int, frozen: bool) -> list[str]:
    """The outermost frames: the script that pip installs, or `python -m`."""
    home = world.site.split("/lib/")[0]
    if world.launcher == "accelerate" or rng.random() < 0.55:
        tool = f"{home}/bin/{'accelerate' if world.launcher == 'accelerate' else 'torchrun'}"
        last = "             ^^^^^^" if frozen else None
        return [
            f'  File "{tool}", line {rng.choice((7, 8, 8, 33))}, in <module>',
            "    sys.exit(main())",
            *filter(None, [last]),
        ]
    module = f'  File "{world.site}/torch/distributed/run.py", line {line}, in <module>'
    if frozen:
        names = (("198", "_run_module_as_main"), ("88", "_run_code"))
        return [*(f'  File "<frozen runpy>", line {at}, in {name}' for at, name in names), module, "    main()"]
    runpy = f"{home}/lib/python{world.python}/runpy.py"
    return [
        f'  File "{runpy}", line 196, in _run_module_as_main',
        "    return _run_code(code, main_globals, None,",
        f'  File "{runpy}", line 86, in _run_code',
        "    exec(code, run_globals)",
        module,
        "    main()",
    ]


def elastic(story: Story, world: World, rng: Random, node: int, time: float, codes: dict[int, int]) -> None:
    """The agent of `node` ends its workers; `codes` maps the ranks that failed to exit codes."""
    torch = world.torch
    others = [rank for rank in world.ranks_on(node) if rank not in codes]
    sent = [
        f"{elastic_head(world, node, time, 'W', torch.elastic_signal)}Sending process "
        f"{world.pids[rank]} closing signal SIGTERM"
        for rank in others
    ]
    first = next(iter(codes))
    binary = (
        world.site.split("/lib/")[0] + f"/bin/python{world.python if rng.random() < 0.4 else rng.choice(('', '3'))}"
    )
    failed = (
        f"{elastic_head(world, node, time + 2, 'E', torch.elastic_failed)}failed (exitcode: "
        f"{codes[first]}) local_rank: {world.local(first)} (pid: {world.pids[first]}) of binary: "
        f"{binary}"
    )
    shown = {**codes, **dict.fromkeys(others[:3], -15)} if rng.random() < 0.3 else codes
    if sent:
        story.add(Record(time=time, lines=tuple(sent), role="launch", node=node, channel="launcher"))
    rest = [failed, *agent_trace(world, rng), *table(world, shown, time)]
    story.add(Record(time=time + 2.5, lines=tuple(rest), role="launch", node=node, channel="launcher"))


def _span(numbers: list[int]) -> str:
    parts: list[str] = []
    for number in numbers:
        if parts and int(parts[-1].split("-")[-1]) == number - 1:
            parts[-1] = f"{parts[-1].split('-')[0]}-{number}"
        else:
            parts.append(str(number))
    return ",".join(parts)


def slurm(story: Story, world: World, rng: Random, time: float, codes: dict[int, int]) -> None:
    """`srun` names the tasks that ended, node by node; the job identifier is invented."""
    job = rng.randrange(10**5, 10**8)
    for node in sorted({world.node_of(rank) for rank in codes}):
        for code in sorted({value for rank, value in codes.items() if world.node_of(rank) == node}):
            tasks = [
                rank if world.launcher == "slurm" else node
                for rank, value in codes.items()
                if value == code and world.node_of(rank) == node
            ]
            tasks = sorted(set(tasks))
            word = (
                _WORDS.get(code, f"Exited with exit code {abs(code)}")
                if world.launcher == "slurm"
                else "Exited with exit code 1"
            )
            text = f"srun: error: {world.hosts[node]}: task{'s' if len(tasks) > 1 else ''} {_span(tasks)}: {word}"
            story.add(Record(time=time + node * 0.2, lines=(text,), role="launch", channel="driver"))
    if rng.random() < 0.5:
        tail = rng.choice(
            (
                f"srun: Terminating StepId={job}.0",
                f"slurmstepd: error: *** STEP {job}.0 ON {world.hosts[0]} CANCELLED AT {clock.iso(time + 1)} ***",
                "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
            )
        )
        story.add(Record(time=time + 1, lines=(tail,), role="launch", channel="driver"))


def deepspeed(story: Story, world: World, rng: Random, time: float, codes: dict[int, int]) -> None:
    """The DeepSpeed launcher ends every process of the node and reports the first code."""
    rank, code = next(iter(codes.items()))
    node = world.node_of(rank)
    stamp = clock.comma(world.shown(node, time))
    place = rng.choice((319, 325, 335))
    lines = [
        f"[{stamp}] [INFO] [launch.py:{place}:sigkill_handler] Killing subprocess {world.pids[r]}"
        for r in world.ranks_on(node)
    ]
    lines.append(
        f"[{stamp}] [ERROR] [launch.py:{place + 6}:sigkill_handler] "
        f"['{world.site.split('/lib/')[0]}/bin/python', '-u', '{world.script}', "
        f"'--local_rank={world.local(rank)}'] exits with return code = {code}"
    )
    story.add(Record(time=time, lines=tuple(lines), role="launch", node=node, channel="launcher"))


_RAY = (
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker "
    "exit detail: Worker unexpectedly exits with a connection error code 2. End of file. There are "
    "some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high "
    "memory usage. (2) ray stop --force is called. (3) The worker is crashed unexpectedly due to "
    "SIGSEGV or other unexpected errors.",
    "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
    "ray.exceptions.WorkerCrashedError: The worker died unexpectedly while executing this task. "
    "Check python-core-worker-*.log files for more information.",
)


def end(story: Story, world: World, rng: Random, time: float, codes: dict[int, int]) -> None:
    """What this world's launcher says about `codes` (rank -> exit code, first failure first)."""
    if not codes:
        return
    if world.launcher == "slurm":
        slurm(story, world, rng, time + 1, codes)
    elif world.launcher == "deepspeed" and rng.random() < 0.8:
        deepspeed(story, world, rng, time + 1, codes)
    elif world.launcher == "ray":
        story.add(Record(time=time + 3, lines=(rng.choice(_RAY),), role="launch", channel="driver"))
    elif world.launcher == "mpirun":
        rank, code = next(iter(codes.items()))
        text = (
            f"mpirun noticed that process rank {rank} with PID {world.pids[rank]} on node "
            f"{world.hosts[world.node_of(rank)]} exited on signal {abs(code) if code < 0 else 6} ("
            f"{_WORDS.get(code, 'Aborted').split(' (')[0]})."
        )
        story.add(Record(time=time + 2, lines=("-" * 74, text, "-" * 74), role="launch", channel="driver"))
    elif world.launcher == "spawn":
        _spawn(story, world, rng, time, codes)
    else:
        for node in sorted({world.node_of(rank) for rank in codes}):
            here = {rank: code for rank, code in codes.items() if world.node_of(rank) == node}
            elastic(story, world, rng, node, time + 1 + rng.random() * 3, here)
        if world.launcher == "slurm_torchrun" and rng.random() < 0.7:
            slurm(story, world, rng, time + 8, codes)


def _spawn(story: Story, world: World, rng: Random, time: float, codes: dict[int, int]) -> None:
    rank, code = next(iter(codes.items()))
    final = (
        f"torch.multiprocessing.spawn.ProcessExitedException: process {rank} terminated with signal "
        f"{_SIGNALS.get(code, 'SIGABRT')}"
    )
    if code > 0:
        final = (
            f"torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process {rank} terminated with "
            "the following error:"
        )
    lines = (
        "Traceback (most recent call last):",
        f'  File "{world.root}/{world.script}", line {rng.randrange(40, 600)}, in <module>',
        "    mp.spawn(worker, nprocs=world_size, args=(args,))",
        *final.split("\n"),
    )
    story.add(Record(time=time + 1, lines=lines, role="launch", channel="launcher"))
