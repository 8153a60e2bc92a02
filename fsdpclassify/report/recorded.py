"""What `inspect` shows of flight-recorder dumps: for each rank its groups' counters and its oldest call in flight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fsdpclassify.report.structured import Json, one_line
from fsdpclassify.report.wording import printable, rank_ranges, ranks_in_words

if TYPE_CHECKING:
    from fsdpclassify.recorder.collecting import Recorded
    from fsdpclassify.recorder.dumps import Status, Work
    from fsdpclassify.recorder.standing import Standing

_COLUMNS = ("version", "calls", "in flight", "oldest call in flight", "since")
_GROUP_COLUMNS = ("group", "enqueued", "started", "completed", "in flight")


#: So many lines of a table are looked through by eye, and so many runs of ranks in front of one.
_ROWS, _RUNS = 128, 8


def recorded_as_dict(recorded: Recorded, paths: Sequence[str], mask: Callable[[str], str]) -> Json:
    """The object `flight_recorder` of `inspect --json`; `paths` are the labels of the inputs."""
    front = recorded.front
    standing = front.cast.standing
    return {
        "initiating_ranks": list(front.initiating),
        "idle_ranks": list(front.idle),
        "stalled_ranks": list(front.stalled),
        "ranks_without_dump": _without(recorded),
        "dumps": [_dump(recorded, s, paths[recorded.sources[rank]], mask) for rank, s in standing.items()],
    }


def _without(recorded: Recorded) -> list[int]:
    """Ranks of described groups that left no dump."""
    cast = recorded.front.cast
    return sorted({r for group in cast.members.values() for r in group.ranks} - set(cast.standing))


def _dump(recorded: Recorded, standing: Standing, path: str, mask: Callable[[str], str]) -> Json:
    dump, oldest = standing.dump, standing.oldest
    wait = recorded.front.waits.get(standing.rank)
    return {
        "rank": standing.rank,
        "path": path,
        "version": ".".join(map(str, dump.version)),
        "calls": len(dump.works),
        "in_flight": len(standing.in_flight),
        "oldest": None if oldest is None else _call(recorded, oldest, mask),
        "waits_for": [] if wait is None else sorted({*wait.behind, *wait.absent}),
        "groups": [_group(recorded, standing, name) for name in sorted(dump.groups, key=_natural)],
    }


def _natural(name: str) -> tuple[int, str]:
    return (int(name) if name.isascii() and name.isdigit() and len(name) < 10 else 1 << 40, name)


def _call(recorded: Recorded, work: Work, mask: Callable[[str], str]) -> Json:
    from fsdpclassify.recorder.sentences import clock

    return {
        "op": work.operation.name or None,
        "group": one_line(recorded.front.cast.members[work.group].label),
        "seq": work.seq,
        "is_p2p": work.is_p2p,
        "state": "started" if work.is_started else "scheduled",
        "since": clock(work.created) if work.created else None,
        "frame": None if work.frame is None else one_line(mask(work.frame)),
    }


def _group(recorded: Recorded, standing: Standing, name: str) -> Json:
    group = standing.dump.groups[name]
    return {
        "group": one_line(group.label),
        "ranks": list(group.ranks),
        **_counts(recorded, standing.rank, name, group.status),
        "in_flight": sum(work.group == name for work in standing.in_flight),
    }


def _counts(recorded: Recorded, rank: int, name: str, status: Status | None) -> Json:
    """Counters as the process group kept them; without these, what the recorded calls show."""
    if status is not None:
        return {"enqueued": status.enqueued, "started": status.started, "completed": status.completed}
    cast = recorded.front.cast
    return {"enqueued": cast.enqueued(rank, name), "started": None, "completed": cast.shown_completed(rank, name)}


def is_tabled(event: Json) -> bool:
    """Whether an event of `inspect --json` says no more than the table of `render_recorded`."""
    return bool(event["kind"] == "flight_record" and event["facts"].get("name") in ("dump", "counters"))


def render_recorded(found: Json) -> list[str]:
    """The object of `recorded_as_dict` as lines; ranks about which the dumps say the same share a line.

    Groups in which no rank has anything in flight are left out, unless that is so in all of them.
    """
    lines = ["Flight recorder (times in UTC)"]
    for name in ("initiating_ranks", "ranks_without_dump"):
        lines.append(f"  {name.replace('_', ' '):<19} {ranks_in_words(found[name]) or 'none shown'}")
    summaries = {d["rank"]: _summary(d) for d in found["dumps"]}
    lines += ["", *_table(("ranks", *_COLUMNS), _alike(summaries)), ""]
    busy = {group["group"] for dump in found["dumps"] for group in dump["groups"] if group["in_flight"]}
    groups: dict[tuple[str, ...], list[int]] = {}
    for dump in found["dumps"]:
        for group in dump["groups"]:
            if not busy or group["group"] in busy:
                groups.setdefault(_group_cells(group), []).append(dump["rank"])
    rows = [(rank_ranges(ranks, _RUNS), *cells) for cells, ranks in groups.items()]
    return [*lines, *_table(("ranks", *_GROUP_COLUMNS), sorted(rows, key=lambda row: _natural(row[1].split("(")[0])))]


def _summary(dump: Json) -> tuple[str, ...]:
    oldest = dump["oldest"]
    call = (
        "-"
        if oldest is None
        else f"{oldest['op'] or 'a call'} seq {oldest['seq']} of {oldest['group']} ({oldest['state']})"
    )
    since = "-" if oldest is None else oldest["since"] or "-"
    return dump["version"], str(dump["calls"]), str(dump["in_flight"]), call, since


def _group_cells(group: Json) -> tuple[str, ...]:
    counts = (group[name] for name in ("enqueued", "started", "completed", "in_flight"))
    return (group["group"], *("-" if n in (None, -1) else str(n) for n in counts))


def _alike(rows: dict[int, tuple[str, ...]]) -> list[tuple[str, ...]]:
    alike: dict[tuple[str, ...], list[int]] = {}
    for rank, cells in rows.items():
        alike.setdefault(cells, []).append(rank)
    return [(rank_ranges(ranks, _RUNS), *cells) for cells, ranks in alike.items()]


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    table = [head, *(tuple(printable(cell) for cell in row) for row in rows[:_ROWS])]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    text = ["  " + "  ".join(map(str.ljust, line, widths)).rstrip() for line in table]
    return [*text, f"  … and {len(rows) - _ROWS:,} rows more; --json has every rank"] if len(rows) > _ROWS else text
