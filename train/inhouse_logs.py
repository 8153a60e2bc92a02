"""Made-up logs of one company: five families of its own failures, told in words that no inventory holds.

`make` writes labelled incidents: real watchdog blocks, a few steps, what the house's services say on any day, and the
lines of one family on the rank that does not come. Ranks, numbers, layout and wording differ from one incident to the
next; incidents of another `part` print other wordings of a family too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import gmtime, strftime

_TIMEOUT_S = 600
_DAY = 1_772_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HouseFamily:
    """One failure: what the rank prints that does not come; the first wordings are told in both parts."""

    name: str
    label: str
    known: tuple[str, ...]
    new: tuple[str, ...]
    leaves: bool = False


FAMILIES = (
    HouseFamily(
        name="storage client",
        label="straggler",
        known=(
            "halyard: brick {n} of vault orlop is being rebalanced, read parked for {s} s",
            "halyard: orlop vault answers slowly: {s} s for {m} bricks",
            "halyard.reader: waiting on brick {n} (vault orlop), attempt {k}",
        ),
        new=(
            "halyard: still no brick {n} from vault orlop after {s} s",
            "halyard.reader: vault orlop rebalancing, {m} bricks to go",
        ),
    ),
    HouseFamily(
        name="scheduler",
        label="rank_failure",
        known=(
            "quaymaster: berth {n} recalled for tier ruby, worker put ashore",
            "quaymaster: tier ruby claims berth {n}; casting off this worker now",
            "quaymaster-porter: put ashore by order {n} (tier ruby)",
        ),
        new=(
            "quaymaster: this worker is put ashore, its berth {n} goes to tier ruby",
            "quaymaster-porter: casting off, berth {n} was recalled",
        ),
        leaves=True,
    ),
    HouseFamily(
        name="feature store",
        label="desync",
        known=(
            "mirepoix: shelf {n} gave its last tray at row {m}, this worker has none left",
            "mirepoix: no more trays on shelf {n}, {m} rows served, closing the serving",
            "mirepoix.client: shelf {n} is empty for this worker while others have {k} trays",
        ),
        new=(
            "mirepoix: last tray of shelf {n} served to this worker, others still have {k}",
            "mirepoix.client: serving closed at row {m}: shelf {n} holds no tray for this worker",
        ),
    ),
    HouseFamily(
        name="licence daemon",
        label="licence_wait",
        known=(
            "tollgate: all {k} seats for solver kestrel are taken, we stand at place {m} of the queue",
            "tollgate: seat for kestrel not granted yet, asked {k} times in {s} s",
            "tollgated: kestrel seat pending since {s} s",
        ),
        new=(
            "tollgate: standing in the queue for a kestrel seat, place {m}",
            "tollgated: {k} seats of kestrel, none free for {s} s",
        ),
    ),
    HouseFamily(
        name="power manager",
        label="power_capped",
        known=(
            "dimmerd: tray {k} over its budget, boards held at {m} W until the row cools",
            "dimmerd: budget of row {k} cut, this board now runs at {m} W",
            "dimmer-porter: board dimmed to {m} W by row governor {n}",
        ),
        new=(
            "dimmerd: row governor {n} dims this board to {m} W",
            "dimmer-porter: row {k} over budget, board stays at {m} W",
        ),
    ),
)

#: What the same services say on any day, on every rank.
_DAILY = (
    "halyard: vault orlop mounted, {m} bricks listed",
    "halyard.reader: brick {n} read in {k} ms",
    "quaymaster: berth {n} assigned, tier jade",
    "mirepoix: shelf {n} opened, {m} trays",
    "tollgate: seat for kestrel granted in {k} ms",
    "dimmerd: row governor reports {m} W, within budget",
    "berthlog: heartbeat {n} ok",
)
_WATCHDOG = (
    "[PG ID 0 PG GUID 0(default_pg) Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={q},"
    " OpType={op}, NumelIn={numel_in}, NumelOut={numel_out}, Timeout(ms)={t}) ran for {ran} milliseconds before timing"
    " out.",
    "[PG ID 0 PG GUID 0(default_pg) Rank {r}] Timeout at NCCL work: {q}, last enqueued NCCL work: {q}, last completed"
    " NCCL work: {p}.",
    "[PG ID 0 PG GUID 0(default_pg) Rank {r}] Some NCCL operations have failed or timed out. Due to the asynchronous"
    " nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.",
    "[PG ID 0 PG GUID 0(default_pg) Rank {r}] To avoid data inconsistency, we are taking the entire process down.",
)
_LINES = (632, 2271, 681, 695)
_OPS = (("_ALLGATHER_BASE", 4096, 16384), ("_REDUCE_SCATTER_BASE", 16384, 4096), ("ALLREDUCE", 2048, 2048))


def make(root: Path, part: str, count: int, families: Sequence[HouseFamily] = FAMILIES) -> list[Path]:
    """Write `count` incidents a family below `root`; any `part` but `given` tells most of them in new wordings."""
    made = []
    for family in families:
        for number in range(count):
            rng = Random(f"{part}:{family.name}:{number}")
            name = family.name.replace(" ", "-")
            wordings = family.known if part == "given" else family.known[:1] + family.new
            made.append(_written(root / f"{part}-{name}-{number}", family, wordings, number, rng))
    return made


def make_silent(root: Path, count: int) -> list[Path]:
    """Incidents in which only the daily lines stand beside the watchdog's: no cause can be told."""
    nothing = HouseFamily(name="silent", label="undetermined", known=(), new=())
    return [_written(root / f"silent-{n}", nothing, (), n, Random(f"silent:{n}")) for n in range(count)]


