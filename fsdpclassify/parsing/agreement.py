"""Where ranks compared notes: desync reports, DETAIL fingerprints, monitoredBarrier, the checks of DDP and FSDP.

Formats: log-formats §1.9, §1.11, §1.13, §1.14. Ranks in these messages are ranks of the group, which is
the world wherever the message is of use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fsdpclassify.parsing.rule import Rule, event, simple
from fsdpclassify.records import Event, EventKind, Line

_JOINED = re.compile(
    r"\[(?P<list>\d+(?:, ?\d+)*)\] (?P<how>joined but didn't finish"
    r"|finished) collective #(?P<seq>\d+)(?P<behind>, but didn't join)?"
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


_PRINT = (
    r"CollectiveFingerPrint\((?:SequenceNumber=(?P<seq{n}>\d+),? ?)?OpType=(?P<op{n}>\w+)(?:,"
    r" ?TensorShape=\[(?P<shape{n}>[^\]]*)\])?"
)
_MISMATCH = re.compile(
    r"Detected mismatch between collectives on ranks\. Rank (?P<rank>\d+) is running collective: "
    + _PRINT.replace("{n}", "")
    + r".{0,900}?but Rank (?P<peer>\d+) is running collective: "
    + _PRINT.replace("{n}", "2")
)


def _mismatch(match: re.Match[str], line: Line) -> Iterable[Event]:
    same_seq = match["seq"] == match["seq2"]
    differs = ",".join(
        n
        for n, a, b in (
            ("seq", match["seq"], match["seq2"]),
            ("op", match["op"], match["op2"]),
            ("shape", match["shape"], match["shape2"]),
        )
        if a != b
    )
    yield event(
        EventKind.MISMATCH,
        line,
        rank=match["rank"],
        op=match["op"],
        seq=match["seq"],
        peer=match["peer"],
        name=match["op2"],
        detail=differs,
    )
    yield event(
        EventKind.STATUS,
        line,
        rank=match["peer"],
        op=match["op2"],
        seq=match["seq2"],
        name="fingerprint",
        detail=str(same_seq),
    )


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


RULES = (
    Rule(
        name="desync_report",
        anchor=r"collective #|lagging ranks|\] (?:started|finished) [A-Z_]",
        pattern=_JOINED,
        build=_joined,
    ),
    Rule(
        name="fingerprint_mismatch",
        anchor=r"Detected mismatch between collectives",
        pattern=_MISMATCH,
        build=_mismatch,
        detection=True,
        joins=True,
    ),
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
        anchor=(
            r"DDP expects same model|appears not to match sizes|Forward order differs across ranks"
            r"|DDP expects the same"
        ),
        pattern=re.compile(
            r"(?P<detail>DDP expects (?:the )?same model across all ranks"
            r"|appears not to match sizes of the same param in process 0"
            r"|Forward order differs across ranks: rank (?P<rank>\d+) is all-gathering)"
        ),
        build=simple(EventKind.MISMATCH),
        detection=True,
    ),
)
