"""How busy the GPUs of a node were: CSV of `nvidia-smi --query-gpu` and tables of one's own.

In a collective a waiting GPU spins and shows 100 %; one that shows nothing beside busy peers has no work, or
its process never got that far. Of several samples the last few count, since the run stood when they were taken.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from fsdpclassify.parsing.blocks import Table
from fsdpclassify.parsing.devices import SLOWED, SLOWING
from fsdpclassify.parsing.signs import host_event
from fsdpclassify.records import Event, EventKind, Line

_IDLE, _BUSY = 5.0, 80.0
#: Memory in MiB at which a GPU is filled, and the share of the fullest one at which it is empty or is not.
_FULL = 1000.0
_EMPTY_SHARE, _FULL_SHARE = 0.02, 0.3
_SLOW_CLOCK = 0.75
_SAMPLES = 5
_ROWS = 8_000
_MOST_GPUS = 1024

_FIELDS = {
    "gpu": re.compile(r"^(?:index|gpu|gpu[_ ]?(?:id|index|idx)|device(?:[_ ]?id)?|local_rank)$"),
    "node": re.compile(r"^(?:host(?:_?name)?|node)$"),
    "rank": re.compile(r"^(?:global_)?rank$"),
    "util": re.compile(
        r"^(?:utilization[._]gpu|gpu[_ ]?util(?:ization)?|util(?:ization)?)(?: ?\[%\]| ?%|_pct|_percent)?$"
    ),
    "memory": re.compile(r"^memory\.used \[MiB\]$"),
    "mask": re.compile(r"^clocks_(?:event|throttle)_reasons\.active$"),
    "hot": re.compile(r"^clocks_(?:event|throttle)_reasons\.(?:hw_\w{1,30}|sw_thermal_slowdown)$"),
    "clock": re.compile(r"^clocks(?:\.current)?\.sm \[MHz\]$"),
}
_NUMBER = re.compile(r"^\s*(?:0x(?P<hex>[0-9A-Fa-f]{1,16})|(?P<value>\d{1,9}(?:\.\d{1,6})?))")


#: Which GPU: the node that the table names for it, and its number there.
_Key = tuple[str | None, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One GPU at one time; `rank` only where the table itself gives global ranks. Shares in %, memory in MiB."""

    line: Line
    gpu: int
    node: str | None = None
    rank: int | None = None
    util: float | None = None
    memory: float | None = None
    clock: float | None = None
    slowed: bool = False


def read_csv(lines: Sequence[Line]) -> Iterable[Event]:
    """Events of a CSV table; a second header begins a new sample of the same columns."""
    columns = _columns(lines[0].body)
    if not columns.keys() & {"util", "memory", "mask", "hot", "clock"}:
        return
    samples: list[Sample] = []
    width, row = lines[0].body.count(",") + 1, 0
    for line in lines[1:]:
        cells = [cell.strip() for cell in line.body.split(",")]
        if _CSV_HEADER.match(line.body):
            columns, width, row = _columns(line.body), len(cells), 0
        elif len(cells) == width and (sample := _sample(line, cells, columns, row)):
            samples.append(sample)
            row += 1
    yield from judged(samples)


