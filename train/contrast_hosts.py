"""Six host logs for `train.contrast`: healthy steps, then seven of eight ranks time out and rank 3 does not show up.

Each is written as the programs of its kind write it (torch 2.2, 2.5 and 2.7 over NCCL, gloo; one file or a folder;
ranks named by a prefix, by the folder or not at all). Nothing in them says why rank 3 is missing: that is left to the
lines that are put in, shortly before the wait begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from string import Template

WORLD = 8
ABSENT = 3
_START = datetime(2026, 3, 5, 3, 58, 52)
_STEP_S = 4.0
_STEPS = range(1189, 1201)
#: Between the last step, the lines put in, and the collective that rank 3 does not join.
_SAID_S, _ONSET_S = 2.0, 3.0
_NUMEL = 3145728
_SEQ = 88412


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What is put in: lines of the absent rank, of every other rank, and of the absent rank's node.

    `$rank`, `$node`, `$step`, `$clock`, `$syslog`, `$iso` stand for the printer's rank, its node, the step that comes
    next and three forms of the time; `$old_syslog`, `$old_iso` for the same moment of another day.
    """

    absent: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    node: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """One line, its time and its printer: a rank, or None for the system log of the absent rank's node."""

    at: datetime
    rank: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """How one kind of run prints its steps (`speakers` alone do), dies and is stored (`layout`: file name -> text)."""

    name: str
    ranks_a_node: int
    timeout_s: int
    speakers: tuple[int, ...]
    step: Callable[[int, int, datetime], str]
    death: Callable[[int, datetime, int], list[str]]
    layout: Callable[[Sequence[Printed]], dict[str, str]]

    def files(self, said: Said) -> dict[str, str]:
        """The run with these lines in it: file name -> text. Raises `KeyError` for an unknown `$name`."""
        onset = _START + timedelta(seconds=_STEP_S * len(_STEPS) + _ONSET_S)
        printed = [*self._steps(), *self._said(said, onset - timedelta(seconds=_ONSET_S - _SAID_S))]
        for rank in (r for r in range(WORLD) if r != ABSENT):
            late_ms = 11 + 7 * rank
            at = onset + timedelta(seconds=self.timeout_s + (rank % 4 == 2))
            printed += [Printed(at=at, rank=rank, text=t) for t in self.death(rank, at, late_ms)]
        return self.layout(sorted(printed, key=lambda p: p.at))

    def _steps(self) -> list[Printed]:
        out = []
        for done, step in enumerate(_STEPS, start=1):
            at = _START + timedelta(seconds=_STEP_S * done)
            out += [Printed(at=at, rank=r, text=self.step(r, step, at)) for r in self.speakers]
        return out

    def _said(self, said: Said, at: datetime) -> list[Printed]:
        who = [(rank, said.absent if rank == ABSENT else said.others) for rank in range(WORLD)]
        lines: list[tuple[int | None, str]] = [(rank, text) for rank, texts in who for text in texts]
        lines += [(None, text) for text in said.node]
        return [Printed(at=at, rank=rank, text=self._filled(text, rank, at)) for rank, text in lines]

    def _filled(self, text: str, rank: int | None, at: datetime) -> str:
        return Template(text).substitute(self._names(ABSENT if rank is None else rank, at))

    def _names(self, rank: int, at: datetime) -> Mapping[str, str]:
        old = at - timedelta(days=6, hours=7)
        return {
            "rank": str(rank),
            "node": f"node{rank // self.ranks_a_node:02d}",
            "step": str(_STEPS.stop),
            "clock": f"{at:%H:%M:%S}",
            "syslog": f"{at:%b %d %H:%M:%S}",
            "iso": f"{at:%Y-%m-%dT%H:%M:%S}",
            "old_syslog": f"{old:%b %d %H:%M:%S}",
            "old_iso": f"{old:%Y-%m-%dT%H:%M:%S}",
        }


def hosts() -> tuple[Host, ...]:
    """The six, in a fixed order."""
    everyone = tuple(range(WORLD))
    return (
        Host(
            name="torch2.2-one-file-bare", ranks_a_node=8, timeout_s=600, speakers=(0,),
            step=_step_plain, death=_death_2_2, layout=_one_file(lambda p: p.text),
        ),
        Host(
            name="torch2.5-one-file-tee", ranks_a_node=8, timeout_s=600, speakers=everyone,
            step=_step_logged, death=_death_2_5, layout=_one_file(_teed),
        ),
        Host(
            name="torch2.5-file-a-pod", ranks_a_node=1, timeout_s=600, speakers=everyone,
            step=_step_ranked, death=_death_2_5, layout=_file_a_pod,
        ),
        Host(
            name="torch2.7-one-file-slurm", ranks_a_node=4, timeout_s=600, speakers=(0,),
            step=_step_logged, death=_death_2_7, layout=_one_file(_labelled),
        ),
        Host(
            name="torch2.7-folder-torchrun", ranks_a_node=8, timeout_s=600, speakers=everyone,
            step=_step_logged, death=_death_2_7, layout=_folder_a_rank,
        ),
        Host(
            name="gloo-one-file", ranks_a_node=4, timeout_s=1800, speakers=everyone,
            step=_step_logged, death=_death_gloo, layout=_one_file(_labelled),
        ),
    )  # fmt: skip


def _step_plain(_rank: int, step: int, _at: datetime) -> str:
    return f"step {step}/20000 | loss {2.41 - step / 9000:.4f} | lr 2.8e-04 | {_STEP_S + step % 3 / 50:.2f} s/step"


