"""Write every incident of every split below OUT, a manifest of their hashes, and the corpus's notes on each.

`OUT/records.jsonl` holds a line for each incident: split, id, label, the wordings printed, what they read like, and
the labels that its decoys speak for. Nothing that computes features reads it.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from train.simulate.build import Incident, build, inventory
from train.simulate.combos import HELD_FOR_VALIDATION, HELD_OUT
from train.simulate.plan import Job, held_causes, jobs, validation_causes
from train.simulate.record import Notes

DEFAULT_OUT = Path("build/corpus")
#: How often a report that reads like one of an earlier split is drawn anew; bare phrases have few forms.
_TRIES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One incident as the manifest sees it: `sha256` of all its bytes, `log` of its logs, `masked` without digits."""

    job: Job
    id: str
    sha256: str
    log: str
    masked: str
    notes: Notes


def row_of(job: Job, incident: Incident) -> Row:
    """The hashes and notes of an incident."""
    whole = hashlib.sha256()
    for name, text in parts(incident):
        data = text.encode("utf-8", "replace")
        whole.update(f"{name}\n{len(data)}\n".encode() + data)
    logs = "\n".join(text for _, text in sorted(incident.files.items()))
    return Row(
        job=job,
        id=incident.id,
        sha256=whole.hexdigest(),
        log=_sha256(logs),
        masked=_sha256(re.sub(r"\d+", "0", logs)),
        notes=incident.notes,
    )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def parts(incident: Incident) -> list[tuple[str, str]]:
    """The files of an incident's folder: path and text."""
    logs = [(f"logs/{name}", text) for name, text in sorted(incident.files.items())]
    return [("incident.json", incident.truth), *logs]


def write(job: Job, out: Path) -> Row:
    """Write one incident below `out`."""
    incident = build(job)
    folder = out / job.split / incident.id
    for name, text in parts(incident):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode("utf-8", "replace"))
    return row_of(job, incident)


def _write_one(task: tuple[Job, Path]) -> Row:
    return write(*task)


def _written(work: list[Job], out: Path, workers: int) -> Iterator[Row]:
    tasks = [(job, out) for job in work]
    if workers <= 1:
        yield from map(_write_one, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        yield from pool.imap(_write_one, tasks, chunksize=16)


def again(job: Job, turn: int) -> Job:
    """The same job drawn anew; turn 0 is the job itself."""
    return replace(job, seed=f"{job.seed}/again{turn}") if turn else job


def _unlike(rows: Sequence[Row], out: Path) -> tuple[list[Row], dict[str, int]]:
    """Draw anew what reads, but for its digits, like a report of an earlier split, or just like any other.

    Returns all rows and, by the seed of the job, how often it was drawn anew.
    """
    owner: dict[str, str] = {}
    logs: set[str] = set()
    kept: list[Row] = []
    turns: dict[str, int] = {}
    for first in rows:
        row = first
        for turn in range(1, _TRIES + 1):
            if row.log not in logs and owner.get(row.masked, row.job.split) == row.job.split:
                break
            shutil.rmtree(out / row.job.split / row.id)
            row, turns[first.job.seed] = write(again(first.job, turn), out), turn
        owner.setdefault(row.masked, row.job.split)
        logs.add(row.log)
        kept.append(row)
    return kept, turns


def _manifest(seed: int, scale: float, rows: Sequence[Row], turns: dict[str, int]) -> dict[str, object]:
    splits = {}
    for split in dict.fromkeys(row.job.split for row in rows):
        members = [row for row in rows if row.job.split == split]
        splits[split] = {
            "incidents": len(members),
            "labels": dict(sorted(Counter(row.job.label for row in members).items())),
            "with_decoy": sum(bool(row.notes.decoys) for row in members),
            "sha256": digest_of(members),
        }
    return {
        "schema_version": 1,
        "seed": seed,
        "scale": scale,
        "held_out_causes": {label: list(names) for label, names in held_causes(inventory()).items() if names},
        "validation_causes": {label: list(names) for label, names in validation_causes(inventory()).items() if names},
        "held_out_dialects": sorted(" / ".join(pair) for pair in HELD_OUT),
        "validation_dialects": sorted(" / ".join(pair) for pair in HELD_FOR_VALIDATION),
        "drawn_anew": turns,
        "splits": splits,
    }


def digest_of(rows: Sequence[Row]) -> str:
    """One hash over the incidents of a split, whatever their order."""
    return _sha256("\n".join(sorted(f"{row.id} {row.sha256}" for row in rows)))


def _record(row: Row) -> str:
    job = row.job
    content = {"split": job.split, "id": row.id, "label": job.label, "cause": job.cause, "kind": job.kind}
    notes = {name: getattr(row.notes, name) for name in ("origins", "decoys", "lines")}
    return json.dumps({**content, **notes}, ensure_ascii=False)


def corpus(out: Path, seed: int = 1, scale: float = 1.0, workers: int = 2) -> dict[str, object]:
    """Write all splits below `out` (what stood there before is removed) and return the manifest."""
    work = jobs(inventory(), seed, scale)
    for split in dict.fromkeys(job.split for job in work):
        shutil.rmtree(out / split, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    rows, turns = _unlike(list(_written(work, out, workers)), out)
    manifest = _manifest(seed, scale, rows, turns)
    (out / "records.jsonl").write_text("".join(f"{_record(row)}\n" for row in rows), encoding="utf-8")
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return manifest
