"""The frozen splits: data/splits.json holds seeds, counts and hashes; what lies in two splits is a fault.

A split is known by a hash over all its incidents and by one over a sample, the jobs whose index is a multiple of
100, which can be made in seconds without the rest. `test_seen` and `test_unseen_dialect` share the wordings of
training, as their names say; no incident and nothing that is held out lies in two splits.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from train.dataset import DATA, LAB, PUBLIC, folder_of, tree_hash
from train.simulate.build import build, inventory
from train.simulate.combos import HELD_FOR_VALIDATION, HELD_OUT
from train.simulate.emit import Row, again, digest_of, row_of
from train.simulate.gloo.phrases import usable
from train.simulate.lines import held_for, owners
from train.simulate.plan import held_causes, jobs, validation_causes

FILE = DATA / "splits.json"
#: One job in so many is in the sample.
EVERY = 100
#: Whose wordings a split may print.
OWNERS: dict[str, frozenset[str]] = {
    "train": frozenset({"train"}),
    "val": frozenset({"train", "val"}),
    "test_seen": frozenset({"train"}),
    "test_unseen_lines": frozenset({"test"}),
    "test_unseen_dialect": frozenset({"train"}),
    "test_unseen_cause": frozenset({"train", "test"}),
}


def freeze(manifest: Mapping[str, Any], path: Path = FILE) -> None:
    """Write the file from a manifest of the whole corpus; raises `SystemExit` if it is of a part only."""
    if manifest["scale"] != 1.0:
        raise SystemExit("only the whole corpus can be frozen: leave --scale out")
    samples = sample(manifest["seed"], manifest["drawn_anew"])
    content = {key: value for key, value in manifest.items() if key != "splits"}
    content["splits"] = {
        name: {**row, "sample": len(samples[name]), "sample_sha256": digest_of(samples[name])}
        for name, row in manifest["splits"].items()
    }
    content["folders"] = folders()
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def freeze_folders(path: Path = FILE) -> None:
    """Write anew what the file says of the folders of the repository; what it says of the corpus stays."""
    content = {**frozen(path), "folders": folders()}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def frozen(path: Path = FILE) -> dict[str, Any]:
    """What was frozen."""
    return dict(json.loads(path.read_text(encoding="utf-8")))


def folders() -> dict[str, dict[str, Any]]:
    """The splits that are folders of the repository: how many incidents, and the hash of their tree."""
    found = {}
    for split in (*LAB, PUBLIC):
        root = folder_of(split)
        count = sum(1 for _ in root.rglob("incident.json"))
        found[split] = {"incidents": count, "sha256": tree_hash(root)}
    return found


def sample(seed: int, drawn_anew: Mapping[str, int]) -> dict[str, list[Row]]:
    """One in a hundred incidents of each split, built as for the whole corpus."""
    found: dict[str, list[Row]] = defaultdict(list)
    for job in jobs(inventory(), seed, 1.0):
        if job.index % EVERY == 0:
            final = again(job, drawn_anew.get(job.seed, 0))
            found[job.split].append(row_of(final, build(final)))
    return dict(found)


def differences(manifest: Mapping[str, Any], path: Path = FILE) -> list[str]:
    """Where a manifest and the folders of the repository are not what was frozen."""
    known = frozen(path)
    found = [f"{key} is not that of {path.name}" for key in manifest if key != "splits" and manifest[key] != known[key]]
    for name, row in manifest["splits"].items():
        found += [f"{name}: {key} is not the frozen one" for key in row if row[key] != known["splits"][name][key]]
    return [
        *found,
        *(f"{name}: not the frozen folder" for name, row in folders().items() if row != known["folders"][name]),
    ]


def faults(out: Path) -> list[str]:
    """What lies in two splits of a corpus although it must not."""
    with (out / "records.jsonl").open(encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    for record in records:
        folder = out / record["split"] / record["id"]
        record["truth"] = json.loads((folder / "incident.json").read_text("utf-8"))
        record["log"] = tree_hash(folder / "logs")
    return faults_of(records)


def as_record(row: Row, truth: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a sample as `faults_of` takes it."""
    return {
        "split": row.job.split, "id": row.id, "cause": row.job.cause, "label": row.job.label, "truth": truth,
        "log": row.log, "origins": row.notes.origins, "lines": row.notes.lines,
    }  # fmt: skip


def faults_of(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """The same for records: `split`, `id`, `cause`, `origins`, `lines`, `log` (a hash) and `truth`."""
    return [*_twice(records), *_wordings(records), *_rendered(records), *_causes(records), *_dialects(records)]


def _twice(records: Iterable[Mapping[str, Any]]) -> list[str]:
    found, seen = [], {}
    for record in records:
        for key in ("id", "log"):
            other = seen.setdefault((key, record[key]), record)
            if other is not record:
                found.append(f"{record['split']}/{record['id']} is also {other['split']}/{other['id']} by its {key}")
    return found


def owner_of(origin: str) -> str:
    """The split for which a wording is held: `val` or `test`, or `train` for those of all others."""
    kind, _, text = origin.partition(":")
    if kind == "text":
        return "train"
    if kind == "phrase":
        return "train" if usable((text,), True) else "val"
    return _owners().get(origin) or held_for(origin)


@cache
def _owners() -> dict[str, str]:
    return owners(inventory())


def _wordings(records: Iterable[Mapping[str, Any]]) -> list[str]:
    where: dict[str, set[str]] = defaultdict(set)
    for record in records:
        where[record["split"]].update(record["origins"])
    return [
        f"{split} prints {origin!r}, which is held for {owner_of(origin)}"
        for split, origins in where.items()
        for origin in sorted(origins)
        if owner_of(origin) not in OWNERS[split]
    ]


def _rendered(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """Lines of wordings in `test_unseen_lines` that a wording also prints where training reads it."""
    lines: dict[str, set[str]] = defaultdict(set)
    for record in records:
        lines[record["split"]].update(record["lines"])
    shared = lines["test_unseen_lines"] & (lines["train"] | lines["val"])
    return [f"test_unseen_lines prints what training or validation prints: {line!r}" for line in sorted(shared)]


def _causes(records: Iterable[Mapping[str, Any]]) -> list[str]:
    kept = {name: "test_unseen_cause" for names in held_causes(inventory()).values() for name in names}
    kept |= {name: "val" for names in validation_causes(inventory()).values() for name in names}
    families = {family.id: family.cause for family in inventory().families if family.cause in kept}
    found = []
    for record in records:
        told = {record["cause"], *(families.get(origin) for origin in record["origins"])}
        found += [
            f"{record['split']}/{record['id']} shows {cause}, kept for {kept[cause]}"
            for cause in sorted(told & kept.keys())
            if kept[cause] != record["split"]
        ]
    return found


def _dialects(records: Iterable[Mapping[str, Any]]) -> list[str]:
    kept = {**dict.fromkeys(HELD_OUT, "test_unseen_dialect"), **dict.fromkeys(HELD_FOR_VALIDATION, "val")}
    found = []
    for record in records:
        pair = (record["truth"]["framework"], record["truth"]["launcher"])
        if kept.get(pair, record["split"]) != record["split"]:
            found.append(f"{record['split']}/{record['id']} speaks {' / '.join(pair)}, kept for {kept[pair]}")
    return found
