"""What the person who reports it keeps of a story: which ranks, which lines, how long a tail, how damaged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from train.simulate.prefix import Dialect, inner, outer
from train.simulate.record import Record, Story
from train.simulate.world import World

#: How likely a short report keeps each optional kind of line.
_KEEP = {"status": 0.6, "stack": 0.42, "notify": 0.35, "after": 0.5, "frames": 0.3, "launch": 0.38}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One physical line of a report and whether it is decisive."""

    text: str
    record: Record
    decisive: bool
    open: bool = False


def keep(story: Story, world: World, rng: Random, size: str) -> list[Record]:
    """The records that survive, in the order of their clocks. `size`: short, medium or long."""
    ordered = sorted(
        story.records, key=lambda record: (record.time, record.rank if record.rank is not None else -1)
    )
    if story.keep_whole:
        return ordered
    chosen = _choose_ranks(ordered, rng, size, story.label)
    flags = {role: rng.random() < (share if size == "short" else 0.85) for role, share in _KEEP.items()}
    chat = (
        rng.choice((0, 0, 1, 2, 3, 5, 8, 12))
        if size == "short"
        else rng.randrange(8, 45)
        if size == "medium"
        else 10**6
    )
    before = [record for record in ordered if record.role == "chat" and record.time <= story.detection]
    kept_chat = set(map(id, before[-chat:])) if chat else set()
    kept = [record for record in ordered if _kept(record, story, flags, chosen, kept_chat)]
    return kept if size == "long" else _trim(kept, rng, size)


#: What goes first when a report must be short. Lines of a wait and the strongest evidence go last.
_FIRST_OUT = ("frames", "launch", "stack", "status", "after", "notify", "chat", "decoy", "evidence", "wait")


def _trim(records: list[Record], rng: Random, size: str) -> list[Record]:
    """Drop and abridge until the report is about as long as people post: a median of about a dozen lines."""
    target = max(1, int(rng.lognormvariate(2.35 if size == "short" else 3.3, 0.55)))
    short = size == "short"
    kept = [_abridged(record, rng) if short or rng.random() < 0.5 else record for record in records]
    out = _order_out(kept, rng, _firm(kept))
    total = sum(len(record.lines) for record in kept)
    gone: set[int] = set()
    for record in out:
        if total <= target:
            break
        gone.add(id(record))
        total -= len(record.lines)
    return [record for record in kept if id(record) not in gone]


def _firm(kept: list[Record]) -> set[int]:
    """What never goes: the strongest evidence, the waits that are evidence, and the first wait."""
    strongest = max((record.strength for record in kept), default=0)
    best = [record for record in kept if strongest and record.strength == strongest]
    firm = sorted(best, key=lambda record: -record.time)[:2]
    firm += [record for record in kept if record.role == "wait" and record.strength == 3][:6]
    firm += [record for record in kept if record.role == "wait"][:1]
    return {id(record) for record in firm}


def _order_out(records: list[Record], rng: Random, firm: set[int]) -> list[Record]:
    """Droppable records, the first to go first; some reports keep a launcher's table rather than steps."""
    order = list(_FIRST_OUT)
    if rng.random() < 0.3:
        i, j = rng.sample(range(7), 2)
        order[i], order[j] = order[j], order[i]
    place = {role: i for i, role in enumerate(order)}
    loose = [record for record in records if id(record) not in firm]
    return sorted(
        loose,
        key=lambda record: (
            place.get(record.role, 5),
            record.time if record.role in {"chat", "decoy"} else -record.time,
        ),
    )


def _abridged(record: Record, rng: Random) -> Record:
    """A long traceback as people quote it: its head, its last frames, its last line."""
    lines = record.lines
    if len(lines) <= 6 or (record.role == "launch" and rng.random() < 0.5):
        return record
    if "Traceback" in lines[0]:
        last = rng.choice((1, 3, 3, 5))
        return replace(record, lines=(*lines[: rng.choice((0, 1, 1, 3))], *lines[-last:]))
    if record.role == "launch" and any("FAILED" in line for line in lines):
        start = (
            next(i for i, line in enumerate(lines) if "ChildFailedError" in line) if rng.random() < 0.5 else 0
        )
        return replace(record, lines=lines[:1] if rng.random() < 0.45 else lines[start:])
    return record


