"""data/examples.md: one short simulated incident for each label, as `python -m train corpus --examples` writes it.

Chosen by the hash of the id among short readable reports of `test_seen`, so that the page changes only when the
corpus does. Lines that the label rests on are marked in the margin.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from train.dataset import DATA

PAGE = DATA / "examples.md"
_SPLIT = "test_seen"
_LINES = range(4, 13)
_WIDTH = 190
_HEAD = """# Examples of simulated incidents

Made by `python -m train corpus --examples` from the split `test_seen`; `>` marks the lines that the label rests on.
Long lines are cut. None of this happened: runs, hosts and numbers are drawn.
"""


def write(out: Path, page: Path = PAGE) -> None:
    """Write the page from a corpus."""
    page.write_text("\n".join([_HEAD, *_sections(out)]), encoding="utf-8")


def _sections(out: Path) -> Iterator[str]:
    chosen: dict[str, Path] = {}
    folders = sorted((out / _SPLIT).iterdir(), key=lambda folder: hashlib.sha256(folder.name.encode()).hexdigest())
    for folder in folders:
        truth = json.loads((folder / "incident.json").read_text("utf-8"))
        if truth["label"] not in chosen and _readable(folder, truth):
            chosen[truth["label"]] = folder
    for label in sorted(chosen):
        yield _section(chosen[label], json.loads((chosen[label] / "incident.json").read_text("utf-8")))


def _readable(folder: Path, truth: dict[str, Any]) -> bool:
    """One short file of plain text that says what the label rests on, if the label rests on anything."""
    files = [path for path in (folder / "logs").rglob("*") if path.is_file()]
    text = files[0].read_text("utf-8") if len(files) == 1 else ""
    told = bool(truth["decisive_lines"]) or truth["label"] in {"undetermined", "no_timeout"}
    return told and text.count("\n") in _LINES and not {"\x1b", "\r", "`"} & set(text)


def _section(folder: Path, truth: dict[str, Any]) -> str:
    path = next(path for path in (folder / "logs").rglob("*") if path.is_file())
    marked = {int(place.rsplit(":", 1)[1]) for place in truth["decisive_lines"]}
    facts = [f"cause `{truth['cause_id']}`" if truth["cause_id"] else "", truth["framework"], truth["launcher"]]
    facts += [f"initiating ranks {truth['initiating_ranks']}" if truth["initiating_ranks"] else ""]
    rows = [
        f"{'>' if number in marked else ' '} {line[:_WIDTH]}{'…' if len(line) > _WIDTH else ''}".rstrip()
        for number, line in enumerate(path.read_text("utf-8").rstrip("\n").split("\n"), 1)
    ]
    head = f"## {truth['label']}\n\n{', '.join(fact for fact in facts if fact)}\n"
    return head + "\n```text\n" + "\n".join(rows) + "\n```\n"
