# ruff: noqa: E501
from collections.abc import Callable

import pytest

from fsdpclassify.records import Event, EventKind, Line

Events = Callable[..., list[Event]]
Lines = Callable[..., list[Line]]

ELASTIC = "0305 04:11:12.301000 8801 torch/distributed/elastic/multiprocessing/api.py:1002] "


def test_exit_of_a_local_rank(events: Events) -> None:
    (found,) = events(f"E{ELASTIC}failed (exitcode: -9) local_rank: 5 (pid: 8834) of binary: /opt/venv/bin/python3")
    assert (found.kind, found.code, found.local_rank, found.rank) == (EventKind.EXIT, -9, 5, None)


def test_closing_signal_goes_to_survivors(events: Events) -> None:
    (found,) = events(f"W{ELASTIC}Sending process 8830 closing signal SIGTERM")
    assert (found.kind, found.name) == (EventKind.SIGNAL, "peer_terminated")


@pytest.mark.parametrize("text", ["Signals.SIGTERM", "SIGTERM", "15"])
def test_death_signal_of_every_version(events: Events, text: str) -> None:
    (found,) = events(f"W{ELASTIC}Received {text} death signal, shutting down workers")
    assert (found.kind, found.name, found.code) == (EventKind.SIGNAL, "agent_signal", 15)


def test_death_signal_without_the_shutdown(events: Events) -> None:
    (found,) = events("Received Signals.SIGHUP death signal")
    assert found.code == 1


def test_exception_of_a_stopped_agent(events: Events) -> None:
    found = events("torch.distributed.elastic.multiprocessing.api.SignalException: Process 41207 got signal: 2")
    assert [(e.kind, e.code) for e in found] == [(EventKind.SIGNAL, 2)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("task 3: Killed", -9),
        ("tasks 0-2,5,7: Terminated", -15),
        ("task 3: Out Of Memory", -9),
        ("tasks 4-7: Aborted (core dumped)", -6),
        ("task 1: Exited with exit code 17", 17),
        ("task 1: Segmentation fault (core dumped)", -11),
        ("task 1: Bus error", -7),
    ],
)
def test_srun_exits(events: Events, text: str, code: int | None) -> None:
    found = [e for e in events(f"srun: error: node07: {text}") if e.name == "srun"]
    assert {(e.kind, e.code) for e in found} == {(EventKind.EXIT, code)}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            "slurmstepd: error: *** JOB 881 ON node07 CANCELLED AT 2026-03-05T04:11:20 DUE TO TIME LIMIT ***",
            "time_limit",
        ),
        (
            "slurmstepd: error: *** JOB 881 ON node07 CANCELLED AT 2026-03-05T04:11:20 DUE TO PREEMPTION ***",
            "preemption",
        ),
        (
            "slurmstepd-node07: error: *** STEP 881.0 ON node07 CANCELLED AT 2026-03-05T04:11:20 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
            "node_loss",
        ),
        (
            "[2026-03-05T04:11:20.117] error: *** JOB 881 ON node07 CANCELLED AT 2026-03-05T04:11:20 DUE TO NODE FAILURE ***",
            "node_loss",
        ),
        ("srun: error: Node failure on node07", "node_loss"),
    ],
)
def test_loss_of_nodes_and_jobs(events: Events, text: str, name: str | None) -> None:
    (found,) = events(text)
    assert (found.kind, found.name) == (EventKind.SIGNAL, name)


def test_ordinary_cancel_is_no_loss(events: Events) -> None:
    found = events("slurmstepd: error: *** STEP 881.0 ON node07 CANCELLED AT 2026-03-05T04:11:20 ***")
    assert [(e.kind, e.name) for e in found] == [(EventKind.HARDWARE, "cancelled")]


@pytest.mark.parametrize(
    "text",
    [
        "slurmstepd: error: Detected 1 oom_kill event in StepId=881.0. Some of the step tasks have been OOM Killed.",
        "slurmstepd: error: Detected 2 oom-kill event(s) in StepId=881.batch. Some of your processes may have been killed by the cgroup out-of-memory handler.",
        "Memory cgroup out of memory: Killed process 8834 (pt_data_worker) total-vm:91200412kB, anon-rss:61200120kB",
        "Out of memory: Kill process 8834 (python3) score 901 or sacrifice child",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0-1,oom_memcg=/job,task=python3,pid=8834,uid=0",
        "State: Terminated  Reason: OOMKilled  Exit Code: 137",
        "Task was killed due to the node running low on memory.",
    ],
)  # fmt: skip
def test_memory_kills(events: Events, text: str) -> None:
    assert {e.kind for e in events(text)} == {EventKind.KILL}


@pytest.mark.parametrize("program", ["mpirun", "prterun"])
def test_mpirun_names_the_rank(events: Events, program: str) -> None:
    (found,) = events(
        f"{program} noticed that process rank 14 with PID 4257 on node node02 exited on signal 9 (Killed)."
    )
    assert (found.kind, found.rank, found.code) == (EventKind.EXIT, 14, -9)


def test_deepspeed_launcher(events: Events) -> None:
    line = "node03: [2026-03-05 04:11:22,017] [ERROR] [launch.py:325:sigkill_handler] ['/usr/bin/python', '-u', 'x.py', '--local_rank=7'] exits with return code = -6"
    found = [e for e in events(line) if e.kind is EventKind.EXIT]
    assert [(e.code, e.local_rank, e.rank, e.line.node) for e in found] == [(-6, 7, None, "node03")]


def test_lightning_child(events: Events) -> None:
    (found,) = events(
        "[rank: 2] Child process with PID 4257 terminated with code 1. Forcefully terminating all other processes to avoid zombies 🧟"
    )
    assert (found.kind, found.rank, found.code) == (EventKind.EXIT, 2, 1)


@pytest.mark.parametrize(
    "text",
    [
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
        "ray.exceptions.WorkerCrashedError: The worker died unexpectedly while executing this task.",
    ],
)
def test_ray_actors(events: Events, text: str) -> None:
    assert EventKind.EXIT in {e.kind for e in events(text)}


@pytest.mark.parametrize(
    "text",
    [
        "[default] Worker group FAILED. 2/3 attempts left; will restart worker group",
        "slurmstepd: error: *** JOB 881 ON node07 CANCELLED AT 2026-03-05T04:11:20 DUE TO JOB REQUEUE ***",
        "Initializing distributed: GLOBAL_RANK: 2, MEMBER: 3/16",
        "[rank 0] initialized process group, world_size=4, local_rank=0",
    ],
)
def test_attempts(events: Events, text: str) -> None:
    assert EventKind.ATTEMPT in {e.kind for e in events(text)}
