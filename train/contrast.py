"""`python -m train contrast`: whether the verdict rests on what a line says, or on what it is about.

Every pair of `data/contrast.toml` names one subject twice: as evidence for a label, and as all well. Each half is put
into six host logs that show no cause (`train.contrast_hosts`) and read through the whole product. Nothing is ever
fitted on the file. Shares of verdicts count each pair once for every host; pairs are independent, hosts of one pair
are not, so the interval of the order (p(label) with the evidence above p(label) with its well twin, means over the
hosts) counts pairs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from fsdpclassify.classifier import Classifier
from fsdpclassify.evaluation import Count
from fsdpclassify.records import Report
from train import dataset
from train.contrast_hosts import Host, Said, hosts

PAIRS = dataset.DATA / "contrast.toml"
KINDS = ("number", "switch", "negation", "pass_fail", "past_now", "one_apart", "other_job")
ABSTAINED = ("undetermined", "no_timeout")
WORST = 10
#: Means over the hosts of equal answers differ by rounding at most.
_TIE = 1e-6
_WRITERS = ("rank", "node")
_KEYS = {"id", "label", "kind", "shows", "well", "by", "others"}


class ContrastError(ValueError):
    """The file of pairs cannot be used; the message names the pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One subject as evidence for `label` (`shows`) and as all well (`well`); see the head of the file for the rest."""

    id: str
    label: str
    kind: str
    shows: tuple[str, ...]
    well: tuple[str, ...]
    by: str = "rank"
    others: tuple[str, ...] = ()

    def said(self, texts: tuple[str, ...]) -> Said:
        """One half as lines of whoever prints it."""
        return Said(node=texts) if self.by == "node" else Said(absent=texts, others=self.others)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the product says of one log: `no_timeout` and no probabilities where it sees no incident."""

    verdict: str
    probabilities: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One pair in one host: with its evidence, with its well twin, with neither."""

    pair: Pair
    host: str
    shows: Answer
    well: Answer
    bare: Answer

    def p(self, half: str) -> float:
        """Of `shows`, `well` or `bare`: the probability of the pair's label."""
        answer: Answer = getattr(self, half)
        return answer.probabilities.get(self.pair.label, 0.0)

    @property
    def gap(self) -> float:
        """By how much the evidence lifts its label above the well twin."""
        return self.p("shows") - self.p("well")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Figures of a group of trials. Verdicts are shares of trials, `ordered` counts pairs.

    `right + abstained + wrong` is 1 (evidence); `well_abstained + well_named + well_other` is 1 (well), of which
    `well_named`, the subject's label, is the error that the test looks for. `mention` is by how much the well line
    lifts the label above the log without any line. `tied` counts the pairs whose halves look the same to the model.
    """

    name: str
    pairs: int
    right: float
    abstained: float
    wrong: float
    p_shows: float
    well_abstained: float
    well_named: float
    well_other: float
    p_well: float
    gap: float
    mention: float
    ordered: Count
    tied: int


Classify = Callable[[Path | str], Report]


def main(argv: list[str]) -> int:
    """Print the figures of a bundle."""
    parser = argparse.ArgumentParser(prog="python -m train contrast", description=__doc__)
    parser.add_argument("--bundle", type=Path, default=dataset.BUNDLE)
    parser.add_argument("--json", action="store_true", help="all cells and pairs, for a program")
    options = parser.parse_args(argv)
    classifier = Classifier.load(options.bundle)
    trials = measure(lambda logs: classifier.classify(logs, mask="none"), load(), hosts())
    name = f"{classifier.info.name} {classifier.info.version}"
    sys.stdout.write(as_json(trials, name) if options.json else render(trials, name))
    return 0


def load(path: Path = PAIRS) -> tuple[Pair, ...]:
    """The pairs of a file. Raises `ContrastError` for one that is not as the file's head says."""
    pairs = tuple(_pair(item) for item in tomllib.loads(path.read_text(encoding="utf-8"))["pair"])
    if len({p.id for p in pairs}) < len(pairs):
        message = "an id stands twice"
        raise ContrastError(message)
    return pairs


