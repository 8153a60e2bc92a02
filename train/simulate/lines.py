"""The line inventory as the simulator uses it: which families a split may print, and a family as a record."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from random import Random

from train.inventory import Family, Inventory
from train.simulate import clock, tracebacks
from train.simulate.fitting import at_home, fits
from train.simulate.record import Record
from train.simulate.world import World
from train.slots import render

__all__ = ["Family", "Lines", "held_for", "owners"]

_STAMPS = ("{iso}", "{clock}", "{date}", "{syslog}", "{uptime}")
#: Emitters whose text passes through the script's own logger.
_LOGGED = frozenset({"user", "own words"})


def held_for(name: str) -> str:
    """Which split alone may use a family: `test` for about 15 %, `val` for about 10 %, else `train`."""
    place = int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) % 100
    return "test" if place < 15 else "val" if place < 25 else "train"


@cache
def owners(inventory: Inventory) -> dict[str, str]:
    """By the id of each family: the split it is held for.

    The end of a phase goes with its begin; families whose texts differ by numbers only go with the first of them.
    """
    first: dict[str, str] = {}
    found: dict[str, str] = {}
    for family in inventory.families:
        masks = [re.sub(r"\{\w+(?::[^}]*)?\}|\d+(?:\.\d+)?", "0", text) for text in family.texts]
        known = next((first[mask] for mask in masks if mask in first), family.closes or family.id)
        first |= {mask: known for mask in masks if mask not in first}
        found[family.id] = held_for(known)
    return found


@dataclass(slots=True, kw_only=True)
class Lines:
    """Families by role for one split (`train`, `val` or `test`); `strict` refuses every other family.

    Without `strict`, a split other than `train` may also use the families of training. Families of the causes
    `without` speak in other splits only.
    """

    inventory: Inventory
    split: str
    strict: bool = False
    without: frozenset[str] = frozenset()
    _by_cause: dict[str, list[Family]] = field(default_factory=dict)
    _by_role: dict[str, list[Family]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        held = owners(self.inventory)
        for family in self.inventory.families:
            if not self._allows(held[family.id]) or family.cause in self.without:
                continue
            if family.role == "evidence" and family.cause:
                self._by_cause.setdefault(family.cause, []).append(family)
            elif family.role != "evidence":
                self._by_role.setdefault(family.role, []).append(family)

    def usable(self, name: str) -> bool:
        """Whether this split may print a wording of the simulator's own with this name."""
        return self._allows(held_for(name))

    def _allows(self, held: str) -> bool:
        return held == self.split or (not self.strict and held == "train")

    def families(self) -> tuple[Family, ...]:
        """Every family that this split may print."""
        kept = (*self._by_cause.values(), *self._by_role.values())
        return tuple(family for families in kept for family in families)

    def has(self, cause: str) -> bool:
        """Whether any evidence for a cause is left in this split."""
        return bool(self._by_cause.get(cause))

    def evidence(
        self, rng: Random, label: str, cause: str, world: World, count: int, *, main: bool = True
    ) -> list[Family]:
        """Up to `count` families for a cause, the stronger ones more often, not the weak ones alone.

        Without `main` (rank 0 is not among the guilty) what only the main process prints stays out.
        """
        pool = [family for family in self._by_cause.get(cause, ()) if family.label == label]
        pool = [family for family in pool if main or family.channel != "main"] or pool
        fitting = [family for family in pool if fits(family, world)] or pool
        found = _draw(rng, fitting, count, [1 + 2 * family.strength for family in fitting])
        clear = [family for family in fitting if family.strength >= 2]
        if found and clear and max(family.strength for family in found) < 2 and rng.random() < 0.85:
            found[0] = rng.choice(clear)
        return found

    def raised(self, label: str, cause: str, world: World) -> list[Family]:
        """Families for a cause that are the last line of an exception of a guilty rank, which ends its process."""
        return [
            family
            for family in self._by_cause.get(cause, ())
            if family.label == label and family.who == "late" and family.channel == "rank"
            if _RAISED.match(family.template) and fits(family, world)
        ]

    def main_share(self, cause: str) -> float:
        """The share of a cause's families that only the main process prints."""
        pool = self._by_cause.get(cause, ())
        return sum(family.channel == "main" for family in pool) / max(1, len(pool))

    def decoys(self, rng: Random, label: str, world: World, count: int, *, borrowed: bool = False) -> list[Family]:
        """Decoys; with `borrowed` also evidence of another label, to be put where it means nothing."""
        pool = [
            family
            for family in self._by_role.get("decoy", ())
            if family.label != label and fits(family, world) and at_home(family, world)
        ]
        apart = {label, "other", *(("fabric_congestion",) if world.nodes == 1 else ())}
        causes = sorted(cause for cause, found in self._by_cause.items() if found[0].label not in apart)
        if borrowed and causes and rng.random() < 0.4:
            found = [
                family
                for family in self._by_cause[rng.choice(causes)]
                if family.strength < 3 and _survivable(family) and fits(family, world)
            ]
            found = [family for family in found if at_home(family, world)]
            return _draw(rng, found, 1, [1] * len(found)) + _draw(rng, pool, count - 1, [1] * len(pool))
        return _draw(rng, pool, count, [1] * len(pool))

    def voices(self, rng: Random, world: World) -> list[Family]:
        """The harmless lines that this run prints again and again: one or two voices beside its own."""
        pool = [
            family
            for family in self._by_role.get("noise", ())
            if family.channel in {"rank", "main"} and fits(family, world) and at_home(family, world)
        ]
        own = [family for family in pool if family.emitter in _LOGGED]
        emitters = sorted({family.emitter for family in pool} - _LOGGED)
        chosen = rng.sample(own, min(len(own), rng.choice((1, 1, 2, 2, 3))))
        for emitter in rng.sample(emitters, min(len(emitters), rng.choice((0, 1, 1, 2)))):
            lines = [family for family in pool if family.emitter == emitter]
            chosen += rng.sample(lines, min(len(lines), rng.choice((1, 1, 2, 3))))
        return chosen

    def place(self, rng: Random) -> dict[str, object]:
        """Values of the slots that the begin and the end of one phase share."""
        names = ("path", "file", "dataset", "model", "count")
        return {name: render(f"{{{name}}}", rng) for name in names}

    def phases(self, world: World) -> list[tuple[Family, tuple[Family, ...]]]:
        """Phase families that begin something in this run, each with those that end it."""
        every = [family for family in self._by_role.get("phase", ()) if fits(family, world)]
        every = [family for family in every if family.channel in {"rank", "main"} and at_home(family, world)]
        return [
            (begin, tuple(end for end in every if end.closes == begin.id)) for begin in every if begin.closes is None
        ]

    def of_role(self, rng: Random, role: str, world: World, count: int) -> list[Family]:
        """Families of another role (symptom, collateral)."""
        pool = [family for family in self._by_role.get(role, ()) if fits(family, world) and at_home(family, world)]
        return _draw(rng, pool, count, [1] * len(pool))

    def record(
        self,
        family: Family,
        rng: Random,
        world: World,
        rank: int,
        time: float,
        role: str,
        strength: int = 0,
        long_s: float | None = None,
        *,
        given: Mapping[str, object] | None = None,
        form: int | None = None,
    ) -> Record:
        """The family as printed by `rank` at a true time; `given` fixes slots, `form` one of its texts."""
        node = world.node_of(rank)
        known = {**context(world, rng, rank, world.shown(node, time), long_s), **(given or {})}
        drawn = rng.choice(family.texts) if rng.random() < 0.5 else family.template
        template = drawn if form is None else family.texts[form]
        follow = family.follow if template == family.template else ()
        texts = [render(text, rng, known) for text in (template, *follow)]
        lines = tuple(_frames(family, world, rng, _stamped(family, world, node, time, rng, template, texts)))
        return Record(
            time=time,
            lines=lines,
            role=role,
            rank=rank,
            node=node,
            channel=family.channel,
            prefix=_prefix(family, template, lines),
            open=_is_bar(lines[-1]) and rng.random() < 0.6,
            strength=strength,
            file=_file(family),
            origin=family.id,
            said=texts[0],
            speaks=family.label or "",
        )


