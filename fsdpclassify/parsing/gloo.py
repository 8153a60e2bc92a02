"""Gloo transports, the TCP store and rendezvous: waits that ran out, peers that went away (log-formats §1.11-1.12)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fsdpclassify.parsing.rule import Rule, event, simple
from fsdpclassify.records import Event, EventKind, Line

_STORE = re.compile(
    r"(?:[Ww]ait timeout after (?P<ms>\d+) ?ms, keys: |Timeout waiting for key: \S+ after (?P<ms2>\d+) ms"
    r"|RuntimeError: Socket Timeout|waitForInput: (?:socket \S+.{0,160}?timed out after (?P<ms3>\d+)ms"
    r"|poll for socket .{0,200}?likely a timeout)"
    r"|The client socket has timed out after (?P<ms4>\d+)(?P<unit>ms|s) while trying to connect"
    r"|Timed out after (?P<sec>\d+) seconds waiting for clients\. (?P<joined>\d+)/(?P<total>\d+) clients joined"
    r"|Timed out initializing process group in store based barrier on rank:? ?(?P<barrier_rank>\d+)"
    r"|RendezvousTimeoutError)"
)


def _store(match: re.Match[str], line: Line) -> Iterable[Event]:
    millis = match["ms"] or match["ms2"] or match["ms3"]
    if match["ms4"]:
        millis = match["ms4"] if match["unit"] == "ms" else f"{match['ms4']}000"
    if match["sec"]:
        millis = f"{match['sec']}000"
    yield event(
        EventKind.STORE,
        line,
        rank=match["barrier_rank"] or line.rank,
        timeout_ms=millis,
        elapsed_ms=millis,
        total=match["total"],
        name="clients" if match["total"] else "store",
        detail=match[0][:120],
    )


RULES = (
    Rule(
        name="store_wait",
        anchor=(
            r"ait timeout after|Timeout waiting for key|Socket Timeout|waitForInput|client socket has timed out"
            r"|clients joined|store based barrier on rank|RendezvousTimeoutError"
        ),
        pattern=_STORE,
        build=_store,
        detection=True,
        joins=True,
    ),
    Rule(
        name="store_stack",
        anchor=r"d::TCPStore::do",
        pattern=re.compile(r"frame #\d+: c10d::TCPStore::do(?P<detail>Wait|Get)\("),
        build=simple(EventKind.STORE, name="store_stack"),
        detection=True,
    ),
    Rule(
        name="gloo_wait",
        anchor=r"Timed out waiting |Application timeout caused pair closure",
        pattern=re.compile(
            r"Timed out waiting (?P<elapsed_ms>\d+)ms for (?P<name>recv|send) operation"
            r"|Application timeout caused pair closure"
        ),
        build=simple(EventKind.GLOO),
        detection=True,
    ),
    Rule(
        name="gloo_peer",
        anchor=r"Connection closed by peer|reset by peer|Socket closed|connection abort|\] Write error",
        pattern=re.compile(
            r"gloo/\S+:\d+\] (?P<detail>Connection closed by peer|Socket closed"
            r"|Read error[^\n]{0,80}(?:reset by peer|connection abort)"
            r"|Write error[^\n]{0,80})"
        ),
        build=simple(EventKind.PEER_CLOSED, name="gloo"),
        detection=True,
    ),
    Rule(
        name="gloo_connect",
        anchor=r"Gloo connectFullMesh failed|\.cc:\d+\] [Cc]onnect",
        pattern=re.compile(
            r"(?P<detail>Gloo connectFullMesh failed|gloo/\S+\.cc:\d+\] (?:Connect timeout|connect[^\n]{0,80}"
            r"(?:Network is unreachable|No route to host|Connection timed out|Connection refused)))"
        ),
        build=simple(EventKind.TRANSPORT, name="gloo_connect"),
        detection=True,
    ),
    Rule(
        name="gloo_size",
        anchor=r"Received data size doesn't match|op\.preamble\.length",
        pattern=re.compile(r"Received data size doesn't match expected size|op\.preamble\.length <= op\.nbytes"),
        build=simple(EventKind.MISMATCH, name="gloo_size"),
        detection=True,
    ),
    Rule(
        name="store_gone",
        anchor=r"Failed to recv, got 0 bytes|sendBytes failed on|recvValue failed on",
        pattern=re.compile(r"(?P<detail>recvValue failed on|sendBytes failed on|Failed to recv, got 0 bytes)"),
        build=simple(EventKind.RANK_MAP, name="store_gone"),
    ),
)