def _columns(header: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for i, cell in enumerate(header.split(",")):
        for name, pattern in _FIELDS.items():
            if pattern.match(cell.strip().lower() if name in ("gpu", "node", "rank", "util") else cell.strip()):
                found.setdefault(name, []).append(i)
    return found


def _sample(line: Line, cells: Sequence[str], columns: dict[str, list[int]], row: int) -> Sample | None:
    values = {name: _number(cells[ids[0]]) for name, ids in columns.items()}
    mask = int(values.get("mask") or 0)
    hot = any(cells[i] == "Active" for i in columns.get("hot", ()))
    named = values.get("gpu")
    rank = values.get("rank")
    if "gpu" in columns and named is None:
        return None
    if all(values.get(name) is None for name in ("util", "memory", "clock", "mask")) and not hot:
        return None
    return Sample(
        line=line,
        node=cells[columns["node"][0]] if "node" in columns else None,
        gpu=int(named if named is not None else rank if rank is not None else row),
        rank=None if rank is None else int(rank),
        util=values.get("util"),
        memory=values.get("memory"),
        clock=values.get("clock"),
        slowed=hot or bool(mask & SLOWING),
    )


def _number(cell: str) -> float | None:
    match = _NUMBER.match(cell)
    if match is None:
        return None
    return float(int(match["hex"], 16)) if match["hex"] else float(match["value"])


def _end_of_run(tables: Sequence[Sequence[Sample]]) -> int:
    """How many samples of each GPU to take: whoever samples on when the run is over sees all GPUs idle."""
    rounds = {len(found) for found in tables}
    end = whole = max(rounds)
    while len(rounds) == 1 and end and all((found[end - 1].util or 0.0) <= _IDLE for found in tables):
        end -= 1
    return end or whole


_Last = dict[_Key, list[Sample]]


def judged(samples: Sequence[Sample], *, full: float = _FULL) -> Iterator[Event]:
    """What the last samples of all GPUs show together: `total` of an event is how many GPUs the table has.

    `full` is in the unit in which the table gives memory.
    """
    by_gpu: dict[_Key, list[Sample]] = {}
    for sample in samples:
        by_gpu.setdefault((sample.node, sample.gpu), []).append(sample)
    if not 1 < len(by_gpu) <= _MOST_GPUS:
        return
    end = _end_of_run(list(by_gpu.values()))
    last = {key: found[:end][-_SAMPLES:] for key, found in by_gpu.items()}
    for made in (*_idle(last), *_empty(last, full), *_slowed(last)):
        yield replace(made, total=len(last))


def _split(values: dict[_Key, float], low: float, high: float) -> list[_Key]:
    """Keys of at most half of the values that lie at or below `low` while all others reach `high`; [] otherwise."""
    below = [key for key, value in values.items() if value <= low]
    clear = all(value >= high for key, value in values.items() if value > low)
    return below if clear and 0 < 2 * len(below) <= len(values) else []


def _idle(last: _Last) -> Iterator[Event]:
    util = {key: max(shown) for key, found in last.items() if (shown := [s.util for s in found if s.util is not None])}
    for key in _split(util, _IDLE, _BUSY):
        text = f"GPU {key[1]} stands idle while the others are busy"
        yield _about(last[key][-1], EventKind.MEMORY, "idle", text)


def _empty(last: _Last, full: float) -> Iterator[Event]:
    memory = {key: found[-1].memory for key, found in last.items()}
    known = {key: value for key, value in memory.items() if value is not None}
    most = max(known.values(), default=0.0)
    for key in _split(known, _EMPTY_SHARE * most, max(full, _FULL_SHARE * most)):
        text = f"GPU {key[1]} holds no memory while the others are filled"
        yield _about(last[key][-1], EventKind.MEMORY, "gpu_empty", text)


def _slowed(last: _Last) -> Iterator[Event]:
    slow = [key for key, found in last.items() if any(s.slowed for s in found)]
    clocks = {key: found[-1].clock for key, found in last.items() if found[-1].clock}
    usual = statistics.median([c for c in clocks.values() if c]) if len(clocks) > 2 else 0.0
    for key, found in last.items():
        clock = found[-1].clock
        if key in slow:
            yield _about(found[-1], EventKind.HARDWARE, "thermal", SLOWED)
        elif clock and clock < _SLOW_CLOCK * usual and (found[-1].util or 0.0) > _IDLE:
            text = f"the clock of GPU {key[1]} runs at {clock:.0f} MHz, most others at {usual:.0f}"
            yield _about(found[-1], EventKind.HARDWARE, "thermal", text)


def _about(sample: Sample, kind: EventKind, name: str, detail: str) -> Event:
    made = host_event(sample.line, name=name, detail=detail, kind=kind, local_rank=sample.gpu)
    # The node in a column is not that of the line, by which devices are joined to ranks.
    joined = sample.rank is None and sample.node is None
    return replace(made, rank=sample.rank, local_rank=sample.gpu if joined else None)


CSV = Table(name="gpu_csv", read=read_csv, most=_ROWS, last=True)

_CSV_HEADER = re.compile(
    r"^(?=[\w .%\[\]]{1,60},).{0,400}?(?:utilization[._]gpu|gpu_util\w{0,12}(?=,|$)|memory\.used \[MiB\]"
    r"|clocks_(?:event|throttle)_reasons)"
)

RULES = (
    CSV.rule(
        anchor=r"utilization[._]gpu|gpu_util\w*(?:,|$)|memory\.used \[|clocks_(?:event|throttle)_reasons",
        pattern=_CSV_HEADER,
    ),
)
