"""What kills a process: exceptions, signals, device faults. Whether it came first is judged later, by clock."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fsdpclassify.parsing.rule import Rule, event, simple
from fsdpclassify.records import Event, EventKind, Line

_EXCEPTION = re.compile(
    r"^(?:E\s+)?(?P<name>(?:[A-Za-z_]\w{0,60}\.){0,9}[A-Z]\w{0,80}(?:Error|Exception|Interrupt|Exit|Iteration"
    r"|NotFound|Died|Crashed|Failure))(?: ?: ?(?P<detail>.{0,300})|\s*(?:\[repeated \d+x across cluster\]\s*)?$)"
)
#: Raised by the launcher about its children, or by the wait itself: never the reason why a rank left.
_SECONDARY = re.compile(
    r"ChildFailedError|SignalException|CalledProcessError|DistBackendError|DistStoreError|SystemExit"
    r"|RendezvousTimeout|BrokenPipe|ConnectionReset"
    r"|RayTaskError|ActorDied"
)
_HANDLED = re.compile(r"Warning$")


def _exception(match: re.Match[str], line: Line) -> Iterable[Event]:
    name = match["name"]
    if _HANDLED.search(name) or _SECONDARY.search(name):
        return
    yield event(EventKind.ERROR, line, name=name.rsplit(".", 1)[-1], detail=match["detail"])


RULES = (
    Rule(
        name="gpu_oom",
        anchor=r"CUDA out of memory|HIP out of memory|OutOfMemoryError",
        pattern=re.compile(
            r"(?:CUDA|HIP) out of memory\. Tried to allocate (?P<detail>[\d.]+ \w+)|OutOfMemoryError: (?:CUDA|HIP)"
        ),
        build=simple(EventKind.ERROR, name="OutOfMemoryError"),
    ),
    Rule(
        name="exception",
        anchor=r"Error|Exception|Interrupt|Exit|Iteration|NotFound|Died|Crashed|Failure",
        pattern=_EXCEPTION,
        build=_exception,
    ),
    Rule(
        name="fatal_logged",
        anchor=r"encountered a fatal error|Exception during training|Unhandled exception|Uncaught exception",
        pattern=re.compile(
            r"(?P<detail>encountered a fatal error|Exception during training|Unhandled exception|Uncaught exception)"
        ),
        build=simple(EventKind.ERROR, name="fatal"),
    ),
    Rule(
        name="fatal_signal",
        anchor=r"Fatal Python error: |\*\*\* SIG[A-Z]+ received",
        pattern=re.compile(
            r"(?:Fatal Python error: (?P<detail>Aborted|Segmentation fault|Bus error|[\w ]{3,40})"
            r"|\*\*\* (?P<name>SIG[A-Z]+) received)"
        ),
        build=simple(EventKind.SIGNAL),
    ),
    Rule(
        name="dataloader_worker",
        anchor=r"DataLoader worker \(pid",
        pattern=re.compile(
            r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) (?P<detail>is killed by signal: \w+|exited unexpectedly)"
        ),
        build=simple(EventKind.ERROR, name="DataLoaderWorker"),
    ),
    Rule(
        name="gpu_fault",
        anchor=(
            r"NVRM: Xid|fallen off the bus|GPU Hang|uncorrectable hardware error|GPU reset begin|VRAM is lost"
            r"|illegal memory access|device-side assert|unspecified launch failure"
        ),
        pattern=re.compile(
            r"NVRM: Xid \([^)]*\): (?P<code>\d+)|(?P<detail>fallen off the bus|GPU Hang"
            r"|uncorrectable hardware error|GPU reset begin|VRAM is lost"
            r"|an illegal memory access|device-side assert|unspecified launch failure)"
        ),
        build=simple(EventKind.HARDWARE, name="gpu"),
    ),
    Rule(
        name="iommu_fault",
        anchor=r"IO_PAGE_FAULT|DMAR: \[DMA ",
        pattern=re.compile(r"(?P<detail>IO_PAGE_FAULT|DMAR: \[DMA (?:Read|Write)\w*)"),
        build=simple(EventKind.HARDWARE, name="iommu"),
    ),
    Rule(
        name="link_fault",
        anchor=(
            r": Link down|link status definitely down|port module event|Port module event|health compromised"
            r"|TX timeout"
        ),
        pattern=re.compile(
            r"(?P<detail>: Link down|link status definitely down|health compromised|TX timeout (?:detected|on queue))"
        ),
        build=simple(EventKind.HARDWARE, name="link"),
    ),
)
