"""Can simulated incidents be told from public ones? Two probes, and what gives the simulation away.

Input: a folder of simulated incidents and one of public incidents (`--probe` sets lab recordings on either side).
For every draw, each public incident is set beside a simulated one of the same label and of nearly the same length,
so that neither tells. Two
classifiers then try: character 3-5-grams of the raw text under logistic regression, and gradient boosting
on surface statistics joined with the ledger vector of the package's own features. Folds keep a source
repository together. Output: area under the ROC curve (0.5 = cannot tell, 1 = always tells) with a 95 %
interval over resampled repositories and draws, and what tells most. A figure for the workshop, never for a
card.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol, cast

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.preprocessing import normalize

from fsdpclassify.labelled import incident_folders
from fsdpclassify.training.examples import Example, read_example, repository
from fsdpclassify.vector import LEDGER_FACTS

FOLDS = 5
#: What is told apart: first what was made, then what it is measured against.
PROBES = ("simulated-public", "lab-public", "simulated-lab")
#: Characters of a text that the probes see: its head and its tail, half each.
SEEN = 8000


class Matrix(Protocol):
    """Rows that can be picked by index: dense or sparse."""

    def __getitem__(self, index: np.ndarray) -> Matrix:
        """The rows at `index`."""


class Classifier(Protocol):
    """What the probes ask of an estimator."""

    def fit(self, rows: Matrix, real: np.ndarray) -> Classifier:
        """Fit and return itself."""

    def predict_proba(self, rows: Matrix) -> np.ndarray:
        """Probabilities n x 2."""


Fit = Callable[[], Classifier]

#: Shares of a report's lines, by name: prefixes, numbers, brackets, stamps and the like.
_SHARES = {
    "rank_prefix": re.compile(r"\[rank\d+\]"),
    "c10_prefix": re.compile(r"\[[EWI](?:\d{3,4} | )[\w:. ]*\.cpp:\d+\]"),
    "launcher_prefix": re.compile(r"^(?:\d+: |\[\w+\d+\]:|\(\w+ pid=|\[1,\d+\]<)"),
    "nccl_prefix": re.compile(r"^\S+:\d+:\d+ \[\d+\]"),
    "number": re.compile(r"\d"),
    "bracket": re.compile(r"[\[({]"),
    "stamp": re.compile(r"\d\d:\d\d:\d\d"),
    "bar": re.compile(r"%\|"),
    "frame": re.compile(r'^(?:\S+ )?\s*File "|^frame #|^#\d+ '),
    "blank": re.compile(r"^\s*$"),
    "lower_start": re.compile(r"^[a-z]"),
    "work": re.compile(r"WorkNCCL|WorkHCCL"),
}
SURFACE = (*_SHARES, "lines", "length_mean", "length_spread", "length_longest", "twins", "ranks", "words")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One incident folder as the probes see it: `group` keeps repositories together in a fold."""

    folder: Path
    label: str
    group: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Out-of-fold scores of one draw: `real` 0/1, `score` in favour of real, `groups` for resampling."""

    real: np.ndarray
    score: np.ndarray
    groups: tuple[str, ...]


def read_reports(root: Path) -> list[Report]:
    """Every incident below `root` in the order of the folders' paths."""
    return [_report(folder) for folder in incident_folders(root)]


def _report(folder: Path) -> Report:
    truth = json.loads((folder / "incident.json").read_text("utf-8"))
    source = str(truth.get("source") or "")
    paths = sorted(path for path in (folder / "logs").rglob("*") if path.is_file())
    text = "\n".join(path.read_text("utf-8", "replace") for path in paths)
    # A recording is real, but several are of one fault; what is simulated stands for itself.
    fault = f"lab/{truth.get('cause_id')}" if "lab" in folder.parts else folder.name
    group = repository(source) if "://" in source else fault
    return Report(folder=folder, label=truth["label"], group=group, text=text)


def surface(text: str) -> list[float]:
    """The statistics named in `SURFACE`: shares of lines in [0, 1], log sizes, distinct ranks."""
    lines = text.split("\n")[:4000] or [""]
    lengths = [len(line) for line in lines]
    masked = {re.sub(r"\d+", "0", line) for line in lines}
    ranks = set(re.findall(r"\[?[Rr]ank[ :]?(\d+)\]?", text[:200000]))
    return [
        *(sum(bool(pattern.search(line)) for line in lines) / len(lines) for pattern in _SHARES.values()),
        float(np.log1p(len(lines))),
        float(np.log1p(statistics.fmean(lengths))),
        float(np.log1p(statistics.pstdev(lengths))),
        float(np.log1p(max(lengths))),
        1 - len(masked) / len(lines),
        float(np.log1p(len(ranks))),
        statistics.fmean(len(line.split()) for line in lines),
    ]


