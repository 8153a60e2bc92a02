"""From records to files: per-rank trees of `--redirects`, the prefixed console of `--tee`, a bare console."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from train.simulate.gloo.run import Run
from train.simulate.record import Record

#: How often two lines of a shared console run into one.
_GLUED = 0.04
_LAYOUTS = {"tree": 46, "tee": 26, "console": 20, "filtered": 8}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One physical line and whether the label rests on it."""

    text: str
    decisive: bool
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """`kind` of layout, the folder of an attempt, whether whole records of ranks mix line by line."""

    kind: str
    attempt: str
    mixed: bool
    agent: str


def pick_layout(run: Run) -> Layout:
    """Draw a layout."""
    rng = run.rng
    kind = rng.choices(list(_LAYOUTS), list(_LAYOUTS.values()))[0]
    if kind == "filtered" and 0 not in run.story.waiting and rng.random() < 0.75:
        kind = "tee"  # who sees only rank 0 sees nothing of a wait for it
    word = "".join(rng.choice("abcdefghijklmnopqrstuvwxyz0123456789_") for _ in range(8))
    return Layout(
        kind=kind,
        attempt=rng.choice(
            ("attempt_0", "attempt_0", "attempt_0", f"none_{word}/attempt_0", f"logs/attempt_{word[0]}")
        ).replace("attempt_" + word[0], "attempt_0"),
        mixed=kind in {"tee", "console"} and rng.random() < 0.2,
        agent=rng.choice(("torchrun.log", "torchrun.log", "launcher.log", "agent.log")),
    )


def shown(run: Run, layout: Layout) -> list[Record]:
    """The records that the layout lets one see, in the order of time."""
    kept = [record for record in run.story.records if _kept(run, layout, record)]
    return sorted(kept, key=lambda record: record.time)


def _kept(run: Run, layout: Layout, record: Record) -> bool:
    if record.rank is None or record.channel == "side":
        return True
    if record.rank in run.lost and layout.kind == "tree":
        return False
    return layout.kind != "filtered" or run.world.local(record.rank) == 0


def files(run: Run, layout: Layout, records: list[Record]) -> dict[str, list[Line]]:
    """Files by their path below `logs/`."""
    found: dict[str, list[Line]] = {}
    for name, line in _mixed(run, layout, records) if layout.mixed else _whole(run, layout, records):
        lines = found.setdefault(name, [])
        if lines and lines[-1].open:
            last = lines.pop()
            text = last.text + ("\r" if line.open else "") + line.text
            line = Line(text=text, decisive=last.decisive or line.decisive, open=line.open)
        lines.append(line)
    if layout.kind == "console" and run.voice.everyone:
        return {name: _glued(lines, run.rng) for name, lines in found.items()}
    return found


def _glued(lines: list[Line], rng: Random) -> list[Line]:
    """Ranks that write to one terminal at once: now and then two lines come out as one, and their ends after it."""
    found: list[Line] = []
    for line in lines:
        last = found[-1] if found else None
        if last and rng.random() < _GLUED and last.text[:1] == "[" == line.text[:1] and not last.decisive:
            found[-1] = replace(last, text=last.text + line.text, decisive=line.decisive)
            found.append(Line(text="", decisive=False, open=False))
        else:
            found.append(line)
    return found


def _whole(run: Run, layout: Layout, records: list[Record]) -> Iterator[tuple[str, Line]]:
    for record in records:
        for i in range(len(record.lines)):
            yield _line(run, layout, record, i)


def _mixed(run: Run, layout: Layout, records: list[Record]) -> Iterator[tuple[str, Line]]:
    """Lines of long records come out a little after one another, so those of several ranks mix."""
    rows = [
        (record.time + (i * 0.002 if record.channel == "rank" else 0.0), n, i)
        for n, record in enumerate(records)
        for i in range(len(record.lines))
    ]
    for _, n, i in sorted(rows):
        yield _line(run, layout, records[n], i)


def _line(run: Run, layout: Layout, record: Record, index: int) -> tuple[str, Line]:
    text = record.lines[index]
    told = record.strength >= 2 and _telling(record, index)
    bar = bool(re.search(r"%\|.*\]$", text)) and record.role == "chat"
    if layout.kind == "tee" and record.rank is not None and record.channel != "side":
        text = f"[default{run.world.local(record.rank)}]:{text}"
        bar = False
    return _name(run, layout, record), Line(text=text, decisive=told, open=bar)


def _telling(record: Record, index: int) -> bool:
    """Which lines of a record its strength rests on."""
    text, last = record.lines[index], len(record.lines) - 1
    if record.tie == "uncited":
        return False
    if record.channel == "launcher":
        return bool(re.search(r"exitcode: (?!1\b)|exitcode  : -(?!15)|Signal (?!15)|joined|RendezvousTimeout", text))
    if record.tie:
        return text in record.tie.split("\n")
    return last < 3 or index == last


def _name(run: Run, layout: Layout, record: Record) -> str:
    world = run.world
    node = f"node{record.node}" if world.nodes > 1 else ""
    if record.channel == "side":
        return record.file
    if layout.kind != "tree":
        return f"{node or 'console'}.log"
    if record.rank is None:
        return f"{node}.log" if node else layout.agent
    stream = record.file if record.file in {"stdout", "stderr"} else "stderr"
    return "/".join(part for part in (node, layout.attempt, str(world.local(record.rank)), f"{stream}.log") if part)


def damage(texts: dict[str, str], rng: Random) -> dict[str, str]:
    """A stream of a rank that printed nothing is sometimes there as an empty file; nothing else is lost."""
    trees = [name for name in texts if name.endswith("stderr.log")]
    if trees and rng.random() < 0.3:
        empty = trees[0].replace("stderr", "stdout")
        texts.setdefault(empty, "")
    return texts
