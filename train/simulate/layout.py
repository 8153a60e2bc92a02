"""Records become lines of files: prefixes, side files, glued progress bars, Ray's count of repeated lines."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from random import Random

from train.simulate.prefix import Dialect, inner, outer
from train.simulate.record import Record
from train.simulate.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One physical line of a report and whether it is decisive."""

    text: str
    record: Record
    decisive: bool
    open: bool = False


def lay_out(records: list[Record], world: World, rng: Random, dialect: Dialect) -> dict[str, list[Shown]]:
    """Files by name, each a list of lines; system and tool records may get files of their own."""
    main, split = _main_name(world, rng), _splits(world, rng)
    apart = rng.random() < 0.75
    names = {
        "tool": rng.choice(("notes", "diag", "pyspy", "tool", "node_check", "ps")),
        "system": rng.choice(("dmesg", "syslog", "kernel", "journal")),
    }
    files: dict[str, list[Shown]] = {}
    for record in records:
        name = _file_of(record, world, main, split, names if apart else {})
        lines = files.setdefault(name, [])
        for i, text in enumerate(record.lines):
            body = inner(world, record, text, i == 0)
            bare = record.channel in {"system", "tool"} or "." in record.file
            full = body if bare else outer(world, dialect, record, body, rng)
            full = "" if not text and record.prefix == "c10" and not dialect.label else full
            lines.append(
                Shown(
                    text=full,
                    record=record,
                    decisive=record.strength >= 2 and _telling(record, i),
                    open=record.open and i == len(record.lines) - 1,
                )
            )
    return {name: _glue(lines) for name, lines in files.items() if lines}


def repeated(records: list[Record], world: World, rng: Random, label: str) -> list[Record]:
    """Ray prints a line that several workers share once, and how often it came after that."""
    if label != "ray" or rng.random() < 0.5:
        return records
    first: dict[str, int] = {}
    counts: dict[int, int] = {}
    kept: list[Record] = []
    for record in records:
        shared = record.role in {"wait", "status", "notify", "after"} and len(record.lines) == 1
        key = re.sub(r"\d+", "#", record.lines[0]) if shared else ""
        if shared and key in first and record.strength < 3:
            counts[first[key]] += 1
            continue
        if shared and key not in first:
            first[key] = len(kept)
            counts[len(kept)] = 0
        kept.append(record)
    for place, count in counts.items():
        if count:
            text = f"{kept[place].lines[0]} [repeated {count}x across cluster]"
            kept[place] = replace(kept[place], lines=(text,))
    return kept


def _telling(record: Record, index: int) -> bool:
    """Whether a line of a decisive record is worth citing: all of a short one, the ends of a long one."""
    last = len(record.lines) - 1
    return last < 3 or index == last or (index == 0 and "Traceback" not in record.lines[0])


def _main_name(world: World, rng: Random) -> str:
    if world.launcher == "ray":
        return rng.choice(("driver.log", "ray-driver.log", "job.log"))
    if world.launcher.startswith("slurm"):
        return rng.choice(("slurm.out", "job.err", "job.log", "slurm-4411.out"))
    return rng.choice(
        (
            "train.log",
            "train.log",
            "train.log",
            "console.log",
            "output.log",
            "stderr.log",
            "job.log",
            "trainer.log",
            "log.txt",
        )
    )


def _splits(world: World, rng: Random) -> str:
    if world.launcher == "files":
        return "rank"
    return "node" if world.nodes > 1 and rng.random() < 0.16 else ""


def _file_of(record: Record, world: World, main: str, split: str, apart: dict[str, str]) -> str:
    if "." in record.file:
        return record.file
    if record.channel in apart:
        return f"{apart.get(record.file) or record.file or apart[record.channel]}.txt"
    if split == "rank":
        return f"rank{record.rank}.log" if record.rank is not None else main
    if split == "node":
        return f"node{record.node}.log"
    return main


def _glue(lines: list[Shown]) -> list[Shown]:
    glued: list[Shown] = []
    for shown in lines:
        if glued and glued[-1].open:
            last = glued.pop()
            joint = replace(
                shown,
                text=last.text + ("\r" if shown.open else "") + shown.text,
                decisive=last.decisive or shown.decisive,
            )
            glued.append(joint)
        else:
            glued.append(shown)
    return glued
