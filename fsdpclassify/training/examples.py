"""Labelled incident folders -> examples: features computed from the rendered files by the package itself.

`incident.json` gives labels and nothing else: no key of it and no part of a path enters a feature.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsdpclassify.features import extract
from fsdpclassify.labelled import content_sha256, incident_folders, neutral_logs
from fsdpclassify.labelled import load as load_incident
from fsdpclassify.reading import Findings, find
from fsdpclassify.records import Incident
from fsdpclassify.sources import collect
from fsdpclassify.templating import template

_WORKERS = 2
_PARALLEL_FROM = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One labelled incident as the model sees it; `decisive` marks the lines its label rests on.

    `texts` n, `facts` n x k, `ledger` m; `found` is False when the package sees no incident in the files.
    """

    id: str
    label: str
    alt_label: str | None
    cause: str | None
    determinable: str | None
    repository: str
    found: bool
    texts: tuple[str, ...]
    facts: tuple[tuple[float, ...], ...]
    ledger: tuple[float, ...]
    decisive: tuple[bool, ...]
    sha256: str


def read_examples(root: Path) -> list[Example]:
    """Every labelled incident below `root`, in the order of their folders' paths. Raises `LabelledIncidentError`."""
    folders = incident_folders(root)
    if len(folders) < _PARALLEL_FROM:
        return [read_example(folder) for folder in folders]
    with ProcessPoolExecutor(_WORKERS) as pool:
        return list(pool.map(read_example, folders, chunksize=16))


def read_example(folder: Path) -> Example:
    """The example of one incident folder; the last incident in the files is the labelled one."""
    incident = load_incident(folder)
    with neutral_logs(incident) as logs:
        findings = find(collect([logs]), hung=incident.hung)
    base: dict[str, Any] = {
        "id": incident.id,
        "label": incident.label,
        "alt_label": incident.alt_label,
        "cause": incident.cause_id,
        "determinable": incident.determinable_from_log,
        "repository": repository(incident.source or incident.id),
        "sha256": content_sha256(incident),
    }
    if not findings.incidents:
        return Example(**base, found=False, texts=(), facts=(), ledger=(), decisive=())
    return _featured(base, findings, findings.incidents[-1], incident.decisive_lines)


def _featured(
    base: dict[str, Any], findings: Findings, incident: Incident, decisive: Sequence[tuple[str, int]]
) -> Example:
    features = extract(incident, findings.kinds)
    wanted = set(_decisive_texts(findings, decisive))
    return Example(
        **base,
        found=True,
        texts=features.texts,
        facts=features.facts,
        ledger=features.ledger,
        decisive=tuple(t in wanted for t in features.texts),
    )


def _decisive_texts(findings: Findings, places: Iterable[tuple[str, int]]) -> Iterator[str]:
    index = {row.path: i for i, row in enumerate(findings.inputs)}
    pairs = {(index.get(name, -1), number) for name, number in places}
    for line in findings.lines:
        if (line.source, line.number) in pairs:
            yield template(line.body)


def repository(source: str) -> str:
    """The repository (owner/name) of a public incident's URL, the unit of leave-one-out; else the text itself."""
    parts = source.split("://")[-1].split("/")
    return "/".join(parts[1:3]).lower() if "://" in source and len(parts) > 2 else source


def save(path: Path, examples: Sequence[Example]) -> None:
    """Write examples as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as out:
        for e in examples:
            out.write(json.dumps({k: getattr(e, k) for k in Example.__slots__}) + "\n")


def load(path: Path) -> list[Example]:
    """Read what `save` wrote."""
    with path.open(encoding="utf-8") as lines:
        return [_revive(json.loads(line)) for line in lines]


def _revive(data: dict[str, Any]) -> Example:
    data["texts"] = tuple(data["texts"])
    data["facts"] = tuple(tuple(row) for row in data["facts"])
    data["ledger"] = tuple(data["ledger"])
    data["decisive"] = tuple(data["decisive"])
    return Example(**data)
