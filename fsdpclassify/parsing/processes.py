"""Process lists: who stands in a system call that does not return, and who sleeps while others run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fsdpclassify.parsing.blocks import Table
from fsdpclassify.parsing.signs import host_event
from fsdpclassify.records import Event, Line

_ROWS = 4000
#: Programs that train; a kernel thread that waits for the disk is in the same state and means nothing.
TRAINS = re.compile(r"python|^pt_|^ray\b|ray::|torch|train|accelerate|deepspeed|mpirun|^pt-", re.IGNORECASE)
#: A title that the program gave itself, or the environment that `ps e` prints.
_RANK = re.compile(r"\(rank (\d{1,6})\)|(?<![A-Z_])RANK=(\d{1,6})\b")
_STAT = re.compile(r"^[DRSTZXIW][sl<NL+]{0,5}$")


def read_processes(lines: Sequence[Line]) -> Iterable[Event]:
    """Events of `ps`: training processes in uninterruptible sleep, and ranks that sleep while others compute."""
    names = lines[0].body.split()
    if "PID" not in names or "STAT" not in names:
        return
    pid, state = names.index("PID"), names.index("STAT")
    states: dict[int, tuple[Line, str]] = {}
    for line in lines[1:]:
        cells = line.body.split(None, len(names) - 1)
        if len(cells) < len(names) or not cells[pid].isdigit() or not _STAT.match(cells[state]):
            continue
        match = _RANK.search(cells[-1])
        rank = int(match[1] or match[2]) if match else None
        if rank is not None:
            states[rank] = (line, cells[state][0])
        if cells[state].startswith("D") and TRAINS.search(cells[-1]):
            detail = f"process {cells[pid][:12]} stands in a system call that does not return"
            yield replace(host_event(line, name="hung_task", detail=detail), rank=rank)
    yield from _asleep(states)


def _asleep(states: dict[int, tuple[Line, str]]) -> Iterator[Event]:
    """Ranks that sleep, at most half of all, while the others run: whoever waits in a collective spins."""
    asleep = [rank for rank, (_, state) in states.items() if state == "S"]
    if not 2 * len(asleep) <= len(states) or {state for _, state in states.values()} != {"S", "R"}:
        return
    for rank in asleep:
        detail = f"the process of rank {rank} sleeps while those of the others run"
        yield replace(host_event(states[rank][0], name="asleep", detail=detail), rank=rank)


PROCESSES = Table(name="process_list", read=read_processes, most=_ROWS)

RULES = (
    PROCESSES.rule(
        anchor=r"PID +[A-Z%]",
        pattern=re.compile(r"^(?:\S{1,12} {1,20}){0,6}PID (?=.{0,150}\bSTAT\b) {0,20}[A-Z%].{0,200}(?:COMMAND|CMD)$"),
    ),
)
