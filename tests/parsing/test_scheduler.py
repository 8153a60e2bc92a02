# ruff: noqa: E501
from collections.abc import Callable

import pytest

from fsdpclassify.records import Event, EventKind
from fsdpclassify.roles import is_fault

Events = Callable[..., list[Event]]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("slurmstepd: error: *** STEP 90211.4 ON bay-19 CANCELLED AT 2026-03-11T06:20:41 ***", "cancelled"),
        ("slurmstepd: error: StepId=90211.4 hit memory limit at least once during execution. This may or may not result in some failure.", "host_memory"),
        ("nhc: Health check failed:  check_fs_mount: /work not mounted", "node_health"),
        ("slurmctld: error: Nodes bay-[19-20] not responding", "node_health"),
        ("earlyoom[811]: low memory! at or below SIGKILL limits: mem 5.00%, swap 10.00%", "host_memory"),
    ],
)  # fmt: skip
def test_what_daemons_say_about_a_node_is_no_failure_of_a_rank(events: Events, text: str, name: str) -> None:
    (found,) = events(text)
    assert (found.kind, found.name, found.rank) == (EventKind.HARDWARE, name, None)
    assert not is_fault(found)


def test_a_node_that_is_set_down_is_the_launchers_word(events: Events) -> None:
    (found,) = events("slurmctld: error: Nodes bay-[19-20] not responding, setting DOWN")
    assert found.kind is EventKind.SIGNAL


def test_a_cancelled_step_with_a_reason_is_told_once(events: Events) -> None:
    (found,) = events(
        "slurmstepd: error: *** JOB 90211 ON bay-19 CANCELLED AT 2026-03-11T06:20:41 DUE TO PREEMPTION ***"
    )
    assert (found.kind, found.name) == (EventKind.SIGNAL, "preemption")
