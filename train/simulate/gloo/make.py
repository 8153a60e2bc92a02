"""From a job to the truth and the files of one whole run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from train.simulate.gloo import apart, calm, dumps, dying, late, links, render
from train.simulate.gloo.render import Layout, Line
from train.simulate.gloo.run import Run, make_run
from train.simulate.lines import Lines
from train.simulate.record import Notes, Record, Story, notes_of

#: How often a fault of a link happens between two nodes rather than inside one.
_SPLIT = 0.9
#: How many of the others run on two nodes.
_TWO_NODES = 0.3
#: How many runs talk through NCCL, whose watchdog ends a wait; the others through gloo.
_WATCHED = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What `incident.json` says beyond the id, the texts of the files by path below `logs/`, the corpus's notes."""

    truth: dict[str, object]
    files: dict[str, str]
    notes: Notes


def make(seed: str, label: str, cause: str | None, lines: Lines, *, train: bool, blind: bool) -> Made:
    """Simulate a run that failed for `cause`; the same arguments give the same bytes."""
    rng = Random(seed)
    story = Story(label=label, cause=cause)
    far = (label == "fabric_congestion" and rng.random() < _SPLIT) or cause in {"node_loss", "node_unhealthy"}
    nodes = 2 if far or rng.random() < _TWO_NODES else 1
    # Where one agent ends all ranks, the death of one leaves no wait that a watchdog could end.
    nccl = rng.random() < _WATCHED and label != "no_timeout" and (label != "rank_failure" or nodes > 1)
    run = make_run(
        rng,
        lines,
        story,
        train=train,
        blind=blind,
        nodes=nodes,
        everyone=0.75 if label == "uneven_sharding" else 0.45,
        least=3 if label in {"desync", "rank_failure"} and rng.random() < 0.9 else 2,
        nccl=nccl,
    )
    _act(run, label, cause)
    layout = render.pick_layout(run)
    records = render.shown(run, layout)
    placed = render.files(run, layout, records)
    texts = {name: "".join(f"{line.text}\n" for line in rows) for name, rows in sorted(placed.items())}
    damaged, recorded = render.damage(texts, rng), dumps.files(run)
    truth = _truth(run, layout, records, placed, "".join(texts.values()), recorded=bool(recorded))
    return Made(truth=truth, files={**damaged, **recorded}, notes=notes_of(records, label))


def _act(run: Run, label: str, cause: str | None) -> None:
    if label == "no_timeout":
        calm.quiet(run)
    elif label == "undetermined" or cause is None:
        calm.undetermined(run)
    elif label in {"straggler", "offload_latency"}:
        late.act(run, label, cause)
    elif label == "uneven_sharding":
        late.uneven(run, cause)
    elif label == "other":
        calm.other(run, cause)
    elif label == "desync":
        apart.desync(run, cause)
    elif label == "rank_failure":
        dying.failure(run, cause)
    else:
        links.fabric(run, cause)


def _truth(
    run: Run, layout: Layout, records: list[Record], placed: Mapping[str, list[Line]], text: str, *, recorded: bool
) -> dict[str, object]:
    world, story = run.world, run.story
    quiet = story.label == "no_timeout"
    best = 0 if quiet or story.label == "undetermined" else max((record.strength for record in records), default=0)
    waiting = _waiting(run, layout, records)
    if recorded:
        waiting = sorted({*waiting, *run.stands} - run.unrecorded)
    clear = "yes" if quiet or best >= 3 else "partly" if best else "no"
    decisive = [
        f"{name}:{number}"
        for name, rows in sorted(placed.items())
        for number, line in enumerate(rows, 1)
        if line.decisive
    ]
    return {
        "label": story.label,
        "cause_id": story.cause if best else None,
        "cause": None,
        "initiating_ranks": _initiating(run, layout, records, waiting, recorded=recorded) if best else None,
        "waiting_ranks": (waiting or None) if not quiet else None,
        "world_size": _world_size(run, layout, records, text),
        "framework": world.framework,
        "launcher": "tee" if layout.kind == "tee" else world.launcher,
        "torch": world.torch.text,
        "collective": story.collective,
        "timeout_s": world.timeout_s,
        "decisive_lines": decisive[-12:] if best else [],
        "determinable_from_log": clear,
        "alt_label": story.alt_label,
        "hung": False,
        "source": "simulated",
    }


def _waiting(run: Run, layout: Layout, records: list[Record]) -> list[int]:
    """Ranks that a reader can see waiting: an older release tells them apart by the stream alone."""
    plain = layout.kind in {"console", "filtered"} or run.world.nodes > 1
    if plain and not run.world.hooked:
        return []
    return sorted({record.rank for record in records if record.role == "wait" and record.rank is not None})


def _initiating(
    run: Run, layout: Layout, records: list[Record], waiting: list[int], *, recorded: bool
) -> list[int] | None:
    """The guilty ranks if only they do not wait, or if a line or a dump of theirs tells who they are."""
    guilty = run.story.initiating
    if not guilty or run.story.label in {"fabric_congestion", "other"}:
        return None
    only = set(run.rest(guilty)) <= set(waiting) and len(waiting) > 0
    labelled = layout.kind in {"tree", "tee"}
    told = any(
        record.strength >= 2
        and (
            record.channel == "launcher"
            or (record.rank in guilty and (labelled or record.rank == 0 or _ranked(run, record)))
        )
        for record in records
    )
    return sorted(guilty) if only or told or recorded else None


def _ranked(run: Run, record: Record) -> bool:
    return run.voice.ranked or bool(re.search(rf"\brank[ =:_]?{record.rank}\b", " ".join(record.lines), re.I))


def _world_size(run: Run, layout: Layout, records: list[Record], text: str) -> int | None:
    size = run.world.size
    stated = re.search(rf"world size {size}\b|\bof {size}\b|/{size} backend|(?:gloo|nccl), {size} ranks", text)
    ranks = {record.rank for record in records if record.rank is not None}
    table = {int(rank) for rank in re.findall(r"^  rank      : (\d+) ", text, re.M)}
    full = (len(ranks) == size and layout.kind in {"tree", "tee"}) or len(table) == size
    return size if stated or full else None
