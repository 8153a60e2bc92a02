"""What the inventory must hold at least, counted from the data: a table of targets and the shortfalls.

Input: an `Inventory`. Output: lines of text. `python -m train lines` prints the table; a shortfall is a problem.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from train.inventory import Family, Inventory

#: Evidence families a label needs; a timeout with another nameable cause comes in fewer kinds.
PER_LABEL, PER_OTHER = 100, 40
#: Evidence families every cause of the catalogue needs, so that a held-out part still leaves some on either side.
PER_CAUSE = 8
#: Lines that must not be taken for a cause: decoys and noise together.
HARMLESS = 400
EMITTERS = 30
#: Share of the programs' families whose wording can be looked up.
CHECKABLE = 0.60

#: Causes that public reports hardly ever show in a log, although clusters meet them: only the inventory teaches them.
RARELY_REPORTED: tuple[str, ...] = (
    "gpu_throttle", "power_cap", "slow_gpu", "pcie_degraded", "ecc_storm", "cpu_starved", "host_jitter", "host_hang",
    "host_pause", "gc_pause", "alloc_retry", "slow_disk", "pinned_memory", "nvme_swap", "host_swap", "numa_remote",
    "uvm_paging", "pcie_bandwidth", "link_flap", "mtu_mismatch", "pfc_storm", "rails", "gdr_off", "nic_firmware",
    "nic_hardware", "nic_reset", "nic_stall", "sm_change", "nvlink_down", "nvswitch", "pcie_errors", "mixed_gpus",
    "gpu_fault", "gpu_lost", "host_hw_error", "sdc", "preemption", "time_limit", "probe_kill", "node_unhealthy",
    "fd_exhausted", "disk_readonly", "clock_skew",
)  # fmt: skip

#: `source: nccl src/init.cc`, `source: torch 2.13.0 torch/…`, `documentation: NVIDIA Xid error catalogue`.
_CHECKABLE = re.compile(r"source: [\w.+-]+ \S|source: \S+$|documentation: \S+ \S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One number the inventory must reach. `rate` marks shares, which print as per cent."""

    name: str
    found: float
    least: float
    rate: bool = False

    @property
    def met(self) -> bool:
        """Whether the number is reached."""
        return self.found >= self.least

    def __str__(self) -> str:
        """The row of the table."""
        shape = "{:.0%}" if self.rate else "{:.0f}"
        return f"{self.name}: {shape.format(self.found)} (at least {shape.format(self.least)})"


def is_checkable(family: Family) -> bool:
    """Whether the provenance names a program with its file, or a document, where the wording can be looked up."""
    return _CHECKABLE.match(family.provenance) is not None


def checkable_share(inventory: Inventory) -> float:
    """Share of the programs' families that can be looked up. What a user's script says has no such place."""
    programs = [family for family in inventory.families if family.emitter != "user"]
    return sum(map(is_checkable, programs)) / max(1, len(programs))


def targets(inventory: Inventory) -> Iterator[Target]:
    """Every target, labels first, causes last."""
    families = inventory.families
    evidence = inventory.select("evidence")
    labels = Counter(family.label for family in evidence)
    for label in inventory.labels:
        least = PER_OTHER if label.id == "other" else PER_LABEL
        yield Target(name=f"evidence for {label.id}", found=labels[label.id], least=least)
    harmless = sum(family.role in ("decoy", "noise") for family in families)
    yield Target(name="decoys and noise", found=harmless, least=HARMLESS)
    yield Target(name="emitters", found=len({family.emitter for family in families}), least=EMITTERS)
    yield Target(name="checkable wordings of programs", found=checkable_share(inventory), least=CHECKABLE, rate=True)
    causes = Counter(family.cause for family in evidence)
    for cause in inventory.causes:
        yield Target(name=f"cause {cause.id}", found=causes[cause.id], least=PER_CAUSE)


def table(inventory: Inventory) -> Iterator[str]:
    """The targets as text: all but those of single causes, then the causes that public reports rarely show."""
    every = list(targets(inventory))
    yield from (f"target: {target}" for target in every if not target.name.startswith("cause "))
    counts = {target.name.removeprefix("cause "): target.found for target in every}
    rare = ", ".join(f"{name} {counts.get(name, 0):.0f}" for name in RARELY_REPORTED)
    yield f"causes that public reports rarely show, evidence families each (at least {PER_CAUSE}): {rare}"
    sources = Counter(family.provenance.partition(":")[0] for family in inventory.families)
    yield "by provenance: " + ", ".join(f"{name} {count}" for name, count in sources.most_common())


def shortfalls(inventory: Inventory) -> list[str]:
    """The targets that are not met, and rare causes that the catalogue does not know."""
    known = {cause.id for cause in inventory.causes}
    missing = [f"inventory: {name} is no cause of the catalogue" for name in RARELY_REPORTED if name not in known]
    return [*missing, *(f"inventory: {target}" for target in targets(inventory) if not target.met)]
