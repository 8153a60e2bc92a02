"""Start one recording under `torchrun`, act on it from outside, and collect its raw logs."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train.lab import limits, netns, starts
from train.lab.deeds import FROM_THE_START, action_on
from train.lab.plan import LOG_FILES, Recording

_APP = Path(__file__).with_name("app")
_POLL_S = 0.1
#: Collectives that a rank's flight recorder keeps: most of a step, in a dump of 7 kB.
_REMEMBERED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a run left: log files by path (raw bytes), flight-recorder dumps by path, counters by rank,
    the launchers' exit codes, seconds.
    """

    files: Mapping[str, bytes]
    dumps: Mapping[str, bytes]
    facts: Mapping[int, Mapping[str, Any]]
    codes: tuple[int, ...]
    seconds: float


def launch(recording: Recording, work: Path) -> Run:
    """Run `recording` in `work`. OSError or CalledProcessError where the machine refuses what the fault needs."""
    _prepare(work)
    begin = time.monotonic()
    with ExitStack() as stack:
        env = _environment(recording, work) | _surroundings(recording, work, stack)
        codes = _run(recording, work, env)
    return Run(
        files=_collect(recording, work),
        dumps={f"traces/{p.name}": p.read_bytes() for p in _traces(work)},
        facts=_facts(work / "facts"),
        codes=codes,
        seconds=time.monotonic() - begin,
    )


def _run(recording: Recording, work: Path, env: Mapping[str, str]) -> tuple[int, ...]:
    """Start the run by its launcher and wait for its end; the exit codes of launchers or, without one, of ranks."""
    if recording.launcher in ("srun", "files"):
        tasks = starts.Tasks(recording, work, env)
        codes = _await(recording, work, tasks.processes, tasks.cancel)
        tasks.finish()
        return codes
    return _await(recording, work, _start(recording, work, env))


def _traces(work: Path) -> list[Path]:
    return [p for p in sorted((work / "traces").iterdir()) if p.suffix != ".new"]


def _prepare(work: Path) -> None:
    for name in ("scratch", "facts", "logs", "traces"):
        (work / name).mkdir(parents=True, exist_ok=True)
    shutil.copytree(_APP, work / "app", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)


def _environment(recording: Recording, work: Path) -> dict[str, str]:
    fault = recording.fault
    profile = {**fault.profile, "ranks": list(recording.ranks)}
    return {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "RUN_PROFILE": json.dumps(profile),
        "RUN_WRAPPER": recording.wrapper,
        "RUN_SEED": str(recording.seed),
        "RUN_TIMEOUT": f"{recording.timeout_s:g}",
        "RUN_SCRATCH": str(work / "scratch"),
        "RUN_FACTS": str(work / "facts"),
        **_dumping(recording, work),
        "TORCH_FR_BUFFER_SIZE": str(_REMEMBERED),
        **fault.env,
    }


def _dumping(recording: Recording, work: Path) -> dict[str, str]:
    if recording.transcribed or recording.dumps == "none":
        return {}
    return {"RUN_TRACES": str(work / "traces"), "RUN_TRACES_FORM": recording.dumps}


def _surroundings(recording: Recording, work: Path, stack: ExitStack) -> dict[str, str]:
    """Enter the limits and networks that the fault needs; the variables by which the script finds them."""
    outside = recording.fault.outside or ""
    if recording.on_two_nodes:
        stack.enter_context(netns.two_nodes())
        if outside in FROM_THE_START:
            netns.trouble(outside.partition(":")[2])
        if outside != "net:wrong_interface":
            return {"GLOO_SOCKET_IFNAME": netns.LINK}
        return {"GLOO_SOCKET_IFNAME": netns.STRAY}
    if outside == "cpu":
        return {"RUN_CGROUP": str(stack.enter_context(limits.cpu_group(0.002)))}
    if outside == "freezer":
        return {"RUN_CGROUP": str(stack.enter_context(limits.freezer_group()))}
    if outside == "memory":
        return {"RUN_CGROUP": str(stack.enter_context(limits.memory_group(512 << 20)))}
    if outside == "storage":
        return {"RUN_CGROUP": str(stack.enter_context(limits.storage_group(work, 1 << 20)))}
    if outside == "disk":
        return {"RUN_SMALL": str(stack.enter_context(limits.small_disk(work / "scratch" / "checkpoints", "4m")))}
    return {}


