"""`python -m train foreign`: how often text of other origin beside a watchdog's sentence is given a cause.

`data/foreign.toml` holds prose, other languages, logs of other software and noise. Each text is put beside the
sentence of a watchdog in five ways; the right answer is always an abstention, since nothing says why a rank did not
come. Texts of part `tuned` were in view while the guard (`fsdpclassify/familiar.py`) was chosen, `fresh` ones not.
Every mode is asked with the guard and without it.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fsdpclassify.classifier import Classifier
from fsdpclassify.evaluation import Count
from fsdpclassify.records import Abstention
from fsdpclassify.sources import from_text
from train import dataset

PARTS = ("tuned", "fresh")
MODES = ("balanced", "high-precision")
_WATCHDOG = (
    "[rank{r}]:[E1127 10:2{r}:11.{r}23456789 ProcessGroupNCCL.cpp:683] [Rank {r}] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=4211, OpType={op}, NumelIn=1048576, NumelOut=8388608, Timeout(ms)=600000) ran for 600024"
    " milliseconds before timing out."
)
_QUOTED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """One text that has nothing to do with a training run."""

    name: str
    part: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The answer to one log: the verdict, and why there is none."""

    name: str
    way: str
    verdict: str
    because: Abstention | None


def main(argv: list[str]) -> int:
    """Print how many texts are given a cause, by part, mode and way, and which."""
    parser = argparse.ArgumentParser(prog="python -m train foreign", description=__doc__)
    parser.add_argument("--model", type=Path, default=dataset.BUNDLE)
    parser.add_argument("--list", action="store_true", help="name the texts that are given a cause")
    options = parser.parse_args(argv)
    classifier, texts = Classifier.load(options.model), load()
    for part in PARTS:
        chosen = [text for text in texts if text.part == part]
        for mode in MODES:
            for name, asked in (("without guard", _unguarded(classifier)), ("with guard", classifier)):
                found = ask(asked, chosen, mode)
                sys.stdout.write(render(f"{part}, {mode}, {name}", found, names=options.list))
    return 0


def load(path: Path = dataset.DATA / "foreign.toml") -> list[Foreign]:
    """The texts; raises `ValueError` for an unknown part, no line or a name given twice."""
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["text"]
    found = [Foreign(name=r["name"], part=r["part"], lines=tuple(r["lines"].strip("\n").split("\n"))) for r in rows]
    twice = [name for name, count in Counter(each.name for each in found).items() if count > 1]
    wrong = [each.name for each in found if each.part not in PARTS or not any(each.lines)]
    if twice or wrong:
        raise ValueError(f"{path}: wrong or given twice: {', '.join([*twice, *wrong])}")
    return found


def ask(classifier: Classifier, texts: Sequence[Foreign], mode: str) -> list[Told]:
    """The answers to each text in each way."""
    found = []
    for text in texts:
        for way, write in WAYS.items():
            incidents = classifier.classify_modes(from_text([write(text.lines)]), (mode,))[mode].incidents
            told = (incidents[-1].verdict, incidents[-1].abstained_because) if incidents else ("no_timeout", None)
            found.append(Told(name=text.name, way=way, verdict=told[0], because=told[1]))
    return found


def _unguarded(classifier: Classifier) -> Classifier:
    """The same model without its vocabulary."""
    model = replace(classifier._model, words=None)
    checked = classifier._checked()
    return Classifier(lambda: checked, lambda: model)


def render(title: str, found: Sequence[Told], *, names: bool) -> str:
    """One line of counts, and with `names` one line a log that was given a cause."""
    named = [each for each in found if each.verdict not in ("undetermined", "no_timeout")]
    count = Count(hits=len(named), total=len(found))
    low, high = count.interval
    unlike = sum(each.because is Abstention.OUT_OF_SCOPE for each in found)
    text = f"{title:<40} given a cause: {count.hits} of {count.total} ({count.share:.3f}, {low:.2f} to {high:.2f})"
    lines = [f"{text}; out of scope: {unlike}"]
    lines += [f"  {each.name} ({each.way}): {each.verdict}" for each in named] if names else []
    return "\n".join(lines) + "\n"


def _dogs(ranks: Sequence[int], op: str = "_ALLGATHER_BASE") -> list[str]:
    return [_WATCHDOG.format(r=rank, op=op) for rank in ranks]


def _said(rank: int, lines: Sequence[str]) -> list[str]:
    return [f"[rank{rank}]: {line}" for line in lines]


def _steps() -> list[str]:
    return [f"[rank{r}]: step {s} loss 2.{s}1 time 1.{s}2s" for s in range(5) for r in range(4)]


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


#: How a text stands beside the watchdog's sentence.
WAYS: dict[str, Callable[[Sequence[str]], str]] = {
    "before one rank's sentence": lambda lines: _joined([*lines, *_dogs([0])]),
    "before two ranks' sentences": lambda lines: _joined([*lines, *_dogs([0, 2])]),
    "printed by a rank that does not wait": lambda lines: _joined([*_said(1, lines), *_dogs([0, 2])]),
    "printed by it, and quoted afterwards": lambda lines: _joined(
        [*_said(1, lines), *_dogs([0, 2], "ALLREDUCE"), *lines[:_QUOTED]]
    ),
    "after steps, by the one missing rank": lambda lines: _joined([*_steps(), *_said(3, lines), *_dogs([0, 1, 2])]),
}
