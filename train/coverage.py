"""How much of the labelled incidents' text the line inventory knows: `python -m train lines --coverage`.

Input: an `Inventory` and folders of incidents. Every distinct line, templated as for the encoder, is one of:

- the role of the family that it reads like;
- `rendered`: a format that the simulator writes itself (the watchdog's lines) or that a parsing rule reads;
- `frame`: a part of a traceback, a stack or a table, which means nothing alone;
- `user`: words of one script or person that `data/lines/own_words.txt` names: no family can know them;
- `unknown`: a line of some program that nothing here reads like. These are the gaps.
"""

from __future__ import annotations

import ast
import heapq
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from random import Random

from fsdpclassify.reading import find
from fsdpclassify.sources import collect
from fsdpclassify.templating import template
from train.inventory import Family, Inventory
from train.slots import Slot, parse, render

#: The reference set: the incidents for which targets are stated.
REFERENCE = 48
#: Two texts read alike when the words they share, in order and weighted by rarity, make up this much of both.
ALIKE = 0.7
#: A text that a longer line holds whole counts for so much if it makes up at least this share of the line.
_HELD, _SHARE, _WHOLE = 0.8, 0.4, 4
#: How many candidates that share rare words are compared word by word.
_COMPARED = 12
#: How many alternatives of one text are written out.
_MOST = 8
#: Slots that print words of their own: a family must not be known by them.
_FREE = frozenset({"word", "dataset", "model", "module", "param", "exception", "file", "op"})

#: A literal of the simulator with so many long words is a line, not a key.
_WORDS, _LONG_WORD = 3, re.compile(r"[A-Za-z]{3,}")
_WORD = re.compile(r"<\w+>|[^\W\d_]+")
#: Parts of a traceback, a stack, NCCL's chain of callers or a table: they belong to the line above or below.
_FRAME = re.compile(
    r"\s*(?:File \"|Traceback \(most recent|#\d+ |frame #|(?:PC: )?@ +(?:0x|<addr>)|\^+$|[^A-Za-z]*$)"
    r"|\s*Thread (?:0x)?\w+ \(|\s*[\w.<>]+ \([\w./<>-]+:\d+\)$|\(.{3,120}\)$|<[\w ]{3,40}>$"
    r"|\s*(?:time|host|rank|exitcode|error_file|traceback) +: |\S+ FAILED$"
    r"|(?:\S+ )?NCCL INFO \S{3,80}:\d+ -> \d"
)
_OPENS = re.compile(r'\s*File "[^"]{1,300}", line \d+')


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A distinct templated line: what it counts as, the family it reads like, and where it stands first."""

    text: str
    kind: str
    family: Family | None
    incident: str


class Reader:
    """Finds the family that a line reads like. Words weigh by how few texts hold them."""

    def __init__(self, families: Iterable[Family], rendered: Iterable[str] = ()) -> None:
        known = [(family, text) for family in families for text in (*family.texts, *family.follow)]
        self._texts: list[tuple[Family | None, tuple[str, ...]]] = [
            (family, words(spelled)) for family, text in known for spelled in _spellings(text)
        ]
        self._texts += [(None, words(template(text))) for text in rendered]
        self._holders: dict[str, list[int]] = defaultdict(list)
        for at, (_, found) in enumerate(self._texts):
            for word in set(found):
                self._holders[word].append(at)

    def weight(self, word: str) -> float:
        """How much a shared word says; a slot says little, a word that no family holds says most."""
        total = len(self._texts)
        return 0.3 if word.startswith("<") else math.log((total + 2) / (len(self._holders.get(word, ())) + 1))

    def like(self, text: str) -> tuple[Family | None, float]:
        """The family (None: a format of the simulator) most like a templated line, and how alike (0 to 1)."""
        line = words(text)
        shares: dict[int, float] = defaultdict(float)
        for word in set(line):
            for at in () if word.startswith("<") else self._holders.get(word, ()):
                shares[at] += self.weight(word)
        near = heapq.nlargest(_COMPARED, shares, key=lambda at: shares[at] / (1 + len(self._texts[at][1])) ** 0.5)
        found = [(self._texts[at][0], self._alike(line, self._texts[at][1])) for at in near]
        return max(found, key=lambda pair: pair[1], default=(None, 0.0))

    def _alike(self, line: Sequence[str], other: Sequence[str]) -> float:
        blocks = SequenceMatcher(None, line, other, autojunk=False).get_matching_blocks()
        shared = sum(self.weight(word) for block in blocks for word in line[block.a : block.a + block.size])
        mine, theirs = sum(map(self.weight, line)), sum(map(self.weight, other))
        if theirs and shared >= 0.99 * theirs and theirs >= _SHARE * mine and len(other) >= _WHOLE:
            return max(_HELD, 2 * shared / (mine + theirs))
        return 2 * shared / (mine + theirs) if mine + theirs else 0.0


def words(text: str) -> tuple[str, ...]:
    """The words and slots of a templated text, in order; what separates them is left out."""
    return tuple(_WORD.findall(text.lower()))


def _spellings(text: str) -> Iterator[str]:
    """What a family's text looks like to the encoder, once for each alternative of its choices."""
    parts = parse(text)
    counts = [len(_options(part)) for part in parts if not isinstance(part, str)]
    for at in range(min(_MOST, max(counts, default=1))):
        yield template("".join(part if isinstance(part, str) else _drawn(part, at) for part in parts))


