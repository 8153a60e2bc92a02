"""Names of recorded calls (`nccl:_all_gather_base`, `nccl:send 1->2`) in the spelling of c10d's own log lines."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SPELLING = {
    "all_reduce": "ALLREDUCE",
    "all_reduce_barrier": "ALLREDUCE",
    "allreduce_coalesced": "ALLREDUCE_COALESCED",
    "_all_gather_base": "_ALLGATHER_BASE",
    "all_gather_into_tensor": "_ALLGATHER_BASE",
    "all_gather": "ALLGATHER",
    "_reduce_scatter_base": "_REDUCE_SCATTER_BASE",
    "reduce_scatter_tensor": "_REDUCE_SCATTER_BASE",
    "reduce_scatter": "REDUCE_SCATTER",
    "_broadcast_oop": "_BROADCAST_OOP",
    "_reduce_oop": "_REDUCE_OOP",
    "coalesced": "COALESCED",
}
_ALL_TO_ALL = frozenset({"all_to_all", "all_to_allv", "all_to_all_single", "all_to_all_base"})
#: Calls whose ranks may rightly bring different sizes.
_UNEVEN = frozenset({"ALLGATHER", "REDUCE_SCATTER", "ALLTOALL", "ALLTOALL_BASE", "GATHER", "SCATTER", "SEND", "RECV"})
#: Calls that no rank can complete before every rank has joined.
_SYMMETRIC = frozenset(
    {
        "ALLREDUCE", "_ALLGATHER_BASE", "ALLGATHER", "_REDUCE_SCATTER_BASE", "REDUCE_SCATTER", "ALLTOALL",
        "ALLTOALL_BASE", "BARRIER",
    }
)  # fmt: skip
_PEERS = re.compile(r"(?P<op>send|recv) ?(?P<own>\d{1,6})(?:->|<-)(?P<peer>\d{1,6})")
_MOST_SHAPES, _MOST_DIMENSIONS = 4096, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What was called; `own` and `peer` are GROUP ranks, printed for p2p calls only."""

    name: str
    backend: str = ""
    own: int | None = None
    peer: int | None = None

    @property
    def is_uneven(self) -> bool:
        """Whether sizes may differ between ranks without anything being wrong."""
        return self.name in _UNEVEN or "COALESCED" in self.name

    @property
    def is_symmetric(self) -> bool:
        """Whether a rank that has completed it proves that all others had come."""
        return self.name in _SYMMETRIC


def read_operation(name: object, sizes: object) -> Operation:
    """The operation of a `profiling_name`; `sizes` tells an all-to-all of one tensor from one of a list."""
    text = name[:200] if isinstance(name, str) else "unknown"
    backend, _, call = text.rpartition(":")
    match = _PEERS.match(call)
    if match:
        own, peer = int(match["own"]), int(match["peer"])
        return Operation(name=match["op"].upper(), backend=backend, own=own, peer=peer)
    word = call.split(" ", 1)[0] or "unknown"
    if word in _ALL_TO_ALL:
        is_one = isinstance(sizes, list | tuple) and len(sizes) <= 1
        return Operation(name="ALLTOALL_BASE" if is_one else "ALLTOALL", backend=backend)
    return Operation(name=_SPELLING.get(word, word.upper()), backend=backend)


def numel(sizes: object) -> int | None:
    """Elements of all tensors of a call; None if no sizes were recorded."""
    if not isinstance(sizes, list | tuple) or not 0 < len(sizes) <= _MOST_SHAPES:
        return None
    total = 0
    for shape in sizes:
        if not isinstance(shape, list | tuple) or len(shape) > _MOST_DIMENSIONS:
            return None
        total += _product(shape)
    return total if total < 1 << 63 else None


def _product(shape: list[object] | tuple[object, ...]) -> int:
    product = 1
    for n in shape:
        product *= n if isinstance(n, int) and 0 <= n < 1 << 48 else 0
        product = min(product, 1 << 63)
    return product
