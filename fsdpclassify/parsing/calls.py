"""Tracebacks -> which collective a rank stood in: gloo's errors name none, but the Python frames above them do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fsdpclassify.records import Event, EventKind, Line

#: Public functions of torch.distributed and the operation that NCCL's lines print for them (log-formats §2).
_OPS = {
    "all_reduce": "ALLREDUCE",
    "all_gather": "ALLGATHER",
    "all_gather_object": "ALLGATHER",
    "all_gather_into_tensor": "_ALLGATHER_BASE",
    "all_gather_single": "_ALLGATHER_BASE",
    "_all_gather_base": "_ALLGATHER_BASE",
    "reduce_scatter": "REDUCE_SCATTER",
    "reduce_scatter_tensor": "_REDUCE_SCATTER_BASE",
    "reduce_scatter_single": "_REDUCE_SCATTER_BASE",
    "_reduce_scatter_base": "_REDUCE_SCATTER_BASE",
    "broadcast": "BROADCAST",
    "broadcast_object_list": "BROADCAST",
    "barrier": "BARRIER",
    "gather": "GATHER",
    "gather_object": "GATHER",
    "scatter": "SCATTER",
    "all_to_all": "ALLTOALL",
    "all_to_all_single": "ALLTOALL_BASE",
    "send": "SEND",
    "recv": "RECV",
}
_CALL = re.compile(r'torch/distributed/\S{1,80}", line \d+, in (\w{1,40})')
_FRAME = re.compile(r'^\s*File "')
_GROUP = re.compile(r"\b(?:process_)?group=(?!None\b)")
_KINDS = (EventKind.GLOO, EventKind.PEER_CLOSED)
_REACH = 40


def with_calls(events: Sequence[Event], lines: Sequence[Line]) -> list[Event]:
    """Gloo waits and closed peers with the operation of the innermost torch.distributed frame above them."""
    wanted = [e for e in events if e.kind in _KINDS and e.op is None and e.rank is not None]
    if not wanted:
        return list(events)
    index = {id(line): i for i, line in enumerate(lines)}
    found = {id(e): _call_above(lines, index.get(id(e.line), -1)) for e in wanted}
    shared = {call.op for call in found.values() if call and not call.apart}
    # Calls in different groups are never compared: one that nobody makes in the common group is left unnamed.
    ops = {key: call.op for key, call in found.items() if call and (not call.apart or not shared or call.op in shared)}
    return [replace(e, op=ops[id(e)]) if id(e) in ops else e for e in events]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """The operation, and whether the program named a group of its own for it."""

    op: str
    apart: bool


def _call_above(lines: Sequence[Line], at: int) -> _Call | None:
    """The call in the last traceback of the same rank that ends at line `at`; None without a frame of one."""
    if at < 0:
        return None
    own = lines[at]
    op, code = None, ""
    for line in reversed(lines[max(0, at - 4 * _REACH) : at]):
        if line.source != own.source or line.rank != own.rank:
            continue
        if line.body.startswith("Traceback (most recent"):
            break
        match = _CALL.search(line.body)
        if match:
            op = op or _OPS.get(match[1])
        elif op and _FRAME.match(line.body):
            is_library = "-packages/" in line.body
            return _Call(op=op, apart=not is_library and _GROUP.search(code) is not None)
        code = line.body
    return _Call(op=op, apart=False) if op else None