#: What ends the process that prints it: it cannot stand in a run that went on.
_FATAL = re.compile(
    r"Error|Exception|Traceback|FATAL|SIG[A-Z]|(?i:killed|exit|crash|abort|died|dead|stops|unhandled|gone|lost|"
    r"leav|shut|terminat)"
)


#: The last line of a traceback.
_RAISED = re.compile(r"[\w.]{1,80}(?:Error|Exception)\b: ")


def _survivable(family: Family) -> bool:
    """Whether a run may print this and go on."""
    return not any(_FATAL.search(text) for text in (*family.texts, *family.follow))


def _draw(rng: Random, pool: list[Family], count: int, weights: Iterable[float]) -> list[Family]:
    left, scale = list(pool), list(weights)
    found: list[Family] = []
    while left and len(found) < count:
        at = rng.choices(range(len(left)), scale)[0]
        found.append(left.pop(at))
        scale.pop(at)
    return found


def context(world: World, rng: Random, rank: int, shown: float, long_s: float | None) -> dict[str, object]:
    """What the slots print for this rank of this world; the stamp is the local clock's."""
    node = world.node_of(rank)
    known: dict[str, object] = {
        "time": shown,
        "timeout_s": world.timeout_s,
        "rank": rank,
        "other_rank": (rank + rng.randrange(1, world.size)) % world.size,
        "local_rank": world.local(rank),
        "gpu": world.local(rank),
        "world": world.size,
        "host": world.hosts[node],
        "ip": world.ips[node],
        "pid": world.pids[rank],
        "step": max(1, world.step - rng.randrange(0, 3)),
        "epoch": world.step // max(1, world.steps // 8),
    }
    if long_s is not None:
        known["long"] = long_s
    return known


