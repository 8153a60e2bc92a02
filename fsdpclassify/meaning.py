"""What a timed-out operation usually is, in words (log-formats §2)."""

from __future__ import annotations

_MEANING = {
    "_ALLGATHER_BASE": "all-gather into one tensor: FSDP or ZeRO-3 gathering parameters",
    "_REDUCE_SCATTER_BASE": "reduce-scatter from one tensor: FSDP or ZeRO reducing gradients",
    "ALLGATHER": "all-gather of a list: metrics, object gathers, checkpoint planning",
    "REDUCE_SCATTER": "reduce-scatter of a list",
    "ALLREDUCE": "all-reduce: gradients, norms, losses or flags",
    "BROADCAST": "broadcast: initial parameters, buffers or objects from one rank",
    "REDUCE": "reduce to one rank",
    "GATHER": "gather to one rank: checkpoint planning, objects",
    "SCATTER": "scatter from one rank: checkpoint plans, objects",
    "ALLTOALL_BASE": "all-to-all: expert or sequence parallelism",
    "ALLTOALL": "all-to-all: expert or sequence parallelism",
    "COALESCED": "a coalesced batch: pipeline send/receive or several collectives in one",
    "SEND": "send to one peer: pipeline or context parallelism",
    "RECV": "receive from one peer: pipeline or context parallelism",
    "BARRIER": "barrier",
}


def meaning_of(op: str | None, numel_in: int | None) -> str | None:
    """The usual meaning of `op`; an all-reduce of one element is how NCCL prints a barrier."""
    if op is None:
        return None
    if op == "ALLREDUCE" and numel_in == 1:
        return "barrier, or an all-reduce of a single value"
    return _MEANING.get(op.upper())
