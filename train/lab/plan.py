"""Which recordings are made: each fault with its wrappers, scripts, layouts and seeds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from train.lab.faults import SCRIPTS, Fault

#: How the logs of a run reach the disk: torchrun's folder of streams, its prefixed console, its bare console,
#: its prefixed console of the first local rank alone.
LAYOUTS = ("tree", "tee", "console", "filtered")
_USUAL = ("tee", "tree", "console")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One run to be made. `id` is neutral: it tells neither the fault nor the label."""

    id: str
    fault: Fault
    wrapper: str
    script: str
    layout: str
    seed: int
    transcribed: bool = False

    @property
    def name(self) -> str:
        """The plain name, for the operator's eyes and `--only`."""
        voice = ".nccl" if self.transcribed else ""
        return f"{self.fault.name}.{self.wrapper}.{self.script}.{self.layout}.{self.seed}{voice}"


def plan(faults: Iterable[Fault]) -> list[Recording]:
    """All recordings: first one of each fault, then its second wrapper, and so on."""
    rows = [_recordings(fault, offset) for offset, fault in enumerate(faults)]
    longest = max((len(r) for r in rows), default=0)
    return [row[i] for i in range(longest) for row in rows if i < len(row)]


def _recordings(fault: Fault, offset: int) -> list[Recording]:
    scripts = fault.scripts or SCRIPTS[fault.split]
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
    return found


def _recording(
    fault: Fault, *, wrapper: str, script: str, layout: str, seed: int, transcribed: bool = False
) -> Recording:
    key = f"{fault.name}/{wrapper}/{script}/{layout}/{seed}/{transcribed}"
    return Recording(
        id=f"lab-{hashlib.sha256(key.encode()).hexdigest()[:8]}",
        fault=fault,
        wrapper=wrapper,
        script=script,
        layout=layout,
        seed=seed,
        transcribed=transcribed,
    )
