"""`python -m train inhouse`: what `fsdpclassify retrain` learns from a few incidents of a house's own, measured.

Five made-up families with five labelled incidents each; the same number of fresh ones, most of them told in other
words, and some that show nothing but daily lines. Their first labels and verdicts by the bundle before and after,
the frozen tests before and after, with `--many` what 200 incidents cost in time and memory, and with `--alone` what
becomes of other failures when a house labels incidents of one family only.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fsdpclassify.classifier import Classifier
from fsdpclassify.decision import UNDETERMINED
from fsdpclassify.evaluation import Count
from fsdpclassify.labelled import LabelledIncident, load_all, neutral_logs
from train import dataset
from train.inhouse_logs import FAMILIES, HouseFamily, is_new, make, make_silent

_EACH = 5
_MANY = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One fresh incident: its label, whether its wording is new, the model's first label and the verdict."""

    label: str
    new: bool
    first: str | None
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One `retrain` process: what it printed, and what it took."""

    code: int
    text: str
    seconds: float
    peak_mb: float


def main(argv: list[str]) -> int:
    """Print the figures; 1 if retraining refused to write."""
    parser = argparse.ArgumentParser(prog="python -m train inhouse", description=__doc__)
    parser.add_argument("--base", type=Path, default=dataset.BUNDLE)
    parser.add_argument("--many", action="store_true", help=f"also retrain on {_MANY} incidents")
    parser.add_argument("--alone", action="store_true", help="also retrain on each family alone")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave incidents and bundles there")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        given, fresh, silent = folder / "given", folder / "fresh", folder / "silent"
        make(given, "given", _EACH)
        make(fresh, "fresh", _EACH)
        make_silent(silent, _EACH)
        run = retrained(given, folder / "bundle", options.base)
        sys.stdout.write(run.text)
        if run.code:
            return 1
        for name, bundle in (("before", options.base), ("after", folder / "bundle")):
            classifier = Classifier.load(bundle)
            sys.stdout.write(render(name, answers(classifier, fresh), answers(classifier, silent)))
        sys.stdout.write(f"{_EACH * len(FAMILIES)} incidents: {run.seconds:.1f} s, peak {run.peak_mb:.0f} MB\n")
        if options.many:
            make(folder / "many", "given", _MANY // len(FAMILIES))
            run = retrained(folder / "many", folder / "bundle-many", options.base)
            sys.stdout.write(f"{_MANY} incidents: {run.seconds:.1f} s, peak {run.peak_mb:.0f} MB\n")
        for family in FAMILIES if options.alone else ():
            sys.stdout.write(alone(family, folder, options.base))
    return 0


def alone(family: HouseFamily, folder: Path, base: Path) -> str:
    """Retrain on one family: how many of its fresh incidents are right, and how often its label is said of others."""
    own = folder / f"alone-{family.name.replace(' ', '-')}"
    make(own / "given", "given", _EACH, (family,))
    make(own / "fresh", "fresh", _EACH, (family,))
    make(own / "others", "fresh", _EACH, [f for f in FAMILIES if f.label != family.label])
    make_silent(own / "others", _EACH)
    if retrained(own / "given", own / "bundle", base).code:
        return f"only {family.name}: not written\n"
    classifier = Classifier.load(own / "bundle")
    fresh, others = answers(classifier, own / "fresh"), answers(classifier, own / "others")
    right = sum(a.verdict == family.label for a in fresh)
    taken = sum(a.verdict == family.label for a in others)
    told = f"{right}/{len(fresh)} fresh ones right, {taken}/{len(others)} of other causes or none taken for it"
    return f"only {family.name} ({family.label}): {told}\n"


def retrained(given: Path, output: Path, base: Path) -> Run:
    """Run the command as a user would, in a process of its own."""
    command = [sys.executable, "-m", "fsdpclassify", "retrain", str(given), "-o", str(output), "--base", str(base)]
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Run(
        code=process.returncode, text=text, seconds=time.perf_counter() - begun, peak_mb=usage.ru_maxrss / 1024
    )  # fmt: skip


def answers(classifier: Classifier, folder: Path) -> list[Answer]:
    """What a bundle says about every incident below `folder`."""
    return [_answer(classifier, incident) for incident in load_all([folder])]


def _answer(classifier: Classifier, incident: LabelledIncident) -> Answer:
    with neutral_logs(incident) as logs:
        found = classifier.classify(logs).incidents
    first, verdict = (found[-1].model_label, found[-1].verdict) if found else (None, "no_timeout")
    return Answer(label=incident.label, new=is_new(incident.folder), first=first, verdict=verdict)


def render(name: str, fresh: Sequence[Answer], silent: Sequence[Answer]) -> str:
    """First labels and verdicts in all, by wording and by label."""
    rows = {"fresh": fresh, "  told in known words": [a for a in fresh if not a.new]}
    rows["  told in new words"] = [a for a in fresh if a.new]
    rows |= {f"  {label}": [a for a in fresh if a.label == label] for label in sorted({a.label for a in fresh})}
    lines = [f"{name}: first label right, verdict right, another cause concluded"]
    for title, found in rows.items():
        wrong = sum(a.verdict not in (a.label, UNDETERMINED) for a in found)
        first, verdict = sum(a.first == a.label for a in found), sum(a.verdict == a.label for a in found)
        low, high = Count(hits=first, total=len(found)).interval
        lines.append(f"  {title:<24} {first}/{len(found)} [{low:.2f}, {high:.2f}]  {verdict}/{len(found)}  {wrong}")
    named = sum(a.verdict != UNDETERMINED for a in silent)
    lines.append(f"  {'nothing but daily lines':<24} a cause is concluded for {named}/{len(silent)}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