def _start(recording: Recording, work: Path, env: Mapping[str, str]) -> list[subprocess.Popen[bytes]]:
    outside = recording.fault.outside or ""
    if recording.launcher == "spawn":
        env = {**env, "WORLD_SIZE": str(recording.world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(starts.PORT)}
        return [_spawn(starts.spawning(_script(recording, work)), work / "logs" / "console.log", env)]
    if recording.on_two_nodes:
        return [_node(recording, work, env, number) for number in range(2)]
    command = _torchrun(recording, work / "logs" / "tree")
    if outside == "rendezvous":
        options = ["--nnodes", "2", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
        options += ["--rdzv-endpoint", f"127.0.0.1:{starts.PORT}", "--rdzv-conf", "join_timeout=12,timeout=12"]
    else:
        options = ["--nproc-per-node", str(recording.world), "--master-port", str(starts.PORT)]
    return [_spawn([*command, *options, _script(recording, work)], work / "logs" / "console.log", env)]


def _node(recording: Recording, work: Path, env: Mapping[str, str], number: int) -> subprocess.Popen[bytes]:
    command = ["ip", "netns", "exec", netns.NODES[number], *_torchrun(recording, work / "logs" / f"node{number}")]
    command += ["--nnodes", "2", "--node-rank", str(number), "--nproc-per-node", "2"]
    command += ["--master-addr", netns.ADDRESSES[0], "--master-port", str(starts.PORT), _script(recording, work)]
    return _spawn(command, work / "logs" / f"node{number}.log", env)


def _torchrun(recording: Recording, tree: Path) -> list[str]:
    command = [sys.executable, "-m", "torch.distributed.run"]
    if recording.layout == "tree":
        return [*command, "--log-dir", str(tree), "--redirects", "3"]
    if recording.layout == "filtered":
        return [*command, "--role", "rank", "--tee", "3", "--local-ranks-filter", "0"]
    return [*command, "--tee", "3"] if recording.layout == "tee" else command


def _script(recording: Recording, work: Path) -> str:
    return str(work / "app" / f"{recording.script}.py")


def _spawn(command: Sequence[str], console: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    with console.open("wb") as out:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # open and silent, as a terminal that nobody looks at
            stdout=out,
            stderr=subprocess.STDOUT,
            env=dict(env),
            start_new_session=True,
        )


def _await(
    recording: Recording,
    work: Path,
    nodes: Sequence[subprocess.Popen[bytes]],
    cancel: Callable[[], None] | None = None,
) -> tuple[int, ...]:
    """Wait for all launchers, act once when the trigger is printed, end what outlives the limit.

    With `cancel` the nodes are single ranks: some time after the first has failed, it is called and the rest is ended.
    """
    end = time.monotonic() + recording.fault.limit_s
    act = action_on(recording, nodes)
    failed = False
    while any(n.poll() is None for n in nodes) and time.monotonic() < end:
        if act is not None and _printed(work / "logs", recording.fault.trigger):
            act()
            act = None
        if cancel is not None and not failed and any(n.poll() for n in nodes):
            failed, end = True, min(end, time.monotonic() + starts.GRACE_S)
        time.sleep(_POLL_S)
    if cancel is not None and any(n.poll() is None for n in nodes):
        cancel()
        for node in nodes:
            node.terminate()
    for node in nodes:
        _end(node)
    return tuple(n.returncode for n in nodes)


def _printed(logs: Path, trigger: str) -> bool:
    return any(re.search(trigger, p.read_text(errors="replace")) for p in logs.rglob("*.*") if p.is_file())


def _end(node: subprocess.Popen[bytes]) -> None:
    if node.poll() is None:
        node.terminate()
        try:
            node.wait(40)
        except subprocess.TimeoutExpired:
            os.killpg(node.pid, signal.SIGKILL)
            node.wait()


def _collect(recording: Recording, work: Path) -> dict[str, bytes]:
    """Log files under the names that they get in the incident."""
    found: dict[str, bytes] = {}
    for path in sorted(p for kind in LOG_FILES for p in (work / "logs").rglob(kind)):
        parts = path.relative_to(work / "logs").parts
        # torchrun puts a folder `<run id>_<random>` between the log folder and the attempts.
        kept = [p for p in parts if p != "tree" and not re.match(r"(?:none|\w+)_\w{8}$", p)]
        name = "/".join(kept)
        if recording.layout == "tree" and name == "console.log":
            name = "torchrun.log"
        if content := path.read_bytes():
            found[name] = content
    return found


def _facts(folder: Path) -> dict[int, Mapping[str, Any]]:
    return {int(p.stem): json.loads(p.read_text()) for p in folder.glob("*.json")}
