"""Launchers and schedulers: exits, signals, node loss, restarts (torchrun, Slurm, mpirun, Ray, DeepSpeed)."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable

from fsdpclassify.parsing.rule import Rule, event, simple
from fsdpclassify.parsing.tasks import task_list
from fsdpclassify.records import Event, EventKind, Line

_SIGNALS = {
    "Killed": -9,
    "Terminated": -15,
    "Out Of Memory": -9,
    "Aborted": -6,
    "Segmentation fault": -11,
    "Bus error": -7,
    "Hangup": -1,
}


def _slurm_exit(match: re.Match[str], line: Line) -> Iterable[Event]:
    what = match["what"]
    code = int(match["code"]) if match["code"] else next((v for k, v in _SIGNALS.items() if what.startswith(k)), None)
    yield event(
        EventKind.EXIT,
        line,
        rank=None,
        code=code,
        name="srun",
        ranks=task_list(match["tasks"]),
        detail=f"{match['node']}: task {match['tasks']}: {what}",
    )


def _elastic(match: re.Match[str], line: Line) -> Iterable[Event]:
    yield event(EventKind.EXIT, line, rank=None, code=match["code"], local_rank=match["local"], name="elastic")


_REPORT_RANK = re.compile(r"(?:^|[:>] ?)\s{0,9}rank +: (?P<rank>\d+) \(local_rank: (?P<local_rank>\d+)\)")
_REPORT_CODE = re.compile(r"(?:^|[:>] ?)\s{0,9}exitcode +: (?P<code>-?\d+) ?\(pid: \d+\)")
_REPORT_TIME = re.compile(r"(?:^|[:>] ?)\s{0,9}time +: (?P<detail>\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)")

_MPI = re.compile(
    r"(?:mpirun|prterun) noticed that process rank (?P<rank>\d+) with PID \d+ on node (?P<node>\S+) exited on"
    r" signal (?P<code>\d+)"
)


def _mpi(match: re.Match[str], line: Line) -> Iterable[Event]:
    yield event(EventKind.EXIT, line, rank=match["rank"], code=-int(match["code"]), name="mpirun", detail=match["node"])


_LOSS = (
    r"DUE TO (?P<why>PREEMPTION|NODE FAILURE|TIME LIMIT)|Node failure on (?P<node>\S+)"
    r"|Nodes \S+ not responding, setting DOWN|unexpectedly rebooted"
    r"|has been marked dead because the detector|PreemptionWatcher: preemption detected|Spot ITN received"
    r"|compute\.instances\.preempted"
    r"|has lost communication with a remote daemon|Received (?P<sig>\d+|(?:Signals\.)?SIG[A-Z]+) death signal"
    r"|got signal: (?P<sig2>\d+)\b"
)


def _signal_number(text: str | None) -> str | None:
    """`15`, `SIGTERM` or `Signals.SIGTERM` as digits; None for a name that this platform does not know."""
    if text is None or text.isdigit():
        return text
    number = getattr(signal, text.rsplit(".", 1)[-1], None)
    return None if number is None else str(int(number))


def _loss(match: re.Match[str], line: Line) -> Iterable[Event]:
    stopped = match["sig"] or match["sig2"]
    name = {"TIME LIMIT": "time_limit", "PREEMPTION": "preemption", "NODE FAILURE": "node_loss"}.get(
        match["why"] or "", "node_loss"
    )
    yield event(
        EventKind.SIGNAL,
        line,
        code=_signal_number(stopped),
        name="agent_signal" if stopped else name,
        detail=match[0][:120],
    )


RULES = (
    Rule(
        name="elastic_exit",
        anchor=r"failed \(exitcode: ",
        pattern=re.compile(r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<local>\d+)"),
        build=_elastic,
    ),
    Rule(
        name="elastic_report_rank",
        anchor=r"rank +: \d",
        pattern=_REPORT_RANK,
        build=simple(EventKind.RANK_MAP, name="report_rank"),
    ),
    Rule(
        name="elastic_report_code",
        anchor=r"exitcode +: ",
        pattern=_REPORT_CODE,
        build=simple(EventKind.RANK_MAP, name="report_code"),
    ),
    Rule(
        name="elastic_report_time",
        anchor=r"time +: \d",
        pattern=_REPORT_TIME,
        build=simple(EventKind.RANK_MAP, name="report_time"),
    ),
    Rule(
        name="elastic_sigterm",
        anchor=r"closing signal SIG",
        pattern=re.compile(r"Sending process \d+ closing signal (?P<detail>SIG\w+)"),
        build=simple(EventKind.SIGNAL, name="peer_terminated"),
    ),
    Rule(
        name="srun_exit",
        anchor=r"srun: error: ",
        pattern=re.compile(
            r"srun: error: (?P<node>[\w.-]+): tasks? (?P<tasks>[\d,-]+): (?P<what>Exited with exit code"
            r" (?P<code>\d+)|[A-Z][\w ]+)"
        ),
        build=_slurm_exit,
    ),
    Rule(name="mpirun_exit", anchor=r"noticed that process rank", pattern=_MPI, build=_mpi),
    Rule(
        name="node_or_job_lost",
        anchor=(
            r"DUE TO |Node failure on|setting DOWN|unexpectedly rebooted|marked dead because|preemption detected"
            r"|Spot ITN|instances\.preempted|lost communication with|death signal|got signal: "
        ),
        pattern=re.compile(_LOSS),
        build=_loss,
    ),
    Rule(
        name="oom_event",
        anchor=(
            r"oom[_-]kill|OOM Killed|OOMKilled|Out Of Memory \(OOM\)|SystemOOM|ut of memory: Kill"
            r"|running low on memory"
        ),
        pattern=re.compile(
            r"(?P<detail>oom[_-]kill event|OOM Killed|OOMKilled|Out Of Memory \(OOM\)|SystemOOM"
            r"|[Oo]ut of memory: Kill(?:ed)? process \d+|"
            r"oom-kill:constraint|node running low on memory)"
        ),
        build=simple(EventKind.KILL),
    ),
    Rule(
        name="actor_died",
        anchor=r"worker process has died|ActorDiedError|WorkerCrashedError|actor died unexpectedly",
        pattern=re.compile(
            r"(?P<detail>worker process has died|ActorDiedError|WorkerCrashedError|actor died unexpectedly)"
        ),
        build=simple(EventKind.EXIT, name="ray_actor"),
    ),
    Rule(
        name="deepspeed_exit",
        anchor=r"exits with return code = ",
        pattern=re.compile(
            r"(?:--local_rank=(?P<local_rank>\d+)[^\n]{0,200})?exits with return code = (?P<code>-?\d+)"
        ),
        build=simple(EventKind.EXIT, name="deepspeed"),
    ),
    Rule(
        name="lightning_child",
        anchor=r"Child process with PID",
        pattern=re.compile(
            r"(?:\[rank: (?P<rank>\d+)\] )?Child process with PID \d+ terminated with code (?P<code>-?\d+)"
        ),
        build=simple(EventKind.EXIT, name="lightning"),
    ),
    Rule(
        name="spawned_exit",
        anchor=r"ProcessExitedException: process",
        pattern=re.compile(
            r"ProcessExitedException: process (?P<rank>\d{1,5}) terminated with"
            r" (?:signal (?P<detail>SIG[A-Z]{2,6})|exit code (?P<code>-?\d+))"
        ),
        build=simple(EventKind.EXIT, name="spawn"),
    ),
    Rule(
        name="shell_core",
        anchor=r"\(core dumped\)|^Killed$|Segmentation fault",
        pattern=re.compile(
            r"(?P<detail>(?:Aborted|Segmentation fault|Bus error|Killed)(?: +\(core dumped\)))|^(?P<name>Killed)$"
        ),
        build=simple(EventKind.EXIT),
    ),
    Rule(
        name="attempt",
        anchor=(
            r"will restart worker group|attempts left|Restarting worker group|requeing job"
            r"|Restarting training attempt|REQUEUE|equeuing job"
        ),
        pattern=re.compile(
            r"(?P<detail>will restart worker group|Restarting worker group|requeing job|\d+/\d+ attempts left"
            r"|Restarting training attempt"
            r"|DUE TO JOB REQUEUE|REQUEUED|[Rr]equeuing job)"
        ),
        build=simple(EventKind.ATTEMPT),
    ),
    Rule(
        name="start_up",
        anchor=r"GLOBAL_RANK: |distributed processes registered|Starting elastic_operator|endezvous'ing worker group"
        r"|initialized process group"
        r"|Setting OMP_NUM_THREADS|nitializing torch distributed|Running training \*|> initializing",
        pattern=re.compile(
            r"(?P<detail>Initializing distributed: GLOBAL_RANK: \d+|All distributed processes registered"
            r"|Starting elastic_operator with launch configs"
            r"|Rendezvous'ing worker group|initialized process group"
            r"|Setting OMP_NUM_THREADS environment variable for each process"
            r"|[Ii]nitializing torch distributed|\*{3,} Running training \*|> initializing (?:torch distributed"
            r"|model parallel))"
        ),
        build=simple(EventKind.ATTEMPT, name="start_up"),
    ),
    Rule(
        name="resumed",
        anchor=r"[Rr]esum(?:ing|ed) |successfully loaded checkpoint",
        pattern=re.compile(
            r"(?P<detail>[Rr]esum(?:ing|ed) (?:(?:training|run|it) )?(?:from|at) (?:(?:the|a|last|latest) ){0,2}"
            r"(?:checkpoint|snapshot|(?:global[ _])?step|iteration|epoch|\S{0,200}(?:ckpt|checkpoint))"
            r"|successfully loaded checkpoint)"
        ),
        build=simple(EventKind.ATTEMPT, name="resumed"),
    ),
)
