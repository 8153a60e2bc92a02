"""Where the examples of each split come from, and a cache of their features under `build/`."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from fsdpclassify.training.examples import Example, load, read_examples, save

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "data"
BUILD = ROOT / "build"
CORPUS = BUILD / "corpus"
BUNDLE = ROOT / "models" / "default"
SIMULATED = ("train", "val", "test_seen", "test_unseen_lines", "test_unseen_dialect", "test_unseen_cause")
PUBLIC = "public"
LAB = ("lab_train", "lab_val", "lab_test", "lab_fresh")
#: Incidents that several authors composed from general knowledge of public reports; the author is the unit of folds.
WRITTEN = "written"
#: Those of one more author, which nothing is fitted on.
WRITTEN_TEST = "written_test"
#: What features are made of; other modules of the package may change without making them stale.
_FEATURE_CODE = (
    "absent_node.py", "bearing.py", "clocks.py", "facts.py", "features.py", "incident.py", "ledger.py", "numbers.py",
    "order.py", "reading.py", "recorder", "records.py", "roles.py", "speakers.py", "templating.py", "vector.py",
    "vector_steps.py", "window.py", "parsing", "sources", "training/examples.py",
)  # fmt: skip


def folder_of(split: str, corpus: Path = CORPUS) -> Path:
    """The folder of labelled incidents of a split."""
    if split == PUBLIC:
        return DATA / "incidents"
    if split in (WRITTEN, WRITTEN_TEST):
        return DATA / split
    return DATA / "lab" / split if split in LAB else corpus / split


def examples(split: str, corpus: Path = CORPUS) -> list[Example]:
    """The examples of a split, from the cache if neither incidents nor feature code changed."""
    folder = folder_of(split, corpus)
    if not folder.is_dir():
        message = f"{folder} does not exist; run: python -m train corpus"
        raise SystemExit(message)
    cache = BUILD / "examples" / f"{split}-{_key(folder)}.jsonl"
    if not cache.is_file():
        save(cache, read_examples(folder))
    found = load(cache)
    return [replace(e, repository=_unit(e, split)) for e in found]


def _unit(example: Example, split: str) -> str:
    """What must not stand on both sides of a fold: a repository; an author; of lab recordings, which share one
    source, the fault.
    """
    if split == WRITTEN:
        return f"{WRITTEN}/{example.id[0]}"
    return f"lab/{example.cause or example.label}" if split in LAB else example.repository


def _key(folder: Path) -> str:
    return hashlib.sha256((tree_hash(folder) + code_hash()).encode()).hexdigest()[:16]


def code_hash() -> str:
    """One hash over the code that features are computed by."""
    digest = hashlib.sha256()
    for name in _FEATURE_CODE:
        path = ROOT / "fsdpclassify" / name
        for part in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(part.relative_to(ROOT).as_posix().encode() + part.read_bytes())
    return digest.hexdigest()


def tree_hash(folder: Path) -> str:
    """One hash over the names and contents of all files below `folder`."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
