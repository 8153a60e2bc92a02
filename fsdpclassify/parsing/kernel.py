"""Lines of the kernel, as dmesg, the journal and syslog print them.

What was corrected, what is bookkeeping and what merely came up makes no event. The name of an event tells
how much it means: `gpu`, `iommu`, `link`, `pcie` and `panic` are faults, all others are about a slow host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from fsdpclassify.parsing.rule import Rule
from fsdpclassify.parsing.signs import Sign, host_event, signs_rule
from fsdpclassify.parsing.xid import meaning_of_xid
from fsdpclassify.records import Event, Line

_XID = re.compile(r"NVRM: Xid \([^)]{0,80}\): (?P<code>\d{1,4})\b")


def _xid(match: re.Match[str], line: Line) -> Iterable[Event]:
    code = int(match["code"])
    known = meaning_of_xid(code)
    yield host_event(line, name=known.name, detail=f"Xid {code}: {known.meaning}", code=code)


_GPU = (
    # The text of an Xid line that says so is told by its number.
    Sign(name="gpu", pattern=r"(?<!, )GPU has fallen off the bus|GPU is lost", meaning="the GPU answers no more"),
    Sign(name="gpu", pattern=r"[Rr]m_?[Ii]nit_?[Aa]dapter failed", meaning="the driver cannot use this GPU"),
    Sign(
        name="gpu",
        pattern=r"nvidia-uvm: .{0,80}Encountered a global fatal error",
        meaning="the driver of unified memory gave up: all GPU work of the node stops",
    ),
    Sign(name="gpu", pattern=r"amdgpu[^\n]{0,60}GPU reset begin", meaning="the driver resets a GPU: its work is lost"),
    Sign(
        name="gpu", pattern=r"uncorrectable hardware error", meaning="the GPU reports an error that it cannot correct"
    ),
    Sign(name="gpu", pattern=r"GPU reset begin|VRAM is lost", meaning="a GPU was reset and lost its memory"),
    Sign(name="gpu", pattern=r"SXid \([^)]{0,60}\): \d{1,6}, Fatal", meaning="an NVSwitch reports a fatal error"),
)
_IOMMU = (
    Sign(
        name="iommu",
        pattern=r"IO_PAGE_FAULT|DMAR: \[DMA (?:Read|Write)",
        meaning="the IOMMU refused a transfer of a device: copies between devices do not arrive",
    ),
)
_LINK = (
    Sign(name="link", pattern=r": Link down\b|\bLink is Down\b", meaning="a network link went down"),
    Sign(name="link", pattern=r"link status (?:definitely )?down(?: again)?\b", meaning="a bonded link went down"),
    Sign(name="link", pattern=r"Cable (?:unplugged|error)", meaning="a network cable was lost or is faulty"),
    Sign(
        name="link",
        pattern=r"health compromised|health recovery failed|Health issue observed",
        meaning="the network card's firmware does not answer",
    ),
    Sign(
        name="link",
        pattern=r"TX timeout (?:detected|on queue)|transmit queue \d{1,5} timed out|Keep alive watchdog timeout",
        meaning="the network card stopped sending",
    ),
    Sign(
        name="link",
        pattern=r"ports? ha(?:s|ve) been powered down due to (?:insufficient|unadvertised)|High temperature on sensors",
        meaning="the network card lacks power or is too hot and shuts its port",
    ),
)
_LINK_RULE = signs_rule(
    "link_fault",
    r": Link down|Link is Down|link status |Cable (?:unplugged|error)|health compromised|health recovery failed"
    r"|Health issue observed|TX timeout |transmit queue |Keep alive watchdog|been powered down due to"
    r"|High temperature on sensors",
    _LINK,
)
_UP = re.compile(r"^(?:.{0,120}kernel: )?\[ {0,8}(?P<seconds>\d{1,9})\.\d{6}\]")
#: Ports go down and up while a machine starts and its drivers set them up.
_STARTING_S = 120


def _link(match: re.Match[str], line: Line) -> Iterable[Event]:
    up = _UP.match(line.text)
    for found in _LINK_RULE.build(match, line):
        starting = up is not None and int(up["seconds"]) < _STARTING_S
        yield (
            replace(found, name="link_setup", detail="a port was set up while the machine started")
            if starting
            else found
        )


_PCIE = (
    Sign(
        name="pcie",
        pattern=r"Uncorrect(?:ed|able) \(Fatal\)",
        meaning="a PCIe device reported an error that it cannot recover from",
    ),
    Sign(name="pcie", pattern=r"pciehp[^\n]{0,60}(?:Link Down|Card not present)", meaning="a PCIe device is gone"),
    Sign(
        name="pcie_recovered",
        pattern=r"Uncorrect(?:ed|able) \(Non-Fatal\)",
        meaning="a PCIe device reported an error that it can recover from",
    ),
)
_STORAGE = (
    Sign(
        name="nvme",
        pattern=r"nvme\d{1,4}: I/O (?:tag )?\d{1,6} .{0,60}timeout|controller is down; will reset"
        r"|Device not ready; aborting reset",
        meaning="a local NVMe disk does not answer: reads and writes of the node stand",
    ),
    Sign(name="storage", pattern=r"I/O error, dev \w{1,20}, sector", meaning="a disk failed to read or write"),
    Sign(
        name="storage",
        pattern=r"nfs: server \S{1,120} not responding|This client was evicted by|in progress operations using this"
        r" service will|took too long: that node may be hung|session lost, hunting for new mon",
        meaning="a shared file system does not answer: whoever reads or writes it stands",
    ),
    Sign(
        name="storage", pattern=r"[Rr]emounting filesystem read-only", meaning="a file system can no longer be written"
    ),
)
_STALLS = (
    Sign(
        name="hung_task",
        pattern=r"INFO: task [^\s:]{1,40}:\d{1,9} blocked for more than \d{1,6} seconds",
        meaning="a process stands in a system call that does not return",
    ),
    Sign(
        name="lockup",
        pattern=r"soft lockup - CPU#\d{1,5} stuck|hard LOCKUP on cpu|self-detected stall on CPU"
        r"|detected stalls on CPUs",
        meaning="a processor of the node was stuck: everything on it stood",
    ),
    Sign(
        name="thermal",
        pattern=r"temperature (?:is )?above threshold, cpu clock (?:is )?throttled",
        meaning="the node's processor is too hot and was slowed down",
    ),
    Sign(
        name="host_memory",
        pattern=r"page allocation (?:failure: order|stalls for)|possible memory allocation deadlock"
        r"|(?:Read|Write)-error on swap-device",
        meaning="the node is short of memory",
    ),
    Sign(
        name="panic",
        pattern=r"Kernel panic - not syncing",
        meaning="the kernel of the node stopped: everything on it is gone",
    ),
    Sign(
        name="ecc",
        pattern=r"EDAC MC\d{1,3}: \d{1,6} UE|Sending SIGBUS to \S{1,60} due to hardware memory corruption",
        meaning="the node's main memory has an error that cannot be corrected",
    ),
)

RULES = (
    Rule(name="xid", anchor=r"NVRM: Xid", pattern=_XID, build=_xid),
    signs_rule(
        "gpu_lost",
        r"fallen off the bus|GPU is lost|nit_?[Aa]dapter failed|Encountered a global fatal|GPU reset begin"
        r"|VRAM is lost|uncorrectable hardware error|SXid \(",
        _GPU,
    ),
    signs_rule("iommu_fault", r"IO_PAGE_FAULT|DMAR: \[DMA ", _IOMMU),
    replace(_LINK_RULE, build=_link),
    signs_rule("pcie_fault", r"Uncorrect(?:ed|able) \(|pciehp", _PCIE),
    signs_rule(
        "storage_fault",
        r": I/O |controller is down; will reset|Device not ready; aborting|I/O error, dev|not responding"
        r"|client was evicted by|in progress operations using|took too long: that node|session lost, hunting"
        r"|emounting filesystem read-only",
        _STORAGE,
    ),
    signs_rule(
        "host_stall",
        r"blocked for more than|soft lockup - |hard LOCKUP|stalls? on CPU|above threshold, cpu clock"
        r"|page allocation |memory allocation deadlock|-error on swap-device|Kernel panic - |EDAC MC"
        r"|hardware memory corruption",
        _STALLS,
    ),
)
