"""`python -m train sanity`: whether verdicts hang on the lines that show the cause, and not on one that shows nothing.

Deletion: the decisive lines of each incident are taken out of its files, or as many other lines of the window, drawn
at random; the first must lower the probability of the label, the second hardly. Decoy: one line of the inventory that
only seems to speak for another label is put into the window, behind the prefix of the line it follows, in the mouth
of the same rank; the verdict should stay. Jargon: as many lines of a house's own services as the window has are put
into it in the same way; a right verdict should stay, though half of the log is then in words that no training data
holds. Everything is read through the whole product, by the bundle as it is.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean

from fsdpclassify.classifier import Classifier
from fsdpclassify.evaluation import Count
from fsdpclassify.features import extract
from fsdpclassify.labelled import LabelledIncident, load_all, neutral_logs
from fsdpclassify.reading import Findings, find
from fsdpclassify.records import Abstention, Diagnosis, Line
from fsdpclassify.sources import collect
from fsdpclassify.window import When
from train import dataset
from train.inhouse_logs import jargon
from train.inventory import Family, Inventory, load
from train.slots import render

_CHANNELS = ("rank", "main")
Place = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """p(label) of one incident as it is, without its decisive lines, and without as many others (None: none left).

    Where a deletion leaves no incident at all, no probability is left either: 0.
    """

    id: str
    whole: float
    without: float
    control: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoyed:
    """The verdict of one incident before and after a line that seems to speak for `lure` was put in."""

    id: str
    label: str
    lure: str
    before: str
    after: str


def main(argv: list[str]) -> int:
    """Print the three tests for a split."""
    splits = (dataset.PUBLIC, *dataset.SIMULATED, *dataset.LAB)
    parser = argparse.ArgumentParser(prog="python -m train sanity", description=__doc__)
    parser.add_argument("--split", default="test_seen", choices=splits)
    parser.add_argument("--limit", type=int, default=150, help="so many incidents, evenly spread over the split")
    parser.add_argument("--model", type=Path, default=dataset.BUNDLE)
    options = parser.parse_args(argv)
    classifier, inventory = Classifier.load(options.model), load()
    given = [i for i in load_all([dataset.folder_of(options.split)]) if i.label in classifier.labels]
    chosen = given[:: max(1, len(given) // options.limit)][: options.limit]
    deletions, decoys, jargons = [], [], []
    for incident in chosen:
        deletions += deleted(classifier, incident)
        decoys += decoyed(classifier, incident, inventory)
        jargons += jargoned(classifier, incident)
    sys.stdout.write(render_deletions(deletions) + render_decoys(decoys) + render_jargon(jargons))
    return 0


def deleted(classifier: Classifier, incident: LabelledIncident) -> list[Deleted]:
    """The deletion test of one incident; empty where it names no decisive line or is not seen as one."""
    with neutral_logs(incident) as logs:
        found = find(collect([logs]), hung=incident.hung)
        if not incident.decisive_lines or not found.incidents:
            return []
        rng = Random(f"deletion:{incident.id}")
        others = sorted({_place(found, line) for line in _window(found)} - set(incident.decisive_lines))
        drawn = rng.sample(others, len(incident.decisive_lines)) if len(others) >= len(incident.decisive_lines) else []
        whole = _probability(classifier, incident, logs)
        with edited(logs, dict.fromkeys(incident.decisive_lines, ())) as fewer:
            without = _probability(classifier, incident, fewer)
        control = None
        if drawn:
            with edited(logs, dict.fromkeys(drawn, ())) as fewer:
                control = _probability(classifier, incident, fewer)
    return [Deleted(id=incident.id, whole=whole, without=without, control=control)]


def decoyed(classifier: Classifier, incident: LabelledIncident, inventory: Inventory) -> list[Decoyed]:
    """The decoy test of one incident; empty where no incident is seen or no line of the window can be followed."""
    rng = Random(f"decoy:{incident.id}")
    with neutral_logs(incident) as logs:
        found = find(collect([logs]), hung=incident.hung)
        lines = _window(found) if found.incidents else []
        if not lines:
            return []
        line, decoy = rng.choice(lines), rng.choice(_decoys(inventory, incident.label))
        said = _prefix(line) + render(decoy.template, rng, {} if line.rank is None else {"rank": line.rank})
        before = _answer(classifier, incident, logs)
        with edited(logs, {_place(found, line): (said,)}, keep=True) as more:
            after = _answer(classifier, incident, more)
    verdicts = [each.verdict if each is not None else "no_timeout" for each in (before, after)]
    lure = decoy.label or ""
    return [Decoyed(id=incident.id, label=incident.label, lure=lure, before=verdicts[0], after=verdicts[1])]


def jargoned(classifier: Classifier, incident: LabelledIncident) -> list[Decoyed]:
    """The jargon test of one incident; empty where its verdict is not right as it is. A `lure` is why it was lost."""
    rng = Random(f"jargon:{incident.id}")
    with neutral_logs(incident) as logs:
        before = _answer(classifier, incident, logs)
        if before is None or before.verdict != incident.label:
            return []
        found = find(collect([logs]), hung=incident.hung)
        lines = _window(found)
        changes: dict[Place, list[str]] = {}
        for line, text in zip(rng.choices(lines, k=len(lines)), jargon(len(lines), rng), strict=True):
            changes.setdefault(_place(found, line), []).append(_prefix(line) + text)
        with edited(logs, changes, keep=True) as more:
            after = _answer(classifier, incident, more)
    verdict = "no_timeout" if after is None else after.verdict
    lure = "" if after is None else after.abstained_because or ""
    return [Decoyed(id=incident.id, label=incident.label, lure=lure, before=before.verdict, after=verdict)]


def _decoys(inventory: Inventory, label: str) -> list[Family]:
    return [f for f in inventory.families if f.role == "decoy" and f.channel in _CHANNELS and f.label != label]


def _window(found: Findings) -> list[Line]:
    """The lines of the last incident's window, apart from detections and from what came after them."""
    rows = extract(found.incidents[-1], found.kinds).window
    return [row.line for row in rows if not row.is_detection and row.when is not When.AFTER]