def matched(public: Sequence[Report], simulated: Sequence[Report], rng: Random) -> list[Report]:
    """A simulated report for each public one: same label, one of the five nearest in length, none twice."""
    left: dict[str, list[Report]] = {}
    for report in simulated:
        left.setdefault(report.label, []).append(report)
    found: list[Report] = []
    for report in rng.sample(list(public), len(public)):
        pool = left.get(report.label, [])
        near = sorted(pool, key=lambda other: abs(_size(other) - _size(report)))[:5]
        if near:
            found.append(rng.choice(near))
            pool.remove(found[-1])
    return found


def _size(report: Report) -> float:
    return float(np.log1p(report.text.count("\n")))


def clipped(text: str) -> str:
    """The head and the tail of a long text."""
    return text if len(text) <= SEEN else text[: SEEN // 2] + "\n" + text[-SEEN // 2 :]


def out_of_fold(rows: Matrix, real: np.ndarray, groups: Sequence[str], fit: Fit, seed: int) -> Scores:
    """Score every row by a model that saw no row of its group."""
    score = np.zeros(len(real))
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    for train, test in folds.split(np.zeros(len(real)), real, groups):
        score[test] = fit().fit(rows[train], real[train]).predict_proba(rows[test])[:, 1]
    return Scores(real=real, score=score, groups=tuple(groups))


def interval(draws: Sequence[Scores], seed: int, rounds: int = 400) -> tuple[float, float, float]:
    """Mean AUC over draws, and the 2.5 % and 97.5 % points over draws and resampled groups."""
    mean = float(np.mean([roc_auc_score(draw.real, draw.score) for draw in draws]))
    rng = np.random.default_rng(seed)
    values: list[float] = []
    for _ in range(rounds):
        draw = draws[int(rng.integers(len(draws)))]
        index = _resample(draw.groups, rng)
        if 0 < draw.real[index].sum() < len(index):
            values.append(float(roc_auc_score(draw.real[index], draw.score[index])))
    low, high = np.quantile(values, (0.025, 0.975))
    return mean, float(low), float(high)


def _resample(groups: Sequence[str], rng: np.random.Generator) -> np.ndarray:
    names = sorted(set(groups))
    places = {name: [i for i, group in enumerate(groups) if group == name] for name in names}
    return np.array([i for at in rng.integers(len(names), size=len(names)) for i in places[names[at]]])


def text_rows(texts: Sequence[str]) -> Matrix:
    """Hashed character 3-5-grams of each text, log counts, unit length: no vocabulary, so nothing leaks."""
    hashed = HashingVectorizer(
        analyzer="char",
        ngram_range=(3, 5),
        n_features=1 << 16,
        lowercase=False,
        norm=None,
        alternate_sign=False,
    ).transform(texts)
    hashed.data = np.log1p(hashed.data)
    return cast("Matrix", normalize(hashed))


def _text_model() -> Classifier:
    return cast("Classifier", LogisticRegression(C=10.0, max_iter=200))


def _number_model() -> Classifier:
    return cast(
        "Classifier",
        HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=8, min_samples_leaf=6, random_state=0),
    )


def telling_words(
    texts: Sequence[str], real: np.ndarray, count: int, name: str = "public"
) -> tuple[list[str], list[str]]:
    """Words (digits masked) that the one kind of report holds more often than the other, with both shares."""
    masked = [re.sub(r"\d+", "0", text) for text in texts]
    counter = CountVectorizer(token_pattern=r"[^\s,;:()\[\]]+", lowercase=False, min_df=4, binary=True)
    held = counter.fit_transform(masked)
    names = counter.get_feature_names_out()
    there, here = (np.asarray(held[real == side].mean(axis=0))[0] for side in (1, 0))
    order = np.argsort(there - here)
    rows = [f"{names[i]} ({there[i]:.2f} {name}, {here[i]:.2f})" for i in order]
    return rows[:count], rows[::-1][:count]


