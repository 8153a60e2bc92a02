"""What the flight-recorder dumps of a recording imply by themselves: the one rank that stands elsewhere."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

from fsdpclassify.recorder.loading import load
from train.lab.pickled import is_pickle

_RANK = re.compile(r"rank_(\d+)(?:\.json)?$")


def apart(dumps: Mapping[str, str | bytes], world: int) -> tuple[int, ...]:
    """The one rank without a dump where all others left one; else the one that in some group is behind all others,
    or is at their number with another call. () where there is none or more than one, and below two dumps.
    """
    found = {int(m[1]): _read(content) for name, content in dumps.items() if (m := _RANK.search(name))}
    if len(found) == world - 1 and world > 2:
        return tuple(set(range(world)) - set(found))
    if len(found) != world:
        return ()
    groups = sorted({group for dump in found.values() for group in dump.get("pg_status", {})})
    ranks = {rank for group in groups for rank in _apart_in(group, found)}
    return tuple(ranks) if len(ranks) == 1 else ()


def _read(content: str | bytes) -> dict[str, Any]:
    if isinstance(content, bytes) and is_pickle(content):
        return load(content)
    return dict(json.loads(content))


def _apart_in(group: str, dumps: Mapping[int, Mapping[str, Any]]) -> tuple[int, ...]:
    numbers = {rank: _enqueued(dump, group) for rank, dump in dumps.items()}
    counts = Counter(numbers.values())
    if len(counts) == 2 and counts[min(counts)] == 1 and len(numbers) > 1:
        return tuple(rank for rank, number in numbers.items() if number == min(counts))
    return _rare({rank: _last_call(dump, group) for rank, dump in dumps.items()}) if len(counts) == 1 else ()


def _enqueued(dump: Mapping[str, Any], group: str) -> int:
    return int(dump.get("pg_status", {}).get(group, {}).get("last_enqueued_collective", -1))


def _last_call(dump: Mapping[str, Any], group: str) -> Hashable:
    calls = [e for e in dump.get("entries", ()) if str(e["pg_id"]) == group]
    return (calls[-1]["profiling_name"], str(calls[-1]["input_sizes"])) if calls else None


def _rare(calls: Mapping[int, Hashable]) -> tuple[int, ...]:
    """The one rank whose call differs from that of all others, which agree; two ranks cannot say who."""
    counts = Counter(calls.values())
    if len(calls) < 3 or len(counts) != 2 or min(counts.values()) != 1:
        return ()
    return tuple(rank for rank, call in calls.items() if counts[call] == 1)
