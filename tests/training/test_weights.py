from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from fsdpclassify.training.examples import Example
from fsdpclassify.training.weights import REAL_SHARE, balanced
from fsdpclassify.vector import LEDGER_FACTS

Make = Callable[..., Example]


def _ledger(**facts: float) -> tuple[float, ...]:
    return tuple(facts.get(name, 0.0) for name in LEDGER_FACTS)


@pytest.mark.parametrize(("simulated", "real"), [(10, 1), (100, 40), (3, 30)])
@pytest.mark.parametrize("share", [REAL_SHARE, 0.5])
def test_the_real_ones_carry_their_share_together(make_example: Make, simulated: int, real: int, share: float) -> None:
    some = [replace(make_example("a", "desync"), ledger=_ledger())]
    weights = balanced(some * simulated, some * real, share)
    assert len(weights) == simulated + real
    assert weights[:simulated] == [1.0] * simulated
    assert len(set(weights[simulated:])) == 1
    assert sum(weights[simulated:]) / sum(weights) == pytest.approx(share)


def test_alone_each_kind_weighs_one(make_example: Make) -> None:
    some = [replace(make_example("a", "desync"), ledger=_ledger())] * 3
    assert balanced(some, []) == [1.0] * 3
    assert balanced([], some) == [1.0] * 3
    assert balanced([], []) == []


def test_gloo_runs_and_lab_recordings_count_less_than_reports(make_example: Make) -> None:
    report = replace(make_example("a", "desync"), ledger=_ledger(), repository="owner/project")
    run = replace(report, ledger=_ledger(has_gloo_timeout=1.0))
    recording = replace(report, repository="lab/slow_disk")
    made_report, made_run, public, lab = balanced([report, run], [report, recording])
    assert made_run < made_report
    assert lab < public
    assert (public + lab) / (made_report + made_run + public + lab) == pytest.approx(REAL_SHARE)


def test_a_composed_incident_counts_as_several_simulated_ones(make_example: Make) -> None:
    report = replace(make_example("a", "desync"), ledger=_ledger(), repository="owner/project")
    simulated, composed, public = balanced([report, replace(report, repository="written/a")], [report])
    assert composed > simulated == 1.0
    assert public / (simulated + composed + public) == pytest.approx(REAL_SHARE)
