"""Calls in flight where only counters were written: torch 2.6 and 2.7 dump by default with an empty recorder.

A group counts here only if all its ranks completed the same number: where p2p calls were counted too, or ranks
died in different places, the counters of different ranks cannot be compared.
"""

from __future__ import annotations

from collections.abc import Mapping

from fsdpclassify.recorder.dumps import Dump, Status, Work
from fsdpclassify.recorder.operations import Operation


def counted_works(dumps: Mapping[int, Dump]) -> dict[int, list[Work]]:
    """For each rank one nameless call for every group in which its counters show one in flight; {} if any dump
    recorded calls.
    """
    if any(dump.works for dump in dumps.values()):
        return {}
    found: dict[int, list[Work]] = {}
    for name in {name for dump in dumps.values() for name in dump.groups}:
        statuses = {r: s for r, d in dumps.items() if name in d.groups and (s := d.groups[name].status) is not None}
        if len({status.completed for status in statuses.values()}) != 1:
            continue
        for rank, status in statuses.items():
            if status.enqueued > status.completed:
                found.setdefault(rank, []).append(_next(name, status))
    return found


def _next(group: str, status: Status) -> Work:
    return Work(
        group=group,
        seq=status.completed + 1,
        is_p2p=False,
        operation=Operation(name=""),
        created=0.0,
        is_done=False,
        is_started=status.started > status.completed,
        is_retired=False,
        numel_in=None,
        numel_out=None,
        types=(),
        timeout_s=None,
        frame=None,
    )
