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
    r"|RayTaskError|ActorDied|ProcessRaised|ProcessExited"
)
#: What an exception says that reached a rank because its peers gave up.
_TEARDOWN = re.compile(
    r"communicator was aborted|Failed to recv, got 0 bytes|process group (?:has been|was|is) (?:aborted|destroyed|shut)"
)
_HANDLED = re.compile(r"Warning$")


def _exception(match: re.Match[str], line: Line) -> Iterable[Event]:
    name = match["name"]
    if _HANDLED.search(name) or _SECONDARY.search(name) or _TEARDOWN.search(match["detail"] or ""):
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
            r"GPU Hang|illegal memory access|device-side assert"
            r"|unspecified launch failure"
        ),
        pattern=re.compile(
            r"(?P<detail>GPU Hang|an illegal memory access|device-side assert"
            r"|unspecified launch failure)"
        ),
        build=simple(EventKind.HARDWARE, name="gpu"),
    ),
)
