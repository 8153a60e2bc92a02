"""Tracebacks -> which collective a rank stood in: gloo's errors name none, but the Python frames above them do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

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
_KINDS = (EventKind.GLOO, EventKind.PEER_CLOSED)
_REACH = 40


def with_calls(events: Sequence[Event], lines: Sequence[Line]) -> list[Event]:
    """Gloo waits and closed peers with the operation of the innermost torch.distributed frame above them."""
    wanted = [e for e in events if e.kind in _KINDS and e.op is None and e.rank is not None]
    if not wanted:
        return list(events)
    index = {id(line): i for i, line in enumerate(lines)}
    found = {id(e): _call_above(lines, index.get(id(e.line), -1)) for e in wanted}
    return [replace(e, op=found[id(e)]) if found.get(id(e)) else e for e in events]


def _call_above(lines: Sequence[Line], at: int) -> str | None:
    """The operation of the last traceback of the same rank that ends at line `at`; None without such a frame."""
    if at < 0:
        return None
    own = lines[at]
    for line in reversed(lines[max(0, at - 4 * _REACH) : at]):
        if line.source != own.source or line.rank != own.rank:
            continue
        if line.body.startswith("Traceback (most recent"):
            return None
        match = _CALL.search(line.body)
        if match and match[1] in _OPS:
            return _OPS[match[1]]
    return None
