"""NCCL, RCCL, libfabric and UCX: errors out of a collective, and transport faults (NCCL 2.5 to 2.30).

The printer of a transport error is not the guilty end; `-> N` chains only repeat the first WARN.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fsdpclassify.parsing.rule import Rule, event, simple
from fsdpclassify.records import Event, EventKind, Line

_IB = re.compile(
    r"NET/IB(?:/GIN)? ?: ?Got completion (?:from peer (?P<peer_addr>\S+) )?with (?:error (?P<a>\d+)"
    r"|status=(?:\w+\()?(?P<b>\d+)\)?)"
)


def _ib(match: re.Match[str], line: Line) -> Iterable[Event]:
    code = match["a"] or match["b"]
    # 5 is the flush of a queue pair that was already in error: noise behind the first completion.
    yield event(
        EventKind.TRANSPORT,
        line,
        name="ib_flush" if code == "5" else "ib_completion",
        code=code,
        detail=match["peer_addr"],
    )


_ERROR = re.compile(
    r"\[?(?P<own>\d+)?\]? ?(?:NCCL error in: \S+:\d+, (?P<text>[^,]{3,80})"
    r"|NCCL error: (?P<text2>[^,\n]{3,80}), NCCL version)"
)


def _nccl_error(match: re.Match[str], line: Line) -> Iterable[Event]:
    yield event(EventKind.NCCL_ERROR, line, detail=(match["text"] or match["text2"]).strip())


_SETUP = re.compile(
    r"\[(?P<rank>\d+)\] is setting up NCCL communicator and retr(?:ie|ei)ving ncclUniqueId from \[(?P<peer>\d+)\]"
    r"(?:.{0,160}?got error: (?P<why>[^.\n]{3,80}))?"
)


def _setup(match: re.Match[str], line: Line) -> Iterable[Event]:
    limit = re.search(r"after (\d+)ms", match["why"] or "")
    closed = re.search(r"reset by peer|Broken pipe|Connection was|closed", match["why"] or "", re.IGNORECASE)
    yield event(
        EventKind.PEER_CLOSED if closed else EventKind.STORE,
        line,
        rank=match["rank"],
        peer=match["peer"],
        timeout_ms=limit[1] if limit else None,
        elapsed_ms=limit[1] if limit else None,
        name="unique_id",
        detail=match["why"],
    )


_SOCKET = (
    r"(?:Call to (?:recv|send|connect)\b[^\n]{0,80}? failed ?: ?(?P<errno>[^\n]{3,60})|"
    r"Connect to \S+ failed ?: ?(?P<errno2>[^\n]{3,60})|"
    r"connect to \S+ returned (?P<errno3>[^,\n]{3,60}), exceeded error retry count)"
)


def _socket(match: re.Match[str], line: Line) -> Iterable[Event]:
    text = match["errno"] or match["errno2"] or match["errno3"] or ""
    closed = "reset by peer" in text or "Broken pipe" in text
    yield event(EventKind.PEER_CLOSED if closed else EventKind.TRANSPORT, line, name="socket", detail=text.strip())


def _named(match: re.Match[str], line: Line) -> Iterable[Event]:
    yield event(EventKind.TRANSPORT, line, name="transport", detail=match[0][:120])


RULES = (
    Rule(name="ib_completion", anchor=r"Got completion (?:from peer|with)", pattern=_IB, build=_ib, detection=True),
    Rule(
        name="nccl_error", anchor=r"NCCL error(?: in)?: ", pattern=_ERROR, build=_nccl_error, detection=True, joins=True
    ),
    Rule(
        name="nccl_setup_wait",
        anchor=r"is setting up NCCL communicator",
        pattern=_SETUP,
        build=_setup,
        detection=True,
        joins=True,
    ),
    Rule(
        name="nccl_socket",
        anchor=r"Call to (?:recv|send|connect)|Connect to |exceeded error retry count",
        pattern=re.compile(_SOCKET),
        build=_socket,
        detection=True,
    ),
    Rule(
        name="nccl_peer_closed",
        anchor=r"Connection closed by remote peer",
        pattern=re.compile(r"Connection closed by remote peer"),
        build=simple(EventKind.PEER_CLOSED, name="socket"),
        detection=True,
    ),
    Rule(
        name="local_peer_closed",
        anchor=r"Connection closed by localRank",
        pattern=re.compile(r"Connection closed by localRank (?P<local_rank>\d+)"),
        build=simple(EventKind.RANK_MAP, name="local_peer_closed"),
    ),
    Rule(
        name="ofi_error",
        anchor=r"NET/OFI ",
        pattern=re.compile(
            r"NET/OFI (?i:Request \S+ completed with error|Unable to insert remote address"
            r"|[^\n]{0,60}(?:Unresponsive remote|Unreachable remote)"
            r"|[^\n]{0,80}(?:RC: -?[1-9]\d*|error\b))"
        ),
        build=_named,
        detection=True,
    ),
    Rule(
        name="ucx_error",
        anchor=r"Transport retry count exceeded|Receive-no-ready retry count exceeded",
        pattern=re.compile(r"(?:Transport|Receive-no-ready) retry count exceeded"),
        build=_named,
        detection=True,
    ),
    Rule(
        name="nccl_warn_transport",
        anchor=r"NCCL WARN ",
        pattern=re.compile(
            r"NCCL WARN (?:\([^)]*\) )?(?:NET/Socket : (?:socket progress error|peer (?!\S+ message truncated))"
            r"|NET/IB ?: [^\n]{0,80}failed"
            r"|Call to ibv_\w+ failed|Bootstrap : no socket interface|NET/Socket : no interface|Timeout waiting for)"
        ),
        build=_named,
        detection=True,
    ),
    Rule(
        name="nccl_truncated",
        anchor=r"essage truncated : receiv",
        pattern=re.compile(r"[Mm]essage truncated : receiv(?:ing|ed) \d+ bytes instead of \d+"),
        build=lambda _, line: (event(EventKind.MISMATCH, line, name="nccl_size", detail="message truncated"),),
        detection=True,
    ),
    Rule(
        name="ib_async_event",
        anchor=r"Got (?:async|non-fatal async)|async fatal event",
        pattern=re.compile(
            r"(?P<detail>(?:Got (?:async (?:error |fatal )?event|non-fatal async event)"
            r"|async fatal event)[^\n]{0,60}(?:port error|fatal|error))"
        ),
        build=simple(EventKind.TRANSPORT, name="async_event"),
    ),
    Rule(
        name="comm_size",
        anchor=r" nranks ",
        pattern=re.compile(
            r"comm 0x[0-9a-f]+ rank (?P<rank>\d+) nranks (?P<total>\d+)(?:[^\n]{0,160}- (?P<name>Init START"
            r"|Init COMPLETE|Abort COMPLETE|Destroy COMPLETE))?"
        ),
        build=simple(EventKind.WORLD),
    ),
    Rule(
        name="comm_ready",
        anchor=r"Init COMPLETE",
        pattern=re.compile(r"Init COMPLETE"),
        build=simple(EventKind.RANK_MAP, name="init_complete"),
    ),
)