def _pair(item: Mapping[str, Any]) -> Pair:
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in item.items()}
    wrong = sorted(values.keys() - _KEYS)
    if wrong or values["kind"] not in KINDS or values.get("by", "rank") not in _WRITERS:
        message = f"pair {item.get('id')!r}: unknown key, kind or writer {wrong}"
        raise ContrastError(message)
    if not values["shows"] or not values["well"] or values["shows"] == values["well"]:
        message = f"pair {item.get('id')!r}: two halves that differ are needed"
        raise ContrastError(message)
    return Pair(**values)


def measure(classify: Classify, pairs: Sequence[Pair], into: Sequence[Host]) -> list[Trial]:
    """Every pair in every host."""
    trials = []
    for host in into:
        with tempfile.TemporaryDirectory(prefix="fsdpclassify-") as scratch:
            answer = partial(_answer, classify, host, Path(scratch))
            bare = answer(Said())
            for pair in pairs:
                shows, well = (answer(pair.said(half)) for half in (pair.shows, pair.well))
                trials.append(Trial(pair=pair, host=host.name, shows=shows, well=well, bare=bare))
    return trials


def _answer(classify: Classify, host: Host, folder: Path, said: Said) -> Answer:
    """One log is given as text, several as a folder, which serves all logs of a host in turn."""
    files = host.files(said)
    if len(files) == 1:
        (text,) = files.values()
        incidents = classify(text).incidents
    else:
        _write(files, folder)
        incidents = classify(folder).incidents
    if not incidents:
        return Answer(verdict="no_timeout", probabilities={})
    return Answer(verdict=incidents[-1].verdict, probabilities=incidents[-1].probabilities)


def _write(files: Mapping[str, str], folder: Path) -> None:
    for path in (p for p in folder.rglob("*") if p.is_file() and p.relative_to(folder).as_posix() not in files):
        path.unlink()
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def row(name: str, trials: Sequence[Trial]) -> Row:
    """The figures of a group that is not empty."""
    shown = [_outcome(t.shows.verdict, t.pair.label) for t in trials]
    calm = [_outcome(t.well.verdict, t.pair.label) for t in trials]
    gaps = [fmean(t.gap for t in group) for group in _grouped(trials, lambda t: t.pair.id).values()]
    return Row(
        name=name,
        pairs=len(gaps),
        right=shown.count("named") / len(shown),
        abstained=shown.count("abstained") / len(shown),
        wrong=shown.count("other") / len(shown),
        p_shows=fmean(t.p("shows") for t in trials),
        well_abstained=calm.count("abstained") / len(calm),
        well_named=calm.count("named") / len(calm),
        well_other=calm.count("other") / len(calm),
        p_well=fmean(t.p("well") for t in trials),
        gap=fmean(gaps),
        mention=fmean(t.p("well") - t.p("bare") for t in trials),
        ordered=Count(hits=sum(gap > _TIE for gap in gaps), total=len(gaps)),
        tied=sum(abs(gap) <= _TIE for gap in gaps),
    )


def _outcome(verdict: str, label: str) -> str:
    if verdict in ABSTAINED:
        return "abstained"
    return "named" if verdict == label else "other"


def rows(trials: Sequence[Trial]) -> list[Row]:
    """All trials, then by label, by kind and by host."""
    keys: tuple[Callable[[Trial], str], ...] = (lambda t: t.pair.label, lambda t: t.pair.kind, lambda t: t.host)
    return [row("all", trials), *(row(name, group) for key in keys for name, group in _grouped(trials, key).items())]


