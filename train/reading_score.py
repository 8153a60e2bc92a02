"""`python -m train reading`: what reading alone (no model) gets right on the labelled incidents.

For each incident: whether one was found (as the label says), the world size, the waiting ranks and what the structure
alone says about who failed or did not come, each against what the incident states. A null is honest, a wrong is not.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fsdpclassify.labelled import LabelledIncident, load_all, neutral_logs
from fsdpclassify.reading import Findings, find
from fsdpclassify.records import Incident
from fsdpclassify.sources import collect

NO_TIMEOUT = "no_timeout"
_REFERENCE = re.compile(r"inc-0(?:[0-3]\d|4[0-8])")
_COLUMNS = ("found", "world", "waiting", "absent", "onset")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One incident's reading beside what it states; each verdict is one word, `-` where nothing is stated."""

    id: str
    found: str
    world: str
    waiting: str
    absent: str
    onset: str
    attempts: int
    detail: str


def score(incident: LabelledIncident, findings: Findings) -> Score:
    """Compare the last incident found, the one that exit codes follow, with the label."""
    expected, got = incident.label != NO_TIMEOUT, bool(findings.incidents)
    last = findings.incidents[-1] if got else None
    waiting = last.waiting if last else ()
    absent = (last.failed or last.missing) if last else ()
    world = last.world_size if last else None
    judged = expected and last is not None
    return Score(
        id=incident.id,
        found="right" if expected == got else "wrong",
        world=_world(world, incident.world_size) if judged else "-",
        waiting=_ranks(waiting, incident.waiting_ranks) if judged else "-",
        absent=_ranks(absent, incident.initiating_ranks) if judged else "-",
        onset=("printed" if last.onset is not None else "null") if last else "-",
        attempts=len(findings.incidents),
        detail=_detail(incident, last, absent),
    )


def _world(found: int | None, stated: int | None) -> str:
    if stated is None:
        return "-" if found is None else "unstated"
    return "null" if found is None else "right" if found == stated else "wrong"


def _ranks(found: Sequence[int], stated: Sequence[int] | None) -> str:
    """`exact`, `subset` (not empty), `empty`, or `wrong` as soon as one rank is not among those stated."""
    if stated is None:
        return "-" if not found else "unstated"
    if set(found) == set(stated):
        return "exact"
    return "empty" if not found else "subset" if set(found) < set(stated) else "wrong"


def _detail(incident: LabelledIncident, last: Incident | None, absent: Sequence[int]) -> str:
    if last is None:
        return ""
    pairs = (
        ("world", last.world_size, incident.world_size),
        ("waiting", list(last.waiting), incident.waiting_ranks),
        ("absent", list(absent), incident.initiating_ranks),
    )
    shown = (f"{name} {found}/{list(stated) if isinstance(stated, tuple) else stated}" for name, found, stated in pairs)
    return ", ".join(shown)


def totals(scores: Iterable[Score]) -> dict[str, dict[str, int]]:
    """How often each word occurs in each column."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in _COLUMNS}
    for each in scores:
        for name in _COLUMNS:
            counts[name][getattr(each, name)] += 1
    return {name: dict(sorted(count.items())) for name, count in counts.items()}


def read_all(incidents: Iterable[LabelledIncident]) -> list[Score]:
    """Read each incident from a neutral path."""
    scores = []
    for incident in incidents:
        with neutral_logs(incident) as logs:
            scores.append(score(incident, find(collect([logs]), hung=incident.hung)))
    return scores


def render(scores: Sequence[Score]) -> str:
    """A table with found/stated in the last column, and the totals."""
    head = (*_COLUMNS, "attempts")
    lines = ["id        " + "".join(f"{name:<10}" for name in head) + "found/stated"]
    for s in scores:
        lines.append(f"{s.id:<10}" + "".join(f"{getattr(s, name)!s:<10}" for name in head) + s.detail)
    lines.append(f"of {len(scores)}:")
    for name, counts in totals(scores).items():
        lines.append(f"  {name:<9}" + ", ".join(f"{word} {n}" for word, n in counts.items()))
    return "\n".join(lines) + "\n"


def main(argv: list[str]) -> int:
    """Print the table; 1 if an incident was found where there is none, or missed."""
    parser = argparse.ArgumentParser(prog="python -m train reading", description=__doc__)
    parser.add_argument("--incidents", type=Path, default=Path("data/incidents"))
    parser.add_argument("--subset", choices=("all", "reference", "breadth"), default="all")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    chosen = [i for i in load_all([options.incidents]) if _wanted(i.id, options.subset)]
    scores = read_all(chosen)
    if options.json:
        content = {"incidents": [asdict(s) for s in scores], "totals": totals(scores)}
        sys.stdout.write(json.dumps(content, indent=1) + "\n")
    else:
        sys.stdout.write(render(scores))
    return 1 if any(s.found == "wrong" for s in scores) else 0


def _wanted(identifier: str, subset: str) -> bool:
    return subset == "all" or bool(_REFERENCE.fullmatch(identifier)) == (subset == "reference")