def _place(found: Findings, line: Line) -> Place:
    return found.inputs[line.source].path, line.number


def _prefix(line: Line) -> str:
    """What stands before the message of a line: its stamps and who printed it."""
    return line.text[: line.text.rindex(line.body)] if line.body and line.body in line.text else ""


@contextmanager
def edited(logs: Path, changes: Mapping[Place, Sequence[str]], *, keep: bool = False) -> Iterator[Path]:
    """A copy of `logs` in which each named line is replaced by the given ones, which follow it with `keep`."""
    with tempfile.TemporaryDirectory(prefix="fsdpclassify-") as scratch:
        copy = Path(scratch) / logs.name
        for path in (p for p in logs.rglob("*") if p.is_file()):
            name = path.relative_to(logs).as_posix()
            mine = {number: lines for (file, number), lines in changes.items() if file == name}
            target = copy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_changed(path.read_bytes(), mine, keep=keep) if mine else path.read_bytes())
        yield copy


def _changed(data: bytes, changes: Mapping[int, Sequence[str]], *, keep: bool) -> bytes:
    out = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if keep or number not in changes:
            out.append(line)
        out += [text.encode() for text in changes.get(number, ())]
    return b"\n".join(out)


def _answer(classifier: Classifier, incident: LabelledIncident, logs: Path) -> Diagnosis | None:
    report = classifier.classify(logs, hung=incident.hung)
    return report.incidents[-1] if report.incidents else None


def _probability(classifier: Classifier, incident: LabelledIncident, logs: Path) -> float:
    return classifier.score(logs, hung=incident.hung).get(incident.label, 0.0)


def render_deletions(found: Sequence[Deleted]) -> str:
    """How often and by how much p(label) falls, beside the control."""
    lines = [f"Deletion: {len(found)} incidents with decisive lines"]
    controls = [(d.whole, d.control) for d in found if d.control is not None]
    for name, pairs in (("decisive lines", [(d.whole, d.without) for d in found]), ("as many others", controls)):
        if pairs:
            lower = Count(hits=sum(after < before for before, after in pairs), total=len(pairs))
            drop = fmean(before - after for before, after in pairs)
            lines.append(f"  {name:<16} p(label) falls in {_share(lower)}, mean drop {drop:+.3f}")
    more = Count(hits=sum(d.control is not None and d.without < d.control for d in found), total=len(controls))
    lines.append(f"  the decisive lines are missed more than the others in {_share(more)}")
    return "\n".join(lines) + "\n"


def render_decoys(found: Sequence[Decoyed]) -> str:
    """How often a decoy changes the verdict, and whether for the worse."""
    rows = {
        "changes the verdict": [d.before != d.after for d in found],
        "to what it seems to speak for": [d.before != d.after == d.lure for d in found],
        "turns a right verdict into a wrong cause": [
            d.before == d.label and d.after not in (d.label, "undetermined") for d in found
        ],
        "turns a right verdict into an abstention": [
            d.before == d.label and d.after == "undetermined" for d in found
        ],
    }  # fmt: skip
    lines = [f"Decoy: one line put into {len(found)} incidents"]
    lines += [f"  {name:<42} {_share(Count(hits=sum(hits), total=len(hits)))}" for name, hits in rows.items()]
    return "\n".join(lines) + "\n"


def render_jargon(found: Sequence[Decoyed]) -> str:
    """How many right verdicts stay, and why the others do not."""
    rows = {
        "the right verdict stays": [d.after == d.label for d in found],
        "it is withheld as unlike the training data": [d.lure == Abstention.OUT_OF_SCOPE for d in found],
    }
    lines = [f"Jargon: as many lines of a house's own as there are put into {len(found)} incidents answered rightly"]
    lines += [f"  {name:<42} {_share(Count(hits=sum(hits), total=len(hits)))}" for name, hits in rows.items()]
    return "\n".join(lines) + "\n"


def _share(count: Count) -> str:
    low, high = count.interval
    return f"{count.hits} of {count.total} ({count.share:.3f}, {low:.2f} to {high:.2f})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
