"""`python -m train leaks`: what tells the label most on the train split, and whether it may.

The tokens of the windows (as the encoder reads them) and the columns of the ledger are ranked by their mutual
information with the label. Each needs a judgement in data/leaks.toml: `legitimate because …`, or `leak: fixed by …`
where the simulator's habits told it and no longer do. build/leaks.md holds the table, unjudged rows first. Returns 1
if a row has no judgement. `markers` finds what no log may hold: words that only the generators know.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from fsdpclassify.training.examples import Example
from fsdpclassify.vector import LEDGER_FACTS
from train import dataset
from train.inventory import Inventory, load

JUDGED = dataset.DATA / "leaks.toml"
REPORT = dataset.BUILD / "leaks.md"
TOKENS = 100
_TOKEN = r"[^\s,;:()\[\]{}\"'=|]{2,}"
#: A fact is compared in this many classes: none, and quarters of what is above.
_CLASSES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """A token or column: `bits` of mutual information with the label, and where it stands, likeliest label first."""

    name: str
    kind: str
    bits: float
    shares: tuple[tuple[str, float], ...]


def tokens(examples: Sequence[Example], most: int = TOKENS) -> list[Telling]:
    """The tokens that tell most: a token is there or not, digits are masked as the templates mask them."""
    counter = CountVectorizer(token_pattern=_TOKEN, lowercase=False, binary=True, min_df=5)
    held = counter.fit_transform(["\n".join(e.texts) for e in examples]).tocsc()
    labels = np.array([e.label for e in examples])
    names = counter.get_feature_names_out()
    columns = (np.asarray(held[:, j].todense()).ravel() for j in range(held.shape[1]))
    found = [_telling(str(name), "token", column, labels) for name, column in zip(names, columns, strict=True)]
    return sorted(found, key=lambda row: (-row.bits, row.name))[:most]


def columns(examples: Sequence[Example]) -> list[Telling]:
    """Every column of the ledger vector, the most telling first."""
    rows = np.array([e.ledger for e in examples])
    labels = np.array([e.label for e in examples])
    found = [_telling(name, "column", _classes(rows[:, j]), labels) for j, name in enumerate(LEDGER_FACTS)]
    return sorted(found, key=lambda row: (-row.bits, row.name))


def _classes(values: np.ndarray) -> np.ndarray:
    """0 where the fact is absent, else 1 and more by the quantile of what is there."""
    there = values[values != 0]
    if not len(there):
        return np.zeros(len(values), dtype=int)
    edges = np.unique(np.quantile(there, np.linspace(0, 1, _CLASSES + 1)[1:-1]))
    return np.where(values == 0, 0, 1 + np.searchsorted(edges, values, side="left"))


def _telling(name: str, kind: str, values: np.ndarray, labels: np.ndarray) -> Telling:
    shares = {str(label): float((values[labels == label] != 0).mean()) for label in np.unique(labels)}
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return Telling(name=name, kind=kind, bits=information(values, labels), shares=tuple(ordered))


def information(values: np.ndarray, labels: np.ndarray) -> float:
    """Mutual information in bits of two columns of classes, less what chance alone would show (Miller and Madow)."""
    _, value_of = np.unique(values, return_inverse=True)
    _, label_of = np.unique(labels, return_inverse=True)
    joint = np.zeros((value_of.max() + 1, label_of.max() + 1))
    np.add.at(joint, (value_of, label_of), 1)
    share = joint / joint.sum()
    apart = share.sum(1, keepdims=True) @ share.sum(0, keepdims=True)
    there = share > 0
    bits = float((share[there] * np.log2(share[there] / apart[there])).sum())
    chance = (joint.shape[0] - 1) * (joint.shape[1] - 1) / (2 * joint.sum() * np.log(2))
    return max(0.0, bits - chance)


def judgements(path: Path = JUDGED) -> dict[tuple[str, str], str]:
    """What was judged: by kind and name. Raises `ValueError` on a judgement that is neither of the two."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    found = {(kind, name): str(text) for kind in ("token", "column") for name, text in content[kind].items()}
    for key, text in found.items():
        if not text.startswith(("legitimate because ", "leak: fixed by ")):
            message = f"{path.name}: {key[1]}: a judgement begins with 'legitimate because' or 'leak: fixed by'"
            raise ValueError(message)
    return found


def table(rows: Iterable[Telling], judged: dict[tuple[str, str], str]) -> str:
    """The report: unjudged rows first, then by information."""
    ordered = sorted(rows, key=lambda row: ((row.kind, row.name) in judged, row.kind, -row.bits))
    lines = ["# What tells the label", "", "| kind | name | bits | where | judgement |", "|---|---|---|---|---|"]
    for row in ordered:
        where = ", ".join(f"{label} {share:.2f}" for label, share in row.shares[:3])
        name = row.name.replace("|", "\\|").replace("`", "'")
        text = judged.get((row.kind, row.name), "**unjudged**")
        lines.append(f"| {row.kind} | `{name}` | {row.bits:.3f} | {where} | {text} |")
    return "\n".join(lines) + "\n"


@cache
def _names() -> re.Pattern[str]:
    return marker_pattern(load())


def marker_pattern(inventory: Inventory) -> re.Pattern[str]:
    """What only the generators know: names of labels, causes and faults in snake case, slots, and their own words."""
    from train.lab.faults import load_faults

    known = {label.id for label in inventory.labels} | {cause.id for cause in inventory.causes}
    known |= {fault.name for fault in load_faults()}
    words = sorted(name for name in known if "_" in name and name not in ORDINARY)
    slots = "rank|long|medium|short|limit|host|iso|clock|step|path|int|float|choice|more|fewer|gib|dev|bdf"
    return re.compile(
        rf"(?<![\w.-])(?:{'|'.join(words)})(?![\w-])|\{{(?:{slots})(?::[^}}]{{0,40}})?\}}|(?i:\bsimulat(?:e|ed|es|ion)\b|\binject\w*)"
    )


#: Names of causes that programs print too: words of their own or of their settings.
ORDINARY = frozenset({"data_loading", "device_map", "pinned_memory"})


def markers(text: str) -> list[str]:
    """Words in a log that betray how it was made, each once, in order of appearance."""
    return list(dict.fromkeys(match[0] for match in _names().finditer(text)))


def main(argv: Sequence[str] | None = None) -> int:
    """Write the report; print how many rows have no judgement, and those."""
    parser = argparse.ArgumentParser(prog="python -m train leaks", description=__doc__)
    parser.add_argument("--corpus", type=Path, default=dataset.CORPUS)
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("--top", type=int, default=TOKENS, help="tokens to judge")
    options = parser.parse_args(argv)
    examples = [e for e in dataset.examples("train", options.corpus) if e.found]
    rows = [*tokens(examples, options.top), *columns(examples)]
    judged = judgements()
    options.report.parent.mkdir(parents=True, exist_ok=True)
    options.report.write_text(table(rows, judged), encoding="utf-8")
    open_ = [row for row in rows if (row.kind, row.name) not in judged]
    counts = Counter(row.kind for row in rows)
    print(f"{counts['token']} tokens and {counts['column']} columns of {len(examples)} incidents: {options.report}")
    for row in open_:
        where = ", ".join(f"{label} {share:.2f}" for label, share in row.shares[:3])
        print(f"unjudged {row.kind} {row.name} ({row.bits:.3f} bits; {where})")
    return int(bool(open_))