def jargon(count: int, rng: Random) -> list[str]:
    """So many lines that the services of a house say on any day."""
    return [_filled(rng.choice(_DAILY), rng) for _ in range(count)]


def is_new(folder: Path) -> bool:
    """Whether an incident tells its cause in a wording that no given incident has."""
    return bool(json.loads((folder / "incident.json").read_text())["new_wording"])


def _written(folder: Path, family: HouseFamily, wordings: Sequence[str], number: int, rng: Random) -> Path:
    told = wordings[number % len(wordings)] if wordings else None
    files = _files(family, told, rng)
    for name, text in files.items():
        path = folder / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    content = {"schema_version": 1, "id": folder.name, "label": family.label, "new_wording": told in family.new}
    (folder / "incident.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return folder


def _files(family: HouseFamily, told: str | None, rng: Random) -> Mapping[str, str]:
    """The lines of every rank in one file, or one file a rank; lines may say nothing about who prints them."""
    world, begun = rng.choice((4, 8, 16)), _DAY + rng.randrange(10**6)
    absent, form = rng.randrange(world), rng.choice(_FORMS)
    lines: list[tuple[float, int, str]] = []
    for rank in range(world):
        lines += [(t, rank, form(t, rank, text)) for t, text in _day(rank, begun, rng)]
        if rank == absent and told is not None:
            lines += [(t, rank, form(t, rank, text)) for t, text in _failure(told, begun + 60, rng)]
    end, sequence, op = begun + 60 + _TIMEOUT_S, rng.randrange(200, 9000), rng.choice(_OPS)
    for rank in range(world):
        if rank != absent:
            lines += [(end + rank % 2, rank, text) for text in _block(rank, end + rank % 2, sequence, op)]
        elif family.leaves:
            lines.append((begun + 75, rank, form(begun + 75, rank, "trainer: leaving with code 0")))
    lines.sort(key=lambda line: line[0])
    if rng.random() < 0.5:
        return {"train.log": "".join(f"{text}\n" for _, _, text in lines)}
    ranks = {rank: [text for _, r, text in lines if r == rank] for rank in range(world)}
    return {f"rank_{rank}.log": "".join(f"{text}\n" for text in texts) for rank, texts in ranks.items()}


def _day(rank: int, begun: float, rng: Random) -> list[tuple[float, str]]:
    daily = [(begun + rng.randrange(20), _filled(text, rng)) for text in rng.sample(_DAILY, rng.randrange(3, 7))]
    steps = [(begun + 20 + 5 * i, f"trainer: step {i + 40} loss {3 - rank / 50 - i / 20:.3f}") for i in range(7)]
    return sorted(daily) + steps


def _failure(told: str, begun: float, rng: Random) -> list[tuple[float, str]]:
    """One to three lines of the wording, with numbers of their own."""
    return [(begun + 2 + 30 * i, _filled(told, rng)) for i in range(rng.randrange(1, 4))]


def _filled(text: str, rng: Random) -> str:
    spans = {"n": (10**3, 10**6), "m": (40, 700), "s": (9, 300), "k": (2, 30)}
    return text.format(**{slot: rng.randrange(*span) for slot, span in spans.items()})


def _block(rank: int, time: float, sequence: int, op: tuple[str, int, int]) -> list[str]:
    stamp = strftime("E%m%d %H:%M:%S", gmtime(time)).replace("E0", "E")
    head = f"[rank{rank}]:[{stamp}.{(rank * 7919) % 10**9:09d} ProcessGroupNCCL.cpp:"
    name, numel_in, numel_out = op
    texts = [
        text.format(
            r=rank,
            q=sequence,
            p=sequence - 1,
            t=_TIMEOUT_S * 1000,
            ran=_TIMEOUT_S * 1000 + rank,
            op=name,
            numel_in=numel_in,
            numel_out=numel_out,
        )
        for text in _WATCHDOG
    ]
    return [f"{head}{line}] {text}" for line, text in zip(_LINES, texts, strict=True)]


def _plain(time: float, rank: int, text: str) -> str:
    return f"[rank{rank}]: {text}"


def _logged(time: float, rank: int, text: str) -> str:
    return f"{strftime('%Y-%m-%d %H:%M:%S', gmtime(time))},{rank:03d} INFO [rank {rank}] {text}"


def _numbered(time: float, rank: int, text: str) -> str:
    return f"{rank}: {strftime('%Y-%m-%d %H:%M:%S', gmtime(time))} {text}"


def _bare(time: float, rank: int, text: str) -> str:
    return f"{strftime('%Y-%m-%d %H:%M:%S', gmtime(time))} {text}"


_FORMS = (_plain, _logged, _numbered, _bare)