def _step_logged(_rank: int, step: int, at: datetime) -> str:
    took = _STEP_S + step % 3 / 50
    return (
        f"{at:%Y-%m-%d %H:%M:%S},117 - pretrain - INFO - step: {step} loss: {2.41 - step / 9000:.4f} took: {took:.2f}s"
    )


def _step_ranked(rank: int, step: int, at: datetime) -> str:
    return f"{at:%H:%M:%S} INFO [rank {rank}] step={step} loss={2.41 - step / 9000:.4f} step_s={_STEP_S:.2f}"


def _work(late_ms: int, timeout_s: int = 600) -> str:
    sizes = f"NumelIn={_NUMEL}, NumelOut={_NUMEL * WORLD}, Timeout(ms)={timeout_s * 1000}"
    return (
        f"Watchdog caught collective operation timeout: WorkNCCL(SeqNum={_SEQ}, OpType=_ALLGATHER_BASE, {sizes})"
        f" ran for {timeout_s * 1000 + late_ms} milliseconds before timing out."
    )


_CORRUPTED = (
    "Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU"
    " operations might run on corrupted/incomplete data."
)
_DOWN = "To avoid data inconsistency, we are taking the entire process down."


def _death_2_2(rank: int, _at: datetime, late_ms: int) -> list[str]:
    head = f"[rank{rank}]:[E ProcessGroupNCCL.cpp:"
    return [
        f"{head}523] [Rank {rank}] {_work(late_ms)}",
        f"{head}537] {_CORRUPTED}",
        f"{head}543] {_DOWN}",
        f"{head}1182] [Rank {rank}] NCCL watchdog thread terminated with exception: [Rank {rank}] {_work(late_ms)}",
    ]


def _c10(rank: int, at: datetime, late_ms: int) -> Callable[[int, str], str]:
    stamp = f"E{at.month}{at:%d %H:%M:%S}.{late_ms * 9176301 % 10**9:09d}"
    return lambda line, text: f"[rank{rank}]:[{stamp} ProcessGroupNCCL.cpp:{line}] {text}"


def _death_2_5(rank: int, at: datetime, late_ms: int) -> list[str]:
    say, group = _c10(rank, at, late_ms), f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    counters = f"{_SEQ}, last enqueued NCCL work: {_SEQ}, last completed NCCL work: {_SEQ - 1}."
    return [
        say(616, f"[Rank {rank}] {_work(late_ms)}"),
        say(1785, f"{group} Exception (either an error or timeout) detected by watchdog at work: {counters}"),
        say(1834, f"{group} Timeout at NCCL work: {counters}"),
        say(630, f"[Rank {rank}] {_CORRUPTED}"),
        say(636, f"[Rank {rank}] {_DOWN}"),
    ]


def _death_2_7(rank: int, at: datetime, late_ms: int) -> list[str]:
    say, group = _c10(rank, at, late_ms), f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    status = f"{_SEQ} PG status: last enqueued work: {_SEQ}, last completed work: {_SEQ - 1}"
    return [
        say(632, f"[Rank {rank}] {_work(late_ms)}"),
        say(2271, f"{group}  failure detected by watchdog at work sequence id: {status}"),
        say(
            670,
            "Stack trace of the failed collective not found, potentially because FlightRecorder is disabled. You can"
            " enable it by setting TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value.",
        ),
        say(2106, f"{group} First PG on this rank to signal dumping."),
        say(684, f"[Rank {rank}] {_CORRUPTED}"),
        say(698, f"[Rank {rank}] {_DOWN}"),
    ]


def _death_gloo(rank: int, _at: datetime, _late_ms: int) -> list[str]:
    library = "/opt/venv/lib/python3.11/site-packages/torch/distributed"
    return [
        f"[rank{rank}]: Traceback (most recent call last):",
        f'[rank{rank}]:   File "/job/pretrain.py", line 212, in <module>',
        f"[rank{rank}]:     main()",
        f'[rank{rank}]:   File "{library}/distributed_c10d.py", line 2829, in all_reduce',
        f"[rank{rank}]:     work.wait()",
        f"[rank{rank}]: RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out"
        " waiting 1800000ms for recv operation to complete",
    ]


def _teed(line: Printed) -> str:
    return line.text if line.rank is None else f"[default{line.rank}]:{line.text}"


def _labelled(line: Printed) -> str:
    return line.text if line.rank is None else f"{line.rank}: {line.text}"


def _one_file(prefixed: Callable[[Printed], str]) -> Callable[[Sequence[Printed]], dict[str, str]]:
    return lambda printed: {"train.log": "".join(f"{prefixed(p)}\n" for p in printed)}


def _folder_a_rank(printed: Sequence[Printed]) -> dict[str, str]:
    """A torchrun log folder; what the node says lies beside it."""
    return _grouped(printed, lambda p: f"none_x8k2vq1d/attempt_0/{p.rank}/stderr.log", lambda p: p.text)


def _file_a_pod(printed: Sequence[Printed]) -> dict[str, str]:
    """`kubectl logs --timestamps` of one pod a rank."""
    return _grouped(
        printed, lambda p: f"trainer-{p.rank}.log", lambda p: f"{p.at:%Y-%m-%dT%H:%M:%S}.204117503Z {p.text}"
    )


def _grouped(
    printed: Sequence[Printed], name: Callable[[Printed], str], text: Callable[[Printed], str]
) -> dict[str, str]:
    out: dict[str, str] = {}
    for line in printed:
        key, said = ("node.log", line.text) if line.rank is None else (name(line), text(line))
        out[key] = out.get(key, "") + said + "\n"
    return out
