"""What the numbers of NVIDIA's Xid messages mean, whose fault they speak for, and which of them end anything.

Meanings follow the driver's public documentation. A number that is not listed is a fault of the GPU
without a meaning known here.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Names of HARDWARE events: a fault that takes a rank away, and what merely is reported beside a run.
FAULT, MEMORY_NOTE, CLEANUP, RECOVERY, LINK_NOTE = "gpu", "ecc", "cleanup", "recovery", "pcie_recovered"
_PROGRAM, _HARDWARE = "the program's fault as a rule", "the hardware's fault"


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """One number: `name` is that of its event, `meaning` stands behind `Xid <n>: ` in a report."""

    meaning: str
    name: str = FAULT


def _program(text: str, name: str = FAULT) -> Xid:
    return Xid(meaning=f"{text}; {_PROGRAM}", name=name)


def _hardware(text: str, name: str = FAULT) -> Xid:
    return Xid(meaning=f"{text}; {_HARDWARE}", name=name)


_NVLINK = _hardware("an NVLink of this GPU failed")
_FIRMWARE = _hardware("the GPU's firmware processor hangs or failed, and calls into the driver do not return")

XIDS: dict[int, Xid] = {
    13: _program("a kernel made an illegal access or instruction"),
    31: _program("the GPU was sent to an address that is not mapped"),
    32: _hardware("the command stream arrived damaged"),
    38: _hardware("the driver's firmware reported an error"),
    43: _program("the GPU stopped working for this program after an error of its own"),
    45: _program("work of a process that had already ended or failed was cleared away: a consequence", CLEANUP),
    48: _hardware("GPU memory has an error that its check bits cannot correct"),
    61: _hardware("a micro-controller of the GPU stopped at a breakpoint"),
    62: _hardware("a micro-controller of the GPU halted"),
    63: _hardware("a bad row of GPU memory was noted for replacement; the run goes on", MEMORY_NOTE),
    64: _hardware("a bad row of GPU memory could not be replaced"),
    69: _program("a kernel was set up with values that the GPU refuses"),
    74: _NVLINK,
    79: _hardware("the GPU has fallen off the bus (power, heat or PCIe) and answers no more"),
    92: _hardware("many corrected errors of GPU memory; nothing was lost", MEMORY_NOTE),
    94: _hardware("an uncorrectable error of GPU memory was contained: only the program that met it is ended"),
    95: _hardware("an uncorrectable error of GPU memory could not be contained: all programs on the GPU are lost"),
    109: _hardware("the GPU did not switch contexts in time"),
    110: _hardware("the GPU reported a security fault"),
    119: _FIRMWARE,
    120: _FIRMWARE,
    121: _hardware("errors on the link between processor and GPU were corrected", LINK_NOTE),
    136: _hardware("a link of the GPU could not be trained"),
    137: _program("a peer's memory was not reachable over NVLink: often the peer had died"),
    140: _hardware("GPU memory has an error that was not recovered from"),
    143: _hardware("the GPU could not be initialised"),
    **dict.fromkeys(range(144, 151), _NVLINK),
    154: Xid(meaning="the driver says what the GPU needs to recover; it follows on the fault itself", name=RECOVERY),
    155: _NVLINK,
    156: _hardware("a part of the GPU was noted for retirement; the run goes on", MEMORY_NOTE),
    157: _hardware("a row of GPU memory could not be replaced"),
    160: _hardware("a channel of GPU memory was noted for retirement; the run goes on", MEMORY_NOTE),
}
#: A GPU that is off the bus stays so until the next boot: a run that worked on it did so before.
OFF_THE_BUS = 79


def meaning_of_xid(code: int) -> Xid:
    """The entry of `code`, or a general one."""
    return XIDS.get(code, Xid(meaning="a fault of the GPU that the driver reports by its number alone"))
