"""What else the log states: the world size, stacks that stand in a collective, the phrases that state a hang."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fsdpclassify.parsing.rule import Rule, event, simple
from fsdpclassify.records import Event, EventKind, Line

_WORLD = re.compile(
    r"(?:\bworld[_ ]size['\"]?\W{1,3}|WORLD_SIZE=|Starting with |distributed_world_size\W{1,3}|MEMBER: \d+/"
    r"|[Nn]um[_ ]processes['\"]?\W{1,3})(?P<total>\d{1,6})\b"
)
_COLLECTIVE_FRAME = (
    r"(?:\bbarrier|all_reduce|all_gather\w*|reduce_scatter\w*|broadcast\w*|wait_for_everyone|all_to_all\w*)"
    r" \((?:[\w./-]*/)?(?:torch/distributed/|accelerate/)"
)
_PHRASES = re.compile(
    r"[Aa]ll[Gg]ather timed out waiting for work on rank (?P<r1>\d+)"
    r"|FSDP forward pass hangs at param all-gather: wait\(\) never completes on rank (?P<r2>\d+)"
    r"|(?P<p3>NCCL timeout error during FSDP parameter shard collection)"
    r"|(?P<p4>FSDP reduce_scatter backward hook timed out waiting for gradient sync)"
)


def _phrase(match: re.Match[str], line: Line) -> Iterable[Event]:
    gather = match["p4"] is None
    yield event(
        EventKind.PHRASE,
        line,
        rank=match["r1"] or match["r2"] or line.rank,
        op="_ALLGATHER_BASE" if gather else "_REDUCE_SCATTER_BASE",
    )


_DEFAULT_GROUP = re.compile(r"\[PG (?:ID )?0 |PG Name: 0\b")


def _group_size(match: re.Match[str], line: Line) -> Iterable[Event]:
    """Options of a process group: only the size of the default group, the first one, is that of the world."""
    if _DEFAULT_GROUP.search(line.body, 0, 2000):
        yield event(EventKind.WORLD, line, rank=match["rank"], total=match["total"], name="declared")


RULES = (
    Rule(
        name="world_size",
        anchor=r"orld[_ ]size|WORLD_SIZE=|Starting with |MEMBER: |um[_ ]processes",
        pattern=_WORLD,
        build=simple(EventKind.WORLD, name="declared"),
    ),
    Rule(
        name="group_size",
        anchor=r"global rank: \d",
        pattern=re.compile(r"\bsize: (?P<total>\d{1,6}), global rank: (?P<rank>\d{1,6})"),
        build=_group_size,
    ),
    Rule(
        name="stack_in_collective",
        anchor=r"torch/distributed/|accelerate/",
        pattern=re.compile(_COLLECTIVE_FRAME),
        build=simple(EventKind.STACK_WAIT),
        detection=True,
    ),
    Rule(
        name="phrase",
        anchor=r"timed out waiting for|hangs at param all-gather|parameter shard collection",
        pattern=_PHRASES,
        build=_phrase,
        detection=True,
    ),
    Rule(
        name="zero_memory",
        anchor=r"CUDA memory 0 bytes",
        pattern=re.compile(r"[Rr]ank (?P<rank>\d+) shows CUDA memory 0 bytes allocated"),
        build=simple(EventKind.MEMORY, name="gpu_empty"),
    ),
)