def telling_numbers(
    rows: np.ndarray, real: np.ndarray, count: int, sides: tuple[str, str] = ("public", "simulated")
) -> Iterator[str]:
    """Columns whose value alone separates the two best, with the means of both sides."""
    names = (*SURFACE, *LEDGER_FACTS)
    alone = [roc_auc_score(real, rows[:, j]) for j in range(rows.shape[1])]
    for j in sorted(range(len(names)), key=lambda j: -abs(alone[j] - 0.5))[:count]:
        there, here = rows[real == 1, j].mean(), rows[real == 0, j].mean()
        yield f"{names[j]}: {sides[0]} {there:.3f}, {sides[1]} {here:.3f} (AUC alone {alone[j]:.2f})"


def numbers(report: Report, example: Example) -> list[float]:
    """Surface statistics and the ledger vector (zeros where the package sees no incident)."""
    return [*surface(report.text), *(example.ledger or (0.0,) * len(LEDGER_FACTS))]


def main(argv: Sequence[str] | None = None) -> int:
    """Print both figures and what tells; returns 0."""
    parser = argparse.ArgumentParser(prog="python -m train realism", description=__doc__)
    parser.add_argument("--corpus", type=Path, default=Path("build/corpus/train"))
    parser.add_argument("--incidents", type=Path, default=Path("data/incidents"))
    parser.add_argument("--lab", type=Path, default=Path("data/lab"))
    parser.add_argument("--probe", choices=PROBES, default="simulated-public")
    parser.add_argument("--kind", choices=("all", "report", "run"), default="all", help="which simulated incidents")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--top", type=int, default=24)
    options = parser.parse_args(argv)
    made, real = options.probe.split("-")
    roots = {"simulated": options.corpus, "public": options.incidents, "lab": options.lab}
    found = {name: read_reports(roots[name]) for name in (made, real)}
    if made == "simulated":
        found[made] = of_kind(found[made], options.corpus, options.kind)
    for line in probe(found[real], found[made], options.draws, options.seed, options.top, (real, made)):
        sys.stdout.write(line + "\n")
    return 0


def of_kind(reports: Sequence[Report], corpus: Path, kind: str) -> list[Report]:
    """Simulated reports of a kind (`report`, `run`, `all`), as the corpus's notes beside the split tell."""
    if kind == "all":
        return list(reports)
    rows = (json.loads(line) for line in (corpus.parent / "records.jsonl").read_text("utf-8").splitlines())
    wanted = {row["id"] for row in rows if row["kind"] == kind}
    return [report for report in reports if report.folder.name in wanted]


def probe(
    public: Sequence[Report],
    simulated: Sequence[Report],
    draws: int,
    seed: int,
    top: int,
    sides: tuple[str, str] = ("public", "simulated"),
) -> Iterator[str]:
    """The lines of the report; `draws` matched samples, each cross-validated once. `sides`: names of both."""
    known: dict[Path, list[float]] = {}
    by_text: list[Scores] = []
    by_number: list[Scores] = []
    seen: dict[Path, tuple[Report, int]] = {}
    for draw in range(draws):
        chosen = [*public, *matched(public, simulated, Random(f"{seed}/{draw}"))]
        real = np.array([1] * len(public) + [0] * (len(chosen) - len(public)))
        for report, side in zip(chosen, real, strict=True):
            seen[report.folder] = (report, int(side))
            if report.folder not in known:
                known[report.folder] = numbers(report, read_example(report.folder))
        groups = [report.group for report in chosen]
        rows = cast("Matrix", np.array([known[report.folder] for report in chosen]))
        texts = text_rows([clipped(report.text) for report in chosen])
        by_text.append(out_of_fold(texts, real, groups, _text_model, seed + draw))
        by_number.append(out_of_fold(rows, real, groups, _number_model, seed + draw))
    yield "text (character 3-5-grams): AUC {:.3f} [{:.3f}, {:.3f}]".format(*interval(by_text, seed))
    yield "numbers (surface and ledger): AUC {:.3f} [{:.3f}, {:.3f}]".format(*interval(by_number, seed))
    yield from _telling(list(seen.values()), known, top, sides)


def _telling(
    seen: Sequence[tuple[Report, int]], known: dict[Path, list[float]], top: int, sides: tuple[str, str]
) -> Iterator[str]:
    real = np.array([side for _, side in seen])
    texts = [clipped(report.text) for report, _ in seen]
    false, true = telling_words(texts, real, top, sides[0])
    yield f"speaks for {sides[1]}: " + ", ".join(false)
    yield f"speaks for {sides[0]}: " + ", ".join(true)
    yield from telling_numbers(np.array([known[report.folder] for report, _ in seen]), real, top, sides)
