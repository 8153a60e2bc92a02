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
    r"(?:\[(?:PG (?:ID \d+ PG GUID )?(?P<guid>[\w.:-]+) ?(?:\((?P<desc>[^)\]]*)\))? )?(?:GUID )?Rank (?P<grank>\d+)\]\s*)"
)
_WORK = re.compile(
    _GROUP + r"?(?:\[PG[^\]]*\]\s*)?(?:Watchdog caught collective operation timeout:\s*)?"
    r"Work[A-Z]*\((?P<args>(?:[^()]|\(ms\)){1,400})\)\s*(?P<how>timed out in blocking wait|ran for (?P<ran>\d+) milliseconds)"
)
_ARG = re.compile(r"(SeqNum|OpType|NumelIn|NumelOut|Timeout\(ms\))=([\w-]+)")
_ARG_FIELD = {"SeqNum": "seq", "OpType": "op", "NumelIn": "numel_in", "NumelOut": "numel_out", "Timeout(ms)": "timeout_ms"}

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
    _GROUP + r"?\s*(?:failure detected by watchdog at work sequence id: (?P<seq>\d+) PG status: last enqueued work: (?P<enq>-?\d+), "
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
    r"|(?P<observed>Observed flight recorder dump signal from another rank)|(?P<first>First PG on this rank to signal dumping))"
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


_RANK_LIST = re.compile(r"\[(\d+(?:, ?\d+)*)\]")
_JOINED = re.compile(
    r"\[(?P<list>\d+(?:, ?\d+)*)\] (?P<how>joined but didn't finish|finished) collective #(?P<seq>\d+)(?P<behind>, but didn't join)?"
    r"|ranks \[(?P<list2>\d+(?:, ?\d+)*)\] are the lagging ranks"
    r"|\[(?P<list3>\d+(?:, ?\d+)*)\] (?P<state>started|finished) (?P<op>[A-Z_]{4,})"
)


def _joined(match: re.Match[str], line: Line) -> Iterable[Event]:
    text = match["list"] or match["list2"] or match["list3"]
    lagging = match["list2"] is not None or match["behind"] is not None
    yield event(
        EventKind.JOINED,
        line,
        seq=match["seq"],
        op=match["op"],
        ranks=tuple(int(r) for r in text.replace(" ", "").split(",")),
        name="lagging" if lagging else ("state" if match["state"] else "joined"),
    )


_PRINT = r"CollectiveFingerPrint\((?:SequenceNumber=(?P<seq{n}>\d+),? ?)?OpType=(?P<op{n}>\w+)(?:, ?TensorShape=\[(?P<shape{n}>[^\]]*)\])?"
_MISMATCH = re.compile(
    r"Detected mismatch between collectives on ranks\. Rank (?P<rank>\d+) is running collective: "
    + _PRINT.replace("{n}", "")
    + r".{0,900}?but Rank (?P<peer>\d+) is running collective: "
    + _PRINT.replace("{n}", "2")
)


def _mismatch(match: re.Match[str], line: Line) -> Iterable[Event]:
    same_seq = match["seq"] == match["seq2"]
    differs = ",".join(
        n for n, a, b in (("seq", match["seq"], match["seq2"]), ("op", match["op"], match["op2"]), ("shape", match["shape"], match["shape2"])) if a != b
    )
    yield event(EventKind.MISMATCH, line, rank=match["rank"], op=match["op"], seq=match["seq"], peer=match["peer"], name=match["op2"], detail=differs)
    yield event(EventKind.STATUS, line, rank=match["peer"], op=match["op2"], seq=match["seq2"], name="fingerprint", detail=str(same_seq))


def _mismatch_stated(match: re.Match[str], line: Line) -> Iterable[Event]:
    """For a message whose fingerprints are cut off or of another form; the whole one has its own rule."""
    if _MISMATCH.search(match.string) is None:
        yield event(EventKind.MISMATCH, line)


_BARRIER = re.compile(
    r"(?:\[Rank (?P<own>\d+)\]: )?(?:Ranks? (?P<list>\d+(?:, ?\d+)*) failed to pass monitoredBarrier in (?P<ms>\d+) ms"
    r"|Rank (?P<zero>\d+) timed out in monitoredBarrier after (?P<ms2>\d+) ms"
    r"|Rank (?P<victim>\d+) successfully reached monitoredBarrier, but received errors)"
)


def _barrier(match: re.Match[str], line: Line) -> Iterable[Event]:
    missing = tuple(int(r) for r in (match["list"] or "").replace(" ", "").split(",") if r)
    yield event(
        EventKind.BARRIER,
        line,
        rank=match["victim"] or match["zero"] or match["own"] or line.rank,
        ranks=missing,
        timeout_ms=match["ms"] or match["ms2"],
        elapsed_ms=match["ms"] or match["ms2"],
        op="BARRIER",
    )


_WORLD = re.compile(
    r"(?:\bworld[_ ]size\W{1,3}|WORLD_SIZE=|Starting with |with |, size: |\bnranks |clients joined\. )(?P<n>\d{1,6})(?= processes\b|\b)"
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
        anchor=r"Received a (?:global )?(?:dump signal|global timeout)|Observed flight recorder dump|First PG on this rank to signal",
        pattern=_DUMP,
        build=_dump,
        detection=True,
        joins=True,
    ),
    Rule(
        name="heartbeat",
        anchor=r"watchdog got stuck for|Heartbeat monitor timed out|NCCL monitor thread timeout|no heartbeat of its watchdog|watchdog hang",
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
        pattern=re.compile(r"c10d::ProcessGroupNCCL::(?P<detail>Watchdog::run|watchdogHandler|ncclCommWatchdog|workCleanupLoop|HeartbeatMonitor)"),
        build=simple(EventKind.WATCHDOG_ABORT),
        detection=True,
    ),
    Rule(
        name="desync_report",
        anchor=r"collective #|lagging ranks|\] (?:started|finished) [A-Z_]",
        pattern=_JOINED,
        build=_joined,
    ),
    Rule(name="fingerprint_mismatch", anchor=r"Detected mismatch between collectives", pattern=_MISMATCH, build=_mismatch, detection=True, joins=True),
    Rule(
        name="mismatch_stated",
        anchor=r"Detected mismatch between collectives",
        pattern=re.compile(r"Detected mismatch between collectives on ranks"),
        build=_mismatch_stated,
        detection=True,
    ),
    Rule(name="monitored_barrier", anchor=r"monitoredBarrier", pattern=_BARRIER, build=_barrier, detection=True),
    Rule(
        name="cross_rank_check",
        anchor=r"DDP expects same model|appears not to match sizes|Forward order differs across ranks|DDP expects the same",
        pattern=re.compile(
            r"(?P<detail>DDP expects (?:the )?same model across all ranks|appears not to match sizes of the same param in process 0"
            r"|Forward order differs across ranks: rank (?P<rank>\d+) is all-gathering)"
        ),
        build=simple(EventKind.MISMATCH),
        detection=True,
    ),
    Rule(
        name="timeout_watchdog_2",
        anchor=r"Timeout watchdog caught exception|due to timeout - timeout watchdog detected",
        pattern=re.compile(r"(?:Timeout watchdog caught exception|Aborting process on rank (?P<rank>\d+) due to timeout)"),
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
