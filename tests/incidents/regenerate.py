"""Writes the golden diagnoses of the released bundle anew: `python tests/incidents/regenerate.py`.

They lie in `golden/<version of the bundle>/`, hold only what small differences between machines cannot
change, and are meant to be read as a diff: a change that no one intended is a regression.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "models" / "default"
INCIDENTS = ROOT / "data" / "incidents"
GOLDEN = Path(__file__).resolve().parent / "golden"

#: Four or more of every label and of both outcomes that are no label, all sizes, one that hangs.
NAMES = (
    "inc-001", "inc-003", "inc-004", "inc-005", "inc-011", "inc-013", "inc-015", "inc-017", "inc-019", "inc-020",
    "inc-022", "inc-024", "inc-026", "inc-027", "inc-029", "inc-030", "inc-031", "inc-032", "inc-034", "inc-039",
    "inc-043", "inc-046", "inc-047", "inc-048",
)  # fmt: skip
#: Lines that weigh less may fall out of a report by a rounding.
_WEIGHTY = 0.05

Json = dict[str, Any]


def hangs(folder: Path) -> bool:
    """Whether the incident is to be read as with `--hung`."""
    return bool(json.loads((folder / "incident.json").read_text(encoding="utf-8")).get("hung"))


def summary(report: Json) -> Json:
    """What stays of a report (as a dict): conclusions, ranks and places, no probabilities and no texts."""
    fatal = report["first_fatal_error"]
    return {
        "incidents": [_incident(x) for x in report["incidents"]],
        "first_fatal_error": f"{fatal['path']}:{fatal['line']}" if fatal else None,
    }


def _incident(x: Json) -> Json:
    weighty = [e for e in x["evidence"] if abs(e["weight"]) >= _WEIGHTY]
    return {
        "verdict": x["verdict"],
        "model_label": x["model_label"],
        "abstained_because": x["abstained_because"],
        "world_size": x["world_size"],
        "initiating_ranks": x["initiating_ranks"],
        "waiting_ranks": x["waiting_ranks"],
        "failed_ranks": x["failed_ranks"],
        "evidence": sorted(f"{e['path']}:{e['line']}" for e in weighty),
    }


def diagnoses() -> dict[str, Json]:
    """The summary of every golden incident by the released bundle."""
    from fsdpclassify.classifier import Classifier
    from fsdpclassify.report import report_as_dict

    classifier = Classifier.load(BUNDLE)
    found = {}
    for name in NAMES:
        folder = INCIDENTS / name
        found[name] = summary(report_as_dict(classifier.classify(folder / "logs", hung=hangs(folder))))
    return found


def folder_of(version: str) -> Path:
    """Where the golden diagnoses of a version of the bundle lie."""
    return GOLDEN / version


def to_text(value: Json) -> str:
    """One golden file: rank lists on one line, so that a diff is read at a glance."""
    compact = json.dumps(value, indent=1, ensure_ascii=False)
    lists = json.JSONEncoder(ensure_ascii=False)
    for x in value["incidents"]:
        for ranks in (x["initiating_ranks"], x["waiting_ranks"], x["failed_ranks"]):
            if ranks:
                compact = compact.replace(json.dumps(ranks, indent=1).replace("\n", "\n   "), lists.encode(ranks))
    return compact + "\n"


def main() -> int:
    """Replace the folder of the bundle's version; the folders of other versions go, they can be had from history."""
    from fsdpclassify.bundle import read_manifest

    target = folder_of(read_manifest(BUNDLE).version)
    found = diagnoses()
    shutil.rmtree(GOLDEN, ignore_errors=True)
    target.mkdir(parents=True)
    for name, value in found.items():
        (target / f"{name}.json").write_text(to_text(value), encoding="utf-8")
    sys.stdout.write(f"{len(found)} golden diagnoses in {target.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
