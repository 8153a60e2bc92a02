# ruff: noqa: E501
from collections.abc import Callable

import pytest

from fsdpclassify.records import Event, EventKind, Line

Events = Callable[..., list[Event]]
Lines = Callable[..., list[Line]]


@pytest.mark.parametrize(
    ("text", "kind", "seconds"),
    [
        ("RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 60000ms for recv operation to complete", EventKind.GLOO, 60.0),
        ("RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:119] Timed out waiting 60000ms for send operation to complete", EventKind.GLOO, 60.0),
        ("RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.4.9]:4112. This is typically caused by a remote worker crashing. GLHF! 🏖️", EventKind.PEER_CLOSED, None),
        ("RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Read error [10.0.4.9]:4112: Connection reset by peer", EventKind.PEER_CLOSED, None),
        ("RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:589] Socket closed", EventKind.PEER_CLOSED, None),
        ("RuntimeError: Application timeout caused pair closure", EventKind.GLOO, None),
        ("gloo::EnforceNotMet op.preamble.length <= op.nbytes. 8 vs 4. Received data size doesn't match expected size.", EventKind.MISMATCH, None),
    ],
)  # fmt: skip
def test_gloo(events: Events, text: str, kind: EventKind, seconds: float | None) -> None:
    found = [e for e in events(f"[rank1]: {text}") if e.kind is not EventKind.ERROR]
    assert {(e.kind, e.rank) for e in found} == {(kind, 1)}
    assert found[0].elapsed_s == seconds


@pytest.mark.parametrize(
    ("text", "seconds", "total"),
    [
        ("torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /default_pg/0//cpu//0", 300.0, None),
        ("RuntimeError: Timeout waiting for key: default_pg/0/0 after 300000 ms", 300.0, None),
        ("RuntimeError: Wait timeout after 300000ms, keys: k", 300.0, None),
        ("RuntimeError: Socket Timeout", None, None),
        ("torch.distributed.DistStoreError: Timed out after 301 seconds waiting for clients. 3/4 clients joined.", 301.0, 4),
        ("The client socket has timed out after 60s while trying to connect to (node00, 29500).", 60.0, None),
        ("[c10d] The client socket has timed out after 60000ms while trying to connect to (node00, 29500).", 60.0, None),
        ("[c10d] waitForInput: poll for socket SocketImpl(fd=77, addr=[::ffff:10.0.4.9]:58004, remote=[node00]:29500) returned 0, likely a timeout", None, None),
        ("[c10d] waitForInput: socket SocketImpl(fd=77, addr=[::ffff:10.0.4.9]:58004, remote=[node00]:29500) timed out after 600000ms", 600.0, None),
        ("torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError", None, None),
    ],
)  # fmt: skip
def test_store_and_rendezvous(events: Events, text: str, seconds: float | None, total: int | None) -> None:
    (found,) = events(text)
    assert (found.kind, found.elapsed_s, found.total) == (EventKind.STORE, seconds, total)


def test_store_barrier_names_its_rank(events: Events) -> None:
    found = events(
        "Timed out initializing process group in store based barrier on rank: 9, for key: store_based_barrier_key:1 (world_size=16)"
    )
    assert [(e.kind, e.rank, e.total) for e in found] == [(EventKind.STORE, 9, None), (EventKind.WORLD, None, 16)]


def test_stack_in_a_store_wait(events: Events) -> None:
    (found,) = events(
        "frame #1: c10d::TCPStore::doWait(c10::ArrayRef<std::string>, std::chrono::duration<long>) + 0x133 (0x7fed29)"
    )
    assert found.kind is EventKind.STORE


def test_a_store_whose_host_died_is_secondary(events: Events) -> None:
    found = events(
        "[c10d] recvValue failed on SocketImpl(fd=4): Failed to recv, got 0 bytes. Connection was likely closed."
    )
    assert {e.kind for e in found} == {EventKind.RANK_MAP}


def test_another_clients_lost_connection_is_no_gloo_error(events: Events) -> None:
    assert [e.kind for e in events("ConnectionResetError: [Errno 104] Connection reset by peer")] == []


def test_a_refused_connection_between_ranks_is_a_transport_error(events: Events) -> None:
    found = events(
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:799] connect [127.0.1.1]:33967: Connection refused"
    )
    assert [(e.kind, e.name) for e in found] == [(EventKind.TRANSPORT, "gloo_connect")]
    other = events("requests.exceptions.ConnectionError: connect 10.1.0.2:80: Connection refused")
    assert {e.kind for e in other} == {EventKind.ERROR}
