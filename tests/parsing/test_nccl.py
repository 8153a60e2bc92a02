# ruff: noqa: E501
from collections.abc import Callable

import pytest

from fsdpclassify.records import Event, EventKind, Line

Events = Callable[..., list[Event]]
Lines = Callable[..., list[Line]]

HEAD = "node07:4188:4301 [3] transport/net_ib.cc:2449 NCCL WARN "


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("NET/IB : Got completion from peer 10.1.0.12<40412> with error 12, opcode 0, len 0, vendor err 129", 12),
        ("NET/IB : Got completion from peer 10.1.0.12<40412> with error 12, opcode 0, len 0, vendor err 129 (Recv) localGid fe80::1 remoteGid fe80::2", 12),
        ("NET/IB : Got completion from peer 10.1.0.12<40412> with status=12 opcode=0 len=0 vendor err 129 (Recv) localGid fe80::1 remoteGidsfe80::2", 12),
        ("NET/IB: Got completion from peer 10.1.0.12<40412> with status=12 opcode=0 len=0 vendor err 129 (Recv) localGid fe80::1 remoteGidsfe80::2 hca mlx5_3", 12),
        ("NET/IB: Got completion from peer 10.1.0.12<40412> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) reqSize=8 vendor_err=129 req_type=Send hca mlx5_3", 12),
        ("NET/IB: Got completion from peer 10.1.0.12<40412> with status=IBV_WC_RNR_RETRY_EXC_ERR(13) opcode=IBV_WC_SEND(0) vendor_err=135 hca mlx5_3", 13),
        ("NET/IB/GIN: Got completion from peer 10.1.0.12<40412> with status=12 opcode=0", 12),
    ],
)  # fmt: skip
def test_completion_errors_of_every_version(events: Events, text: str, code: int | None) -> None:
    (found,) = events(HEAD + text)
    assert (found.kind, found.name, found.code, found.detail) == (
        EventKind.TRANSPORT,
        "ib_completion",
        code,
        "10.1.0.12<40412>",
    )


def test_flush_is_told_from_the_first_completion_error(events: Events) -> None:
    (found,) = events(
        HEAD + "NET/IB : Got completion from peer 10.1.0.12<40412> with status=5 opcode=0 len=0 vendor err 249 (Recv)"
    )
    assert found.name == "ib_flush"


@pytest.mark.parametrize(
    "text",
    [
        "NET/IB : Got async event : port error",
        "NET/IB : mlx5_2:1 Got async event : port error",
        "NET/IB : mlx5_2:1 Got async error event: port error",
        "NET/IB : mlx5_2:1 async fatal event on QP (0x1f): local QP error",
        "NET/IB : mlx5_2:1 Got non-fatal async event: port error(10)",
    ],
)
def test_async_events(events: Events, text: str) -> None:
    found = events(HEAD + text)
    assert [(e.kind, e.name) for e in found] == [(EventKind.TRANSPORT, "async_event")]


def test_time_in_front_and_function_behind(events: Events) -> None:
    head = "[2026-02-11 10:00:01] node07:4188:4301 [3] misc/socket.cc:789 (ncclSocketProgress) NCCL WARN "
    (found,) = events(head + "socketProgress: Connection closed by remote peer node04<40412>")
    assert (found.kind, found.line.node, found.line.pid) == (EventKind.PEER_CLOSED, "node07", 4188)
    assert found.line.rank is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Net : Call to recv from 10.1.0.12<40412> failed : Connection reset by peer", EventKind.PEER_CLOSED),
        ("socketProgressOpt: Call to recv from 10.1.0.12<40412> failed : Connection timed out", EventKind.TRANSPORT),
        ("socketProgressOpt: Call to send to 10.1.0.12<40412> failed : Broken pipe", EventKind.PEER_CLOSED),
        ("ncclOsSocketProgressOpt: Call to recv from 10.1.0.12<40412> failed : Connection reset by peer", EventKind.PEER_CLOSED),
        ("Net : Connection closed by remote peer node04<40412>", EventKind.PEER_CLOSED),
        ("socketStartConnect: Connect to 10.1.0.12<40412> failed : No route to host", EventKind.TRANSPORT),
        ("socketPollConnect: connect to 10.1.0.12<40412> returned Connection refused, exceeded error retry count after 34 attempts", EventKind.TRANSPORT),
        ("NET/Socket : peer 10.1.0.12<40412> message truncated : receiving 16 bytes instead of 8", EventKind.MISMATCH),
        ("Bootstrap : no socket interface found", EventKind.TRANSPORT),
        ("NET/OFI Request 0x7f completed with error. RC: 4. Error: 4 (Unreachable remote)", EventKind.TRANSPORT),
        ("Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1, curr state INIT", EventKind.TRANSPORT),
    ],
)  # fmt: skip
def test_sockets_bootstrap_and_other_transports(events: Events, text: str, kind: EventKind) -> None:
    assert {e.kind for e in events(f"node07:4188:4301 [3] misc/socket.cc:58 NCCL WARN {text}")} == {kind}


@pytest.mark.parametrize(
    "text", ["Transport retry count exceeded on mlx5_0:1/IB", "Receive-no-ready retry count exceeded on mlx5_0:1"]
)
def test_ucx(events: Events, text: str) -> None:
    assert [e.kind for e in events(f"[node07:4188:0:4301] ib_mlx5_log.c:171  UCX  ERROR {text}")] == [
        EventKind.TRANSPORT
    ]


@pytest.mark.parametrize(
    "text",
    [
        "NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.hpp:268, remote process exited or there was a network error, NCCL version 2.21.5",
        "NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:825, unhandled system error, NCCL version 21.0.3",
        "NCCL error: remote process exited or there was a network error, NCCL version 2.26.2",
    ],
)
def test_error_out_of_a_collective(events: Events, text: str) -> None:
    found = events(f"[rank5]: torch.distributed.DistBackendError: {text}")
    assert [(e.kind, e.rank) for e in found] == [(EventKind.NCCL_ERROR, 5)]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("wait timeout after 600000ms", EventKind.STORE),
        ("Connection reset by peer", EventKind.PEER_CLOSED),
    ],
)
def test_set_up_of_a_communicator(events: Events, error: str, kind: EventKind) -> None:
    line = f"[5] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: {error}. This may indicate a possible application crash on rank 0"
    found = [e for e in events(line) if e.name == "unique_id"]
    assert [(e.kind, e.rank, e.peer) for e in found] == [(kind, 5, 0)]


def test_communicator_lines_tell_which_process_is_which_rank(lines: Lines) -> None:
    found = lines(
        "node07:4188:4301 [3] NCCL INFO comm 0x55d0 rank 11 nranks 16 cudaDev 3 nvmlDev 3 busId 9d000 commId 0x1 - Init COMPLETE\n"
        "node07:4188:4301 [3] NCCL INFO comm 0x55d1 rank 1 nranks 2 cudaDev 3 nvmlDev 3 busId 9d000 commId 0x2 - Init COMPLETE\n"
        "node07:4188:4399 [3] misc/socket.cc:58 NCCL WARN Net : Connection closed by remote peer node04<1>"
    )
    assert [line.rank for line in found] == [11, 11, 11]


def test_ordinary_lines_of_the_library_are_no_events(events: Events) -> None:
    assert (
        events(
            "node07:4188:4301 [3] NCCL INFO Channel 00/0 : 3[3] -> 4[4] via P2P/CUMEM/read\nnode07:4188:4301 [3] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22."
        )
        == []
    )
