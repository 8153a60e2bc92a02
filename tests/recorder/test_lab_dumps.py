"""Dumps of real runs that failed for a known cause: whom the recorder names is the rank that was at fault."""

from __future__ import annotations

from pathlib import Path

from fsdpclassify.initiating import shown_absent
from fsdpclassify.labelled import LabelledIncident, load_all, neutral_logs
from fsdpclassify.reading import find
from fsdpclassify.sources import collect

LAB = Path(__file__).parents[2] / "data" / "lab"


def _recorded() -> list[LabelledIncident]:
    """Recordings for training and validation that hold dumps and state who began."""
    found = load_all([LAB / "lab_train", LAB / "lab_val"])
    return [i for i in found if i.initiating_ranks and any(i.logs.rglob("comm_lib_trace_rank_*"))]


def test_dumps_of_real_runs_name_the_rank_at_fault() -> None:
    exact, wrong = [], []
    recordings = _recorded()
    for incident in recordings:
        with neutral_logs(incident) as logs:
            last = find(collect([logs])).incidents[-1]
        named = shown_absent(last)
        if set(named) - set(incident.initiating_ranks or ()):
            wrong.append(incident.id)
        elif tuple(named) == tuple(incident.initiating_ranks or ()):
            exact.append(incident.id)
    assert len(recordings) > 30
    assert not wrong
    assert len(exact) >= 0.9 * len(recordings)