def _is_bar(text: str) -> bool:
    return "%|" in text and text.rstrip().endswith("]")


def _prefix(family: Family, template: str, lines: tuple[str, ...]) -> str:
    first = lines[0]
    if first.startswith("Traceback"):
        return "exc"
    plain = family.emitter in _LOGGED and len(lines) == 1 and family.channel in {"rank", "main"} and not _is_bar(first)
    bare = (
        first[:1].isalnum()
        and ": " not in first[:12]
        and not any(stamp in template[:24] for stamp in _STAMPS)
        and not template.startswith(("rank", "Rank", "INFO", "WARN", "ERROR", "DEBUG", "I{", "W{", "E{"))
    )
    return "user" if plain and bare else "raw"


def _stamped(
    family: Family, world: World, node: int, time: float, rng: Random, template: str, texts: list[str]
) -> list[str]:
    """System lines get a journal stamp unless the template brings its own."""
    if family.channel != "system" or any(stamp in template for stamp in _STAMPS) or template.startswith("["):
        return texts
    shown = world.shown(node, time)
    if world.agents[node] % 2:
        return [f"{clock.syslog(shown)} {world.hosts[node]} kernel: {text}" for text in texts]
    return [f"[{(shown - world.start) % 9e6 + 70000 + world.agents[node]:.6f}] {text}" for text in texts]


def _frames(family: Family, world: World, rng: Random, texts: list[str]) -> list[str]:
    """Frames get the stack they belong to: a traceback of a waiting rank, or a stack taken from outside."""
    first = texts[0]
    if first.startswith('  File "'):
        head = tracebacks.render(world, rng, tracebacks.outer(world, rng)[:1], "x")[:-1]
        tail = tracebacks.render(
            world, rng, tracebacks.inner_wait(world, rng, "ALLREDUCE", True), _wait_error(world, rng)
        )[1:]
        body = texts if len(texts) > 1 else [*texts, "    dist.barrier()"]
        return [*head, *body, *tail]
    if first.startswith("    ") and first.rstrip().endswith(")") and "(" in first and family.channel == "tool":
        return [f'Thread {world.pids[0]} (active): "MainThread"', *texts]
    return texts


def _wait_error(world: World, rng: Random) -> str:
    ms = world.timeout_s * 1000
    name = "torch.distributed.DistBackendError" if world.torch.rank >= 1 else "RuntimeError"
    return rng.choice(
        (
            "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out "
            f"waiting {ms}ms for recv operation to complete",
            f"{name}: Work WorkNCCL(SeqNum={rng.randrange(2, 9000)}, OpType=BROADCAST, Timeout("
            f"ms)={ms}) timed out in blocking wait.",
            f"RuntimeError: Work WorkNCCL(SeqNum={rng.randrange(2, 9000)}, OpType=ALLREDUCE, "
            f"Timeout(ms)={ms}) timed out in blocking wait.",
        )
    )


def _file(family: Family) -> str:
    return {"tool": "tool", "system": "system"}.get(family.channel, "")
