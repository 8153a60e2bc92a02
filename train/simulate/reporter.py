"""What the person who reports it keeps of a story: which ranks, which lines, how long a tail, how damaged."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from train.simulate.layout import Shown
from train.simulate.record import Record, Story
from train.simulate.world import World

#: How likely a short report keeps each optional kind of line.
_KEEP = {"status": 0.6, "stack": 0.42, "notify": 0.42, "after": 0.48, "frames": 0.38, "launch": 0.42}
#: The same where one or two ranks are quoted as a block, with all that they print.
_BLOCK = {"status": 0.9, "stack": 0.7, "notify": 0.58, "after": 0.58, "frames": 0.5, "launch": 0.42}


def keep(story: Story, world: World, rng: Random, size: str) -> list[Record]:
    """The records that survive, in the order of their clocks. `size`: short, medium or long."""
    ordered = sorted(story.records, key=lambda record: (record.time, record.rank if record.rank is not None else -1))
    if story.keep_whole:
        return ordered
    chosen = _choose_ranks(ordered, rng, size, story.label)
    block = size == "short" and rng.random() < 0.5
    if block and len(chosen) > 2:
        chosen = set(rng.sample(sorted(chosen), rng.choice((1, 1, 2))))
    shares = _BLOCK if block else _KEEP
    if story.label == "undetermined":
        shares = {**shares, "status": 0.85}
    flags = {role: rng.random() < (share if size == "short" else 0.85) for role, share in shares.items()}
    chat = (
        rng.choice((0, 0, 0, 0, 1, 1, 2, 3, 5, 10))
        if size == "short"
        else rng.randrange(8, 45)
        if size == "medium"
        else 10**6
    )
    before = [record for record in ordered if record.role == "chat" and record.time <= story.detection]
    kept_chat = set(map(id, before[-chat:])) if chat else set()
    kept = [record for record in ordered if _kept(record, story, flags, chosen, kept_chat)]
    return kept if size == "long" else _trim(kept, rng, size, wide=block)


#: What goes first when a report must be short. Lines of a wait and the strongest evidence go last.
_FIRST_OUT = ("launch", "stack", "frames", "status", "notify", "chat", "after", "decoy", "evidence", "wait")


def _trim(records: list[Record], rng: Random, size: str, *, wide: bool) -> list[Record]:
    """Drop and abridge until a report is as long as people post: a dozen lines, a block more (`wide`)."""
    target = max(1, int(rng.lognormvariate((2.5 if wide else 2.25) if size == "short" else 3.3, 0.55)))
    short = size == "short"
    kept = [_abridged(record, rng) if short or rng.random() < 0.5 else record for record in records]
    firm = _firm(kept)
    tables = [record for record in kept if record.role == "launch" and len(record.lines) > 6]
    if tables and rng.random() < 0.38:
        # Who pastes the launcher's table pastes it whole, after what seemed to matter.
        firm.add(id(tables[0]))
        target += len(tables[0].lines)
    out = _order_out(kept, rng, firm)
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
    ties = {record.tie for record in firm if record.tie}
    firm += [record for record in kept if record.tie in ties]
    return {id(record) for record in firm}


def _order_out(records: list[Record], rng: Random, firm: set[int]) -> list[Record]:
    """Droppable records, the first to go first; some reports keep a launcher's table rather than steps."""
    order = list(_FIRST_OUT)
    if rng.random() < 0.5:
        order[:6] = rng.sample(order[:6], 6)
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
    if record.role == "frames":
        return replace(record, lines=lines[: rng.choice((1, 2, 3, 4, 6, len(lines)))])
    if "Traceback" in lines[0]:
        # A traceback whose frames are the evidence is quoted down to them.
        last = rng.choice((1, 3, 3, 5)) if not record.strength or record.role == "evidence" else 13
        head = lines[: rng.choice((0, 1, 1, 3))]
        end = next((i for i, line in enumerate(lines) if line.startswith("Exception raised from")), len(lines))
        native = lines[end : end + rng.choice((0, 0, 1, 3, 6))]
        return replace(record, lines=(*head, *lines[len(head) : end][-last:], *native))
    if record.role == "launch" and any("FAILED" in line for line in lines):
        start = next(i for i, line in enumerate(lines) if "ChildFailedError" in line) if rng.random() < 0.5 else 0
        return replace(record, lines=lines[:1] if rng.random() < 0.3 else lines[start:])
    return record


#: How often a short report shows one waiting rank only, and one to four: seen so in public reports.
_SHOWN = {"straggler": (0.66, 0.86), "desync": (0.4, 0.82), "undetermined": (0.4, 0.72)}


def _choose_ranks(ordered: list[Record], rng: Random, size: str, label: str) -> set[int]:
    """The waiting ranks whose lines are kept: one, a few, or all (at most sixteen in a short report)."""
    ranks = sorted({record.rank for record in ordered if record.role == "wait" and record.rank is not None})
    draw = rng.random() + (0.3 if size == "medium" else 0.0)
    if not ranks:
        return set()
    if size == "long":
        return set(ranks if draw < 0.8 else rng.sample(ranks, max(1, len(ranks) // 2)))
    one, few = _SHOWN.get(label, (0.55, 0.8))
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
    if record.role == "decoy" and record.prefix in {"exc", "c10"} and record.time > story.detection:
        # An error that the timeout made is harmless only where its rank is seen to wait.
        return record.rank in chosen
    if record.role == "launch":
        return flags["launch"]
    if record.role == "wait" and record.rank is not None:
        return record.rank in chosen
    return True


def damage(files: dict[str, list[Shown]], rng: Random) -> tuple[dict[str, list[Shown]], str]:
    """Hard wraps, colours, a start in mid-sentence, a repeated tail; returns files and newline."""
    draw = rng.random()
    if draw < 0.05:
        width = rng.choice((80, 100, 120, 158, 170, 200, 237))
        files = {name: [part for shown in lines for part in _wrap(shown, width)] for name, lines in files.items()}
    elif draw < 0.06:
        files = {name: [_colour(shown) for shown in lines] for name, lines in files.items()}
    elif draw < 0.09:
        files = {name: _behead(lines, rng) for name, lines in files.items()}
    elif draw < 0.11:
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
