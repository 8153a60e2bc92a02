"""Plain containers -> `Dump`: one process's groups and recorded works. Layouts of versions 1.x and 2.0 to 2.14.

Whatever has the wrong type is left out, never guessed; times are seconds since the epoch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fsdpclassify.recorder.failures import DumpError
from fsdpclassify.recorder.operations import Operation, numel, read_operation
from fsdpclassify.recorder.stacks import innermost

MAX_WORKS = 200_000
_MAX_GROUPS, _MAX_RANKS = 10_000, 100_000
_NUMBER = re.compile(r"(?<!\d)[0-9]{1,6}(?!\d)")
_HIGHEST_RANK = 1_000_000
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_LARGEST = (1 << 63) - 1
_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Counters of one group as the process group kept them; -1 where nothing was. They count p2p works too."""

    enqueued: int
    started: int
    completed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A process group that the dump names; `ranks[g]` is the GLOBAL rank of group rank g, () if not written."""

    name: str
    desc: str = ""
    ranks: tuple[int, ...] = ()
    status: Status | None = None

    @property
    def label(self) -> str:
        """As c10d prints it: the name, with the description if there is one."""
        return f"{self.name}({self.desc})" if self.desc else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One recorded call. `seq` counts collectives of the group, or its p2p calls of this rank if `is_p2p`."""

    group: str
    seq: int
    is_p2p: bool
    operation: Operation
    created: float
    is_done: bool
    is_started: bool
    is_retired: bool
    numel_in: int | None
    numel_out: int | None
    types: tuple[str, ...]
    timeout_s: float | None
    frame: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """What one process wrote; `works` in order of recording (the oldest may have been overwritten)."""

    version: tuple[int, int]
    groups: Mapping[str, Group]
    works: tuple[Work, ...]
    #: Its newest calls may be lost: the file was cut off.
    is_cut: bool = False

    @property
    def newest(self) -> float:
        """When it last enqueued anything; 0 if it recorded nothing."""
        return max((work.created for work in self.works), default=0.0)


def read_dump(found: Mapping[str, Any], *, is_cut: bool = False) -> Dump:
    """The dump in `found`. Raises `DumpError` if it has neither entries nor groups of the known layout."""
    entries = found.get("entries", [])
    if not isinstance(entries, list | tuple) or not ({"entries", "pg_config", "pg_status"} & set(found)):
        raise DumpError("it has no entries and no process groups, as a flight recorder writes them")
    if len(entries) > MAX_WORKS:
        raise DumpError(f"it has more than {MAX_WORKS} entries")
    rows = [row for row in entries if isinstance(row, dict)]
    ids = {str(row.get("pg_id")): _names(row) for row in rows}
    described = _described(found.get("pg_config"))
    statuses = _by_name(_statuses(found.get("pg_status")), {k: v[0] for k, v in ids.items()}, described)
    groups = {name: _group(name, desc, described, statuses) for name, desc in _all_names(rows, described, statuses)}
    works = tuple(work for row in rows if (work := _work(row, groups)) is not None)
    return Dump(version=_version(found.get("version")), groups=groups, works=works, is_cut=is_cut)


def _version(value: object) -> tuple[int, int]:
    match = _VERSION.match(value) if isinstance(value, str) else None
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _names(row: Mapping[str, Any]) -> tuple[str, str]:
    """Name and description of an entry's group; the oldest layouts have only a number."""
    value = row.get("process_group")
    if isinstance(value, list | tuple) and value:
        return str(value[0])[:200], str(value[1])[:200] if len(value) > 1 else ""
    return (value[:200] if isinstance(value, str) else str(row.get("pg_id", "0"))[:200]), ""


def _described(value: object) -> dict[str, Group]:
    if not isinstance(value, dict) or len(value) > _MAX_GROUPS:
        return {}
    found = {}
    for key, row in value.items():
        if isinstance(row, dict):
            name = str(row.get("name", key))[:200]
            found[name] = Group(name=name, desc=str(row.get("desc", ""))[:200], ranks=_ranks(row.get("ranks")))
    # A backend that describes nothing writes one group without a name or ranks.
    return {name: group for name, group in found.items() if name or group.ranks}