def _options(slot: Slot) -> list[str]:
    return (slot.argument or "").split("|") if slot.name == "choice" else [""]


def _drawn(slot: Slot, at: int) -> str:
    """One value of a slot; nothing for a slot that prints words of its own."""
    if slot.name in _FREE:
        return ""
    options = _options(slot)
    if slot.name == "choice":
        return options[at % len(options)]
    return render(f"{{{slot.name}{'' if slot.argument is None else ':' + slot.argument}}}", Random(0))


def seen(reader: Reader, folders: Sequence[Path], own: frozenset[str] = frozenset()) -> list[Seen]:
    """Every distinct templated line below the folders' `logs`, in order of first appearance."""
    found: dict[str, Seen] = {}
    for folder in folders:
        for text, fixed in _lines(folder / "logs"):
            if text and text not in found:
                found[text] = _judged(reader, text, fixed, folder.name, own)
    return list(found.values())


def _lines(logs: Path) -> Iterator[tuple[str, str | None]]:
    """Each line's template, and what it counts as without asking the inventory."""
    findings = find(collect([logs]))
    read = {id(event.line) for event in findings.events}
    inside = False
    for line in findings.lines:
        frame = inside or bool(_FRAME.match(line.body))
        inside = bool(_OPENS.match(line.body))
        yield template(line.body), "frame" if frame else "rendered" if id(line) in read else None


def _judged(reader: Reader, text: str, fixed: str | None, incident: str, own: frozenset[str]) -> Seen:
    family, alike = (None, 0.0) if fixed == "frame" else reader.like(text)
    if alike >= ALIKE:
        return Seen(text=text, kind=family.role if family else "rendered", family=family, incident=incident)
    return Seen(text=text, kind=fixed or ("user" if text in own else "unknown"), family=None, incident=incident)


def own_words(path: Path) -> frozenset[str]:
    """The templated lines that were judged to be a script's or a person's own words, one a line."""
    rows = path.read_text(encoding="utf-8").splitlines()
    return frozenset(row for row in rows if row and not row.startswith("# "))


def rendered_texts(folder: Path) -> Iterator[str]:
    """The literal texts of the simulator's own code: what it writes without asking the inventory."""
    for path in sorted(folder.rglob("*.py")):
        texts = _literals(ast.parse(path.read_text(encoding="utf-8")))
        yield from (text for text in texts if len(_LONG_WORD.findall(text)) >= _WORDS and "\n" not in text)


def _literals(node: ast.AST) -> Iterator[str]:
    """Strings in code, f-strings without their values; docstrings are no output."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else " " for part in node.values)
    elif isinstance(node, ast.Constant):
        yield node.value if isinstance(node.value, str) else ""
    elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        for child in ast.iter_child_nodes(node):
            yield from _literals(child)


def report(found: Sequence[Seen]) -> Iterator[str]:
    """Shares by kind, programs apart from scripts, then the unknown lines with the incident that holds them first."""
    yield f"{len(found)} distinct lines"
    own = [item for item in found if _is_own(item)]
    programs = [item for item in found if not _is_own(item) and item.kind != "frame"]
    known = sum(item.kind != "unknown" for item in programs)
    yield f"programs: {_counts(programs)}"
    yield f"scripts and persons, in their own words: {_counts(own)}"
    yield f"parts of tracebacks, stacks and tables: {len(found) - len(own) - len(programs)}"
    yield f"programs' lines that are known: {known} of {len(programs)} ({known / max(1, len(programs)):.0%})"
    yield from (f"unknown: {item.incident}: {item.text}" for item in found if item.kind == "unknown")


def _is_own(item: Seen) -> bool:
    return item.kind == "user" or (item.family is not None and item.family.emitter == "user")


def _counts(items: Sequence[Seen]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in Counter(item.kind for item in items).most_common())


def folders_of(data: Path, which: str) -> list[Path]:
    """The incidents of the `reference` set, or `all` of them."""
    every = sorted(path for path in (data / "incidents").iterdir() if (path / "logs").is_dir())
    return every[:REFERENCE] if which == "reference" else every


def cover(inventory: Inventory, data: Path, which: str) -> list[Seen]:
    """Every distinct line of the chosen incidents with what it counts as."""
    reader = Reader(inventory.families, rendered_texts(Path(__file__).parent / "simulate"))
    return seen(reader, folders_of(data, which), own_words(data / "lines" / "own_words.txt"))
