"""The table of faults (`faults.toml`), checked while it is read."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("faults.toml")
#: Causes of a later split, made once the others had been scored and looked at; nothing but a last score may read it.
FRESH_TABLE = Path(__file__).with_name("fresh.toml")
FRESH = "lab_fresh"
SPLITS = ("lab_train", "lab_val", "lab_test", FRESH)
WRAPPERS = ("fsdp2", "fsdp1", "ddp")
#: Scripts are split as faults are: no script of a test recording was seen in training.
SCRIPTS: Mapping[str, tuple[str, ...]] = {
    "lab_train": ("pretrain", "finetune"),
    "lab_val": ("trainer",),
    "lab_test": ("titan", "recipe"),
    FRESH: ("minimal", "stage", "events", "iterations", "tutorial", "sft"),
}
#: The scripts of a fault that names none.
USUAL_SCRIPTS: Mapping[str, tuple[str, ...]] = {**SCRIPTS, "lab_test": ("titan",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One known cause. `ranks` are those that it acts on; `initiating` what a full log implies of them.

    `profile` goes to the script (`RUN_PROFILE`); `outside` names what the lab does to the run from outside
    once `trigger` (a regular expression) stands in a log. `sure` says by script whether a log can tell the cause.
    `runs` lists the recordings one by one (fields of `plan.Recording`); without it the plan makes the usual ones.
    """

    name: str
    label: str
    cause: str
    split: str
    cause_id: str | None = None
    ranks: tuple[int, ...] = ()
    initiating: tuple[int, ...] = ()
    profile: Mapping[str, Any] = field(default_factory=dict)
    outside: str | None = None
    trigger: str = ""
    wrappers: tuple[str, ...] = WRAPPERS
    scripts: tuple[str, ...] = ()
    layouts: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    sure: str = "partly"
    sure_in: Mapping[str, str] = field(default_factory=dict)
    alt_label: str | None = None
    decisive: str = ""
    transcribe: bool = False
    limit_s: float = 100.0
    world: int = 4
    runs: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise ValueError(f"fault {self.name}: unknown split {self.split}")
        if not set(self.wrappers) <= set(WRAPPERS):
            raise ValueError(f"fault {self.name}: unknown wrapper in {self.wrappers}")
        if not set(self.scripts) <= set(SCRIPTS[self.split]):
            raise ValueError(f"fault {self.name}: {self.scripts} are not scripts of {self.split}")
        if (self.split == FRESH) != bool(self.runs):
            raise ValueError(f"fault {self.name}: runs are listed in {FRESH} and nowhere else")


def load_faults(*paths: Path) -> tuple[Fault, ...]:
    """All faults in file order, by default of both tables.

    ValueError for an unknown key, split, wrapper or script, and for names used twice.
    """
    files = paths or (TABLE, FRESH_TABLE)
    found = tuple(_fault(entry) for path in files for entry in tomllib.loads(path.read_text())["fault"])
    names = [f.name for f in found]
    if len(set(names)) != len(names):
        raise ValueError(f"{files[-1].name}: a name is used twice")
    return found


def _fault(entry: Mapping[str, Any]) -> Fault:
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
    values.setdefault("initiating", values.get("ranks", ()))
    try:
        return Fault(**values)
    except TypeError as error:
        raise ValueError(f"fault {entry.get('name')}: {error}") from error