def _ranks(value: object) -> tuple[int, ...]:
    if isinstance(value, str):
        return tuple(int(n) for n in _NUMBER.findall(value[: 8 * _MAX_RANKS])[:_MAX_RANKS])
    if isinstance(value, list | tuple) and len(value) <= _MAX_RANKS:
        return tuple(n for n in value if integer(n) is not None and 0 <= n < _HIGHEST_RANK)
    return ()


def _statuses(value: object) -> dict[str, Status]:
    if not isinstance(value, dict) or len(value) > _MAX_GROUPS:
        return {}
    return {str(key): _status(row) for key, row in value.items() if isinstance(row, dict)}


def _status(row: Mapping[str, Any]) -> Status:
    def count(name: str) -> int:
        value = integer(row.get(f"last_{name}_collective"))
        return -1 if value is None else value

    return Status(enqueued=count("enqueued"), started=count("started"), completed=count("completed"))


def integer(value: object) -> int | None:
    """A whole number of at most 63 bits, also one written as text (JSON dumps do that)."""
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool) and -_LARGEST <= value <= _LARGEST
    return value if is_number and isinstance(value, int) else None


def _by_name(
    statuses: Mapping[str, Status], ids: Mapping[str, str], described: Mapping[str, Group]
) -> dict[str, Status]:
    """Counters by group name. They are kept by a number that counts the groups of this process in order of creation,
    which an entry may tie to a name; names that are numbers follow the same order.
    """
    found = {ids[key]: status for key, status in statuses.items() if key in ids}
    if len(statuses) != len(described):
        return found
    if len(statuses) == 1:
        return {next(iter(described)): next(iter(statuses.values()))}
    if not all(name.isdigit() for name in [*statuses, *described]):
        return found
    pairs = dict(zip(sorted(statuses, key=int), sorted(described, key=int), strict=True))
    if any(pairs.get(key, name) != name for key, name in ids.items()):
        return found
    return {name: statuses[key] for key, name in pairs.items()}


def _all_names(
    rows: Sequence[Mapping[str, Any]], described: Mapping[str, Group], statuses: Mapping[str, Status]
) -> Iterator[tuple[str, str]]:
    seen = {name: group.desc for name, group in described.items()}
    for name, desc in map(_names, rows):
        seen.setdefault(name, desc)
    for name in statuses:
        seen.setdefault(name, "")
    yield from seen.items()


def _group(name: str, desc: str, described: Mapping[str, Group], statuses: Mapping[str, Status]) -> Group:
    ranks = described[name].ranks if name in described else ()
    return Group(name=name, desc="" if desc == "undefined" else desc, ranks=ranks, status=statuses.get(name))


def _work(row: Mapping[str, Any], groups: Mapping[str, Group]) -> Work | None:
    group = groups[_names(row)[0]]
    is_p2p = row.get("is_p2p") is True
    seq = integer(row.get("p2p_seq_id" if is_p2p else "collective_seq_id", row.get("seq_id")))
    operation = read_operation(row.get("profiling_name"), row.get("input_sizes"))
    if seq is None:
        return None
    retired = row.get("retired") is True
    timeout = integer(row.get("timeout_ms"))
    return Work(
        group=group.name,
        seq=seq,
        is_p2p=is_p2p or operation.peer is not None,
        operation=operation,
        created=(integer(row.get("time_created_ns")) or 0) / 1e9,
        is_done=_is_done(row, operation, seq, is_p2p, group.status),
        is_started=row.get("state") == "started",
        is_retired=retired,
        numel_in=numel(row.get("input_sizes")),
        numel_out=numel(row.get("output_sizes")),
        types=_types(row),
        timeout_s=timeout / 1000.0 if timeout and timeout > 0 else None,
        frame=innermost(row.get("frames")),
    )


def _is_done(row: Mapping[str, Any], operation: Operation, seq: int, is_p2p: bool, status: Status | None) -> bool:
    """Whether the call has ended. Gloo never leaves `scheduled`: there it is done once it was retired or counted."""
    if row.get("state") == "completed" or row.get("time_discovered_completed_ns"):
        return True
    if operation.backend != "gloo":
        return False
    return row.get("retired") is True or (not is_p2p and status is not None and seq <= status.completed)


def _types(row: Mapping[str, Any]) -> tuple[str, ...]:
    value = row.get("input_dtypes")
    return tuple(str(t)[:40] for t in value[:64]) if isinstance(value, list | tuple) else ()