def cells(trials: Sequence[Trial]) -> list[Row]:
    """By label and kind at once, named `label/kind`."""
    return [row(name, group) for name, group in _grouped(trials, lambda t: f"{t.pair.label}/{t.pair.kind}").items()]


def worst(trials: Sequence[Trial]) -> list[tuple[Pair, Row]]:
    """Pairs from the worst on: the smallest gap first."""
    by_pair = _grouped(trials, lambda t: t.pair.id)
    return sorted(((group[0].pair, row(name, group)) for name, group in by_pair.items()), key=lambda x: x[1].gap)


def _grouped(trials: Sequence[Trial], key: Callable[[Trial], str]) -> dict[str, list[Trial]]:
    out: dict[str, list[Trial]] = {}
    for trial in trials:
        out.setdefault(key(trial), []).append(trial)
    return out


def as_json(trials: Sequence[Trial], bundle: str) -> str:
    """Every group, cell and pair."""
    content = {
        "bundle": bundle,
        "rows": [_plain(r) for r in rows(trials)],
        "cells": [_plain(r) for r in cells(trials)],
        "pairs": [{"label": p.label, "kind": p.kind} | _plain(r) for p, r in worst(trials)],
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _plain(figures: Row) -> dict[str, Any]:
    low, high = figures.ordered.interval
    return asdict(figures) | {"ordered": figures.ordered.hits, "ordered_low": low, "ordered_high": high}


def render(trials: Sequence[Trial], bundle: str) -> str:
    """The tables and the worst pairs."""
    pairs, into = len({t.pair.id for t in trials}), len({t.host for t in trials})
    lines = [
        f"{bundle}: {pairs} pairs in {into} host logs each",
        f"{'':<26}{'pairs':>6} | {'evidence: right':>15} {'abst.':>6} {'wrong':>6} {'p':>6}"
        f" | {'well: abst.':>11} {'named':>6} {'other':>6} {'p':>6} | {'gap':>6} {'mention':>7}"
        f" {'in order':>18} {'tied':>5}",
        *(_line(r) for r in rows(trials)),
        "",
        "gap by label and kind",
        *_matrix(trials),
        "",
        f"the {WORST} worst pairs",
        *(text for pair, figures in worst(trials)[:WORST] for text in _worst_lines(pair, figures)),
    ]
    return "\n".join(lines) + "\n"


def _line(r: Row) -> str:
    low, high = r.ordered.interval
    order = f"{r.ordered.share:.2f} ({low:.2f}-{high:.2f})"
    return (
        f"{r.name:<26}{r.pairs:>6} | {r.right:>15.2f} {r.abstained:>6.2f} {r.wrong:>6.2f} {r.p_shows:>6.2f}"
        f" | {r.well_abstained:>11.2f} {r.well_named:>6.2f} {r.well_other:>6.2f} {r.p_well:>6.2f}"
        f" | {r.gap:>+6.2f} {r.mention:>+7.2f} {order:>18} {r.tied:>5}"
    )


def _matrix(trials: Sequence[Trial]) -> list[str]:
    found = {r.name: r.gap for r in cells(trials)}
    lines = ["".join([f"{'':<20}", *(f"{kind:>11}" for kind in KINDS)])]
    for label in _grouped(trials, lambda t: t.pair.label):
        gaps = (found.get(f"{label}/{kind}") for kind in KINDS)
        lines.append("".join([f"{label:<20}", *(f"{'' if gap is None else f'{gap:+.2f}':>11}" for gap in gaps)]))
    return lines


def _worst_lines(pair: Pair, r: Row) -> list[str]:
    return [
        f"{r.gap:+.2f}  {pair.id} ({pair.label}, {pair.kind}): p {r.p_shows:.2f} with evidence, {r.p_well:.2f} well;"
        f" right {r.right:.2f}, well named {r.well_named:.2f}, well other {r.well_other:.2f}",
        *(f"        shows  {text}" for text in pair.shows),
        *(f"        well   {text}" for text in pair.well),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
