"""Which recordings are made: each fault with its wrappers, scripts, layouts and seeds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from train.lab.faults import SCRIPTS, USUAL_SCRIPTS, WRAPPERS, Fault

#: How the logs of a run reach the disk: torchrun's folder of streams, its prefixed console, its bare console,
#: its prefixed console of the first local rank alone.
LAYOUTS = ("tree", "tee", "console", "filtered")
#: Names of log files, as against dumps.
LOG_FILES = ("*.log", "*.out")
LAUNCHERS = ("torchrun", "srun", "files", "spawn")
DUMPS = ("json", "pickle", "none")
_USUAL = ("tee", "tree", "console")
#: World sizes of the second seeds, in turn; a fault takes the first from its place on that holds its ranks.
_WORLDS = (2, 3, 6, 2, 5, 3, 8, 2)
_SECOND_SEED = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One run to be made. `id` is neutral: it tells neither the fault nor the label.

    `launcher`: torchrun, srun (a process a rank, labelled), files (a process and a file a rank), spawn (by the script).
    `dumps`: json, pickle or none.
    """

    id: str
    fault: Fault
    wrapper: str
    script: str
    layout: str
    seed: int
    world: int
    transcribed: bool = False
    launcher: str = "torchrun"
    timeout_s: float = 8.0
    dumps: str = "json"

    @property
    def on_two_nodes(self) -> bool:
        """Whether the ranks are shared out to two network namespaces."""
        return (self.fault.outside or "").startswith(("net:", "node:"))

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that the fault acts on in this run: all, where it acts on all of the usual world."""
        return tuple(range(self.world)) if len(self.fault.ranks) == self.fault.world else self.fault.ranks

    @property
    def name(self) -> str:
        """The plain name, for the operator's eyes and `--only`."""
        voice = ".nccl" if self.transcribed else ""
        size = f".w{self.world}" if self.world != self.fault.world else ""
        return f"{self.fault.name}.{self.wrapper}.{self.script}.{self.layout}.{self.seed}{size}{voice}"


def plan(faults: Iterable[Fault]) -> list[Recording]:
    """All recordings: first one of each fault, then its second wrapper, and so on; last the second seeds."""
    rows = [_recordings(fault, offset) for offset, fault in enumerate(faults)]
    longest = max((len(r) for r in rows), default=0)
    return [row[i] for i in range(longest) for row in rows if i < len(row)]


def _recordings(fault: Fault, offset: int) -> list[Recording]:
    if fault.runs:
        return [_listed(fault, run) for run in fault.runs]
    scripts = fault.scripts or USUAL_SCRIPTS[fault.split]
    layouts = fault.layouts or _USUAL
    found = []
    for i in range(len(fault.wrappers)):
        found.append(
            _recording(
                fault,
                wrapper=fault.wrappers[(i + offset) % len(fault.wrappers)],
                script=scripts[(i + offset) % len(scripts)],
                layout=layouts[(i + offset // 2) % len(layouts)],
                seed=i,
            )
        )
    if fault.transcribe:
        wrapper = fault.wrappers[offset % len(fault.wrappers)]
        found.insert(1, _recording(fault, wrapper=wrapper, script=scripts[0], layout="tree", seed=7, transcribed=True))
    return [*found, _second_seed(fault, offset, scripts, layouts)]


def _listed(fault: Fault, run: Mapping[str, Any]) -> Recording:
    """A recording of the list of its fault. ValueError for what it does not know, TypeError for unknown keys."""
    values = {"layout": "console", "seed": 0, "world": fault.world, **run}
    key = "/".join([fault.name, *(f"{name}={values[name]}" for name in sorted(values))])
    found = Recording(id=_id(key), fault=fault, **values)
    known = (SCRIPTS[fault.split], WRAPPERS, LAUNCHERS, DUMPS)
    asked = (found.script, found.wrapper, found.launcher, found.dumps)
    if not all(value in choices for value, choices in zip(asked, known, strict=True)):
        raise ValueError(f"fault {fault.name}: one of {asked} is unknown")
    return found


def _second_seed(fault: Fault, offset: int, scripts: Sequence[str], layouts: Sequence[str]) -> Recording:
    """The wrapper of a fault's first recording again, with another seed, script, layout and world size."""
    return _recording(
        fault,
        wrapper=fault.wrappers[offset % len(fault.wrappers)],
        script=scripts[(offset + 1) % len(scripts)],
        layout=layouts[(1 + offset // 2) % len(layouts)],
        seed=_SECOND_SEED,
        world=_world(fault, offset),
    )


def _world(fault: Fault, offset: int) -> int:
    """Two nodes of two and a fault of a whole node keep their size."""
    if (fault.outside or "").startswith(("net:", "node:", "rendezvous")):
        return fault.world
    least = 2 if len(fault.ranks) == fault.world else max(fault.ranks, default=0) + 1
    turn = _WORLDS[offset % len(_WORLDS) :] + _WORLDS
    return next(size for size in turn if size >= max(least, 2))


def _recording(
    fault: Fault,
    *,
    wrapper: str,
    script: str,
    layout: str,
    seed: int,
    world: int | None = None,
    transcribed: bool = False,
) -> Recording:
    size = world or fault.world
    key = f"{fault.name}/{wrapper}/{script}/{layout}/{seed}/{transcribed}"
    key += f"/{size}" if size != fault.world else ""
    return Recording(
        id=_id(key),
        fault=fault,
        wrapper=wrapper,
        script=script,
        layout=layout,
        seed=seed,
        world=size,
        transcribed=transcribed,
    )


def _id(key: str) -> str:
    return f"lab-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
