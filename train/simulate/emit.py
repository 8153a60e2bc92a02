"""`python -m train corpus`: write every incident of every split below OUT, and a manifest of their hashes."""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from train.simulate.build import build, inventory
from train.simulate.plan import Job, held_causes, jobs

DEFAULT_OUT = Path("build/corpus")


def write(job: Job, out: Path) -> tuple[str, str, str]:
    """Write one incident; returns its split, its id and the hash of all its bytes."""
    incident = build(job)
    folder = out / job.split / incident.id
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    for name, text in [
        ("incident.json", incident.truth),
        *((f"logs/{name}", text) for name, text in sorted(incident.files.items())),
    ]:
        data = text.encode("utf-8", "replace")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
        digest.update(f"{name}\n{len(data)}\n".encode() + data)
    return job.split, incident.id, digest.hexdigest()


def _write_one(task: tuple[Job, Path]) -> tuple[str, str, str]:
    return write(*task)


def _written(work: list[Job], out: Path, workers: int) -> Iterator[tuple[str, str, str]]:
    tasks = [(job, out) for job in work]
    if workers <= 1:
        yield from map(_write_one, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        yield from pool.imap(_write_one, tasks, chunksize=16)


def _manifest(seed: int, scale: float, rows: list[tuple[str, str, str]], work: list[Job]) -> dict[str, object]:
    splits: dict[str, object] = {}
    for split in dict.fromkeys(job.split for job in work):
        hashes = sorted(f"{name} {digest}" for where, name, digest in rows if where == split)
        labels = Counter(job.label for job in work if job.split == split)
        splits[split] = {
            "incidents": len(hashes),
            "labels": dict(sorted(labels.items())),
            "sha256": hashlib.sha256("\n".join(hashes).encode()).hexdigest(),
        }
    return {
        "schema_version": 1,
        "seed": seed,
        "scale": scale,
        "held_out_causes": {label: list(names) for label, names in held_causes(inventory()).items() if names},
        "splits": splits,
    }


def corpus(out: Path, seed: int = 1, scale: float = 1.0, workers: int = 2) -> dict[str, object]:
    """Write all splits below `out` (what stood there before is removed) and return the manifest."""
    work = jobs(inventory(), seed, scale)
    for split in dict.fromkeys(job.split for job in work):
        shutil.rmtree(out / split, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    manifest = _manifest(seed, scale, list(_written(work, out, workers)), work)
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return manifest


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; prints one line a split and returns 0."""
    parser = argparse.ArgumentParser(prog="python -m train corpus", description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full number of incidents")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(argv)
    manifest = corpus(options.out, options.seed, options.scale, options.workers)
    splits = manifest["splits"]
    assert isinstance(splits, dict)
    for split, row in splits.items():
        print(f"{split}: {row['incidents']} incidents, sha256 {row['sha256'][:12]}")
    return 0
