"""Messages of torch's c10d: watchdog, status, dump, heartbeat, desync report, fingerprints (1.8 to 2.14).

Formats: log-formats §1. `[Rank N]` is the rank in a group; it is taken for the global rank only when
the line has no `[rankN]:` prefix and the group is the default one or not named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fsdpclassify.parsing.rule import Rule, event, simple
from fsdpclassify.records import Event, EventKind, Line

_GROUP = (
    r"(?:\[(?:PG (?:ID \d+ PG GUID )?(?P<guid>[\w.:-]+) ?(?:\((?P<desc>[^)\]]*)\))? )?(?:GUID )?Rank"
    r" (?P<grank>\d+)\]\s*)"
)
_WORK = re.compile(
    _GROUP + r"?(?:\[PG[^\]]*\]\s*)?(?:Watchdog caught collective operation timeout:\s*)?"
    r"Work[A-Z]*\((?P<args>(?:[^()]|\(ms\)){1,400})\)\s*(?P<how>timed out in blocking wait"
    r"|ran for (?P<ran>\d+) milliseconds)"
)
_ARG = re.compile(r"(SeqNum|OpType|NumelIn|NumelOut|Timeout\(ms\))=([\w-]+)")
_ARG_FIELD = {
    "SeqNum": "seq",
    "OpType": "op",
    "NumelIn": "numel_in",
    "NumelOut": "numel_out",
    "Timeout(ms)": "timeout_ms",
}

_ABORTED = re.compile(r"communicator was aborted on rank (\d{1,6})\b")


def _group_of(match: re.Match[str]) -> str | None:
    guid, desc = match.groupdict().get("guid"), match.groupdict().get("desc")
    if guid is None:
        return None
    return f"{guid}({desc})" if desc else guid


def _rank_of(match: re.Match[str], line: Line) -> int | None:
    """The global rank: the line's own, else the group's if the group can only be the world."""
    if line.rank is not None:
        return line.rank
    grank = match.groupdict().get("grank")
    if (aborted := _ABORTED.search(line.body, 0, 300)) is not None:
        return int(aborted[1])
    group = _group_of(match)
    world_like = group is None or group in ("0", "0(default_pg)") or "default" in group
    return int(grank) if grank is not None and world_like else None


def _timeout(match: re.Match[str], line: Line) -> Iterable[Event]:
    args = {_ARG_FIELD[k]: v for k, v in _ARG.findall(match["args"])}
    args = {k: v for k, v in args.items() if k == "op" or v.lstrip("-").isdigit()}
    yield event(
        EventKind.TIMEOUT,
        line,
        rank=_rank_of(match, line),
        group=_group_of(match),
        group_rank=match["grank"],
        elapsed_ms=match["ran"],
        name="watchdog" if match["ran"] else "blocking_wait",
        **args,
    )


_STATUS = re.compile(
    _GROUP + r"?\s*(?:failure detected by watchdog at work sequence id: (?P<seq>\d+) PG status: last enqueued work:"
    r" (?P<enq>-?\d+), "
    r"last completed work: (?P<done>-?\d+)"
    r"|(?:Timeout at NCCL work|Exception \(either an error or timeout\) detected by watchdog at work): (?P<seq2>\d+), "
    r"last enqueued NCCL work: (?P<enq2>-?\d+), last completed NCCL work: (?P<done2>-?\d+))"
)


def _status(match: re.Match[str], line: Line) -> Iterable[Event]:
    yield event(
        EventKind.STATUS,
        line,
        rank=_rank_of(match, line),
        group=_group_of(match),
        group_rank=match["grank"],
        seq=match["seq"] or match["seq2"],
        enqueued=match["enq"] or match["enq2"],
        completed=match["done"] or match["done2"],
    )


_DUMP = re.compile(
    _GROUP + r"?(?:Received a (?:global )?(?:dump signal|global timeout)(?: due to a collective timeout)? from"
    r" *(?P<who>this local rank|another rank|rank (?P<peer>\d+))(?:.{0,80}?Last enqueued NCCL work: (?P<enq>-?\d+), "
    r"last completed NCCL work: (?P<done>-?\d+))?"
    r"|(?P<observed>Observed flight recorder dump signal from another rank)"
    r"|(?P<first>First PG on this rank to signal dumping))"
)


def _dump(match: re.Match[str], line: Line) -> Iterable[Event]:
    own = match["who"] == "this local rank" or match["first"] is not None
    yield event(
        EventKind.DUMPING if own else EventKind.NOTIFIED,
        line,
        rank=_rank_of(match, line),
        group=_group_of(match),
        group_rank=match["grank"],
        peer=match["peer"],
        enqueued=match["enq"],
        completed=match["done"],
        name="own" if own else "other",
        # Only these texts say that a collective timed out; the short signals follow one.
        detail="states_timeout" if match["who"] else None,
    )


_HEARTBEAT = re.compile(
    _GROUP + r"?(?:\[PG[^\]]*\]\s*)?(?:ProcessGroupNCCL's watchdog got stuck for (?P<sec>\d+) seconds"
    r"|Heartbeat monitor timed out! Process will be terminated|NCCL monitor thread timeout"
    r"|First PG on this rank that detected no heartbeat of its watchdog"
    r"|Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang)"
)


def _heartbeat(match: re.Match[str], line: Line) -> Iterable[Event]:
    yield event(
        EventKind.HEARTBEAT,
        line,
        rank=_rank_of(match, line),
        group=_group_of(match),
        group_rank=match["grank"],
        elapsed_s=match["sec"],
    )


RULES = (
    Rule(name="watchdog_timeout", anchor=r"Work[A-Z]*\(", pattern=_WORK, build=_timeout, detection=True, joins=True),
    Rule(
        name="watchdog_status",
        anchor=r"detected by watchdog at work|Timeout at NCCL work",
        pattern=_STATUS,
        build=_status,
        joins=True,
    ),
    Rule(
        name="dump_signal",
        anchor=(
            r"Received a (?:global )?(?:dump signal|global timeout)|Observed flight recorder dump"
            r"|First PG on this rank to signal"
        ),
        pattern=_DUMP,
        build=_dump,
        detection=True,
        joins=True,
    ),
    Rule(
        name="heartbeat",
        anchor=(
            r"watchdog got stuck for|Heartbeat monitor timed out|NCCL monitor thread timeout"
            r"|no heartbeat of its watchdog|watchdog hang"
        ),
        pattern=_HEARTBEAT,
        build=_heartbeat,
        detection=True,
    ),
    Rule(
        name="watchdog_died",
        anchor=r"watchdog thread terminated with exception",
        pattern=re.compile(r"watchdog thread terminated with exception: (?P<detail>(?:CUDA|HIP) error[^.]*)"),
        build=simple(EventKind.ERROR, name="cuda_error"),
    ),
    Rule(
        name="watchdog_stack",
        anchor=r"c\d+d::ProcessGroupNCCL::",
        pattern=re.compile(
            r"c10d::ProcessGroupNCCL::(?P<detail>Watchdog::run|watchdogHandler|ncclCommWatchdog|workCleanupLoop"
            r"|HeartbeatMonitor)"
        ),
        build=simple(EventKind.WATCHDOG_ABORT),
        detection=True,
    ),
    Rule(
        name="aborted_communicator",
        anchor=r"communicator was aborted on rank ",
        pattern=re.compile(r"NCCL communicator was aborted on rank (?P<rank>\d{1,6})\b(?!.{0,300}Work[A-Z]{0,8}\()"),
        build=simple(EventKind.WATCHDOG_ABORT, name="aborted"),
        detection=True,
    ),
    Rule(
        name="timeout_watchdog_2",
        anchor=r"Timeout watchdog caught exception|Aborting process on rank ",
        pattern=re.compile(
            r"(?:Timeout watchdog caught exception|Aborting process on rank (?P<rank>\d+) due to timeout)"
        ),
        build=simple(EventKind.TIMEOUT, name="nccl2"),
        detection=True,
    ),
    Rule(
        name="bare_watchdog",
        anchor=r"Watchdog caught collective operation timeout",
        pattern=re.compile(r"(?:\[Rank (?P<rank>\d+)\] )?Watchdog caught collective operation timeout:?\s*$"),
        build=simple(EventKind.TIMEOUT, name="watchdog"),
        detection=True,
    ),
)