#: How often a short report shows one waiting rank only, and one to four: seen so in public reports.
_SHOWN = {"straggler": (0.6, 0.78), "desync": (0.3, 0.72), "undetermined": (0.22, 0.5)}


def _choose_ranks(ordered: list[Record], rng: Random, size: str, label: str) -> set[int]:
    """The waiting ranks whose lines are kept: one, a few, or all (at most sixteen in a short report)."""
    ranks = sorted({record.rank for record in ordered if record.role == "wait" and record.rank is not None})
    draw = rng.random() + (0.3 if size == "medium" else 0.0)
    if not ranks:
        return set()
    if size == "long":
        return set(ranks if draw < 0.8 else rng.sample(ranks, max(1, len(ranks) // 2)))
    one, few = _SHOWN.get(label, (0.42, 0.62))
    if draw < one:
        return {rng.choice(ranks)}
    if draw < few:
        return set(rng.sample(ranks, min(len(ranks), rng.randrange(2, 5))))
    return set(ranks if len(ranks) <= 16 else rng.sample(ranks, rng.randrange(3, 17)))


def _kept(record: Record, story: Story, flags: dict[str, bool], chosen: set[int], chat: set[int]) -> bool:
    if record.role == "chat":
        return id(record) in chat
    if record.strength:
        return True
    if record.role in {"status", "stack", "after", "frames"} and record.rank is not None:
        return flags[record.role] and record.rank in chosen
    if record.role == "notify":
        return flags["notify"]
    if record.role == "launch":
        return flags["launch"]
    if record.role == "wait" and record.rank is not None:
        return record.rank in chosen
    return True


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
            full = body if record.channel in {"system", "tool"} else outer(world, dialect, record, body, rng)
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
    return "node" if world.nodes > 1 and rng.random() < 0.25 else ""


def _file_of(record: Record, world: World, main: str, split: str, apart: dict[str, str]) -> str:
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


def damage(files: dict[str, list[Shown]], rng: Random) -> tuple[dict[str, list[Shown]], str]:
    """Hard wraps, colours, a start in mid-sentence, a repeated tail; returns files and newline."""
    draw = rng.random()
    if draw < 0.05:
        width = rng.choice((80, 100, 120, 158, 170, 200, 237))
        files = {
            name: [part for shown in lines for part in _wrap(shown, width)] for name, lines in files.items()
        }
    elif draw < 0.08:
        files = {name: [_colour(shown) for shown in lines] for name, lines in files.items()}
    elif draw < 0.11:
        files = {name: _behead(lines, rng) for name, lines in files.items()}
    elif draw < 0.13:
        files = {
            name: lines + [replace(shown, decisive=False) for shown in lines[-rng.randrange(2, 9) :]]
            for name, lines in files.items()
        }
    return files, "\r\n" if rng.random() < 0.012 else "\n"


def _wrap(shown: Shown, width: int) -> list[Shown]:
    text = shown.text
    return [replace(shown, text=text[i : i + width]) for i in range(0, max(len(text), 1), width)]


def _colour(shown: Shown) -> Shown:
    code = {"wait": "31", "evidence": "33", "launch": "31"}.get(shown.record.role)
    return replace(shown, text=f"\x1b[{code}m{shown.text}\x1b[0m") if code and shown.text else shown


def _behead(lines: list[Shown], rng: Random) -> list[Shown]:
    if not lines or len(lines[0].text) < 30 or lines[0].decisive or lines[0].record.role == "wait":
        return lines
    return [replace(lines[0], text=lines[0].text[rng.randrange(8, len(lines[0].text) - 10) :]), *lines[1:]]
