"""Who started it (design §4): the printer of a timeout waited, and of two equal sides neither is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fsdpclassify.initiating import initiating_nodes, initiating_ranks, shown_absent
from fsdpclassify.records import Event, EventKind, Incident, LedgerRow, Line
from fsdpclassify.window import When, WindowLine

LATE = ("straggler", "offload_latency", "uneven_sharding", "desync")


def _line(number: int = 1, **changes: object) -> Line:
    values: dict[str, Any] = {"source": 0, "number": number, "text": "x", "body": "x", "unprefixed": False}
    return Line(**values | changes)


def _timeout(rank: int | None, op: str = "ALLREDUCE", numel: int = 1, **changes: object) -> Event:
    return Event(kind=EventKind.TIMEOUT, line=_line(100), rank=rank, op=op, numel_in=numel, **changes)


def _incident(*events: Event, **changes: object) -> Incident:
    detection = events[0] if events else _timeout(None)
    values: dict[str, Any] = {
        "detection": detection, "events": events, "lines": (), "collective": None, "onset": None,
        "world_size": None, "waiting": (), "failed": (), "missing": (), "ledger": (),
    }  # fmt: skip
    return Incident(**values | changes)


def _spoken(rank: int | None = None, *, unprefixed: bool = False, **changes: object) -> WindowLine:
    line = _line(rank=rank, unprefixed=unprefixed)
    return WindowLine(text="x", line=line, rank=rank, when=When.BEFORE, age_s=None, distance=0, **changes)


def test_a_failure_was_started_by_the_ranks_that_failed() -> None:
    x = _incident(failed=(2, 5), missing=(7,), waiting=(0, 1))
    assert initiating_ranks("rank_failure", x, [_spoken(9)]) == (2, 5)


def test_a_failure_without_a_failed_rank_names_the_only_missing_one() -> None:
    assert initiating_ranks("rank_failure", _incident(missing=(3,)), []) == (3,)
    assert initiating_ranks("rank_failure", _incident(missing=(3, 4)), []) == ()


def test_the_nodes_at_fault_are_those_of_the_failed_ranks() -> None:
    ledger = (
        LedgerRow(rank=0, node="c"),
        LedgerRow(rank=1, node="b"),
        LedgerRow(rank=2, node="a"),
        LedgerRow(rank=3, node="a"),
    )
    x = _incident(failed=(1, 2, 3), ledger=ledger)
    assert initiating_nodes("rank_failure", x) == ("a", "b")
    assert initiating_nodes("fabric_congestion", x) == ()
    assert initiating_nodes("straggler", x) == ()


def test_a_transport_fault_names_nobody() -> None:
    x = _incident(failed=(2,), missing=(3,), waiting=(0,))
    assert initiating_ranks("fabric_congestion", x, [_spoken(1)]) == ()


@pytest.mark.parametrize("label", LATE)
def test_the_missing_ranks_count_before_any_words(label: str) -> None:
    assert initiating_ranks(label, _incident(missing=(1, 4), waiting=(0,)), [_spoken(2)]) == (1, 4)


@pytest.mark.parametrize("label", LATE)
def test_the_rank_that_printed_the_strongest_evidence(label: str) -> None:
    assert initiating_ranks(label, _incident(waiting=(0, 1)), [_spoken(3), _spoken(2)]) == (3,)


@pytest.mark.parametrize("label", LATE)
def test_a_waiting_rank_is_not_guilty_of_what_it_prints(label: str) -> None:
    assert initiating_ranks(label, _incident(waiting=(3,)), [_spoken(3)]) == ()
    assert initiating_ranks(label, _incident(waiting=(3,)), [_spoken(3), _spoken(2)]) == (2,)


@pytest.mark.parametrize("label", LATE)
@pytest.mark.parametrize(("waiting", "expected"), [((1, 2), (0,)), ((0, 1), ()), ((), (0,))])
def test_a_main_process_output_is_rank_0_unless_it_waits(
    label: str, waiting: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert initiating_ranks(label, _incident(waiting=waiting), [_spoken(unprefixed=True)]) == expected


def test_a_timeout_line_without_prefix_says_nothing_of_rank_0() -> None:
    row = _spoken(unprefixed=True, is_detection=True)
    assert initiating_ranks("straggler", _incident(waiting=(1,)), [row]) == ()


def test_a_prefixed_line_whose_rank_is_unknown_names_nobody() -> None:
    assert initiating_ranks("straggler", _incident(waiting=(1,)), [_spoken()]) == ()
    assert initiating_ranks("straggler", _incident(waiting=(1,)), [_spoken(), _spoken(4)]) == (4,)


def test_what_a_rank_prints_after_the_timeout_does_not_name_it() -> None:
    late = replace(_spoken(4), when=When.AFTER)
    assert initiating_ranks("straggler", _incident(waiting=(1,)), [late]) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Saving checkpoint to /mnt/ckpt", (0,)),
        ("      Class   Images:  54%|#####     | 2691/5000 [29:58<25:42,  1.50it/s]", (0,)),
        ("Traceback (most recent call last):", ()),
        ("    loss.backward()", ()),
        ("torch.OutOfMemoryError: CUDA out of memory.", ()),
        ("MyError: a tale", ()),
    ],
)
def test_a_part_of_somebody_s_traceback_is_not_the_main_process(text: str, expected: tuple[int, ...]) -> None:
    row = replace(_spoken(unprefixed=True), line=_line(text=text, unprefixed=True))
    assert initiating_ranks("straggler", _incident(waiting=(1,)), [row]) == expected


def test_a_line_of_a_named_node_is_not_the_main_process() -> None:
    row = replace(_spoken(unprefixed=True), line=_line(unprefixed=True, node="worker-3"))
    assert initiating_ranks("straggler", _incident(waiting=(1,)), [row]) == ()


def test_system_logs_are_passed_over() -> None:
    rows = [_spoken(unprefixed=True, system=True), _spoken(4)]
    assert initiating_ranks("straggler", _incident(waiting=(1,)), rows) == (4,)


def test_without_any_words_nobody_is_named() -> None:
    for label in (*LATE, "rank_failure"):
        assert initiating_ranks(label, _incident(waiting=(1,)), []) == ()


def test_the_minority_in_another_call_left_the_schedule() -> None:
    x = _incident(*(_timeout(r) for r in (0, 1, 3)), _timeout(2, "BROADCAST"), waiting=(0, 1, 2, 3))
    assert initiating_ranks("desync", x, []) == (2,)


def test_the_minority_in_another_size_left_the_schedule() -> None:
    x = _incident(*(_timeout(r, numel=64) for r in (0, 1, 3)), _timeout(2, numel=63), waiting=(0, 1, 2, 3))
    assert initiating_ranks("desync", x, []) == (2,)


def test_a_minority_is_no_matter_of_a_straggler() -> None:
    x = _incident(*(_timeout(r) for r in (0, 1, 3)), _timeout(2, "BROADCAST"), waiting=(0, 1, 2, 3))
    assert initiating_ranks("straggler", x, []) == ()


def test_only_the_first_timeout_of_a_rank_counts() -> None:
    x = _incident(_timeout(0), _timeout(1), _timeout(2), _timeout(2, "BROADCAST"), waiting=(0, 1, 2))
    assert initiating_ranks("desync", x, []) == ()


def test_of_two_equal_sides_neither_is_named() -> None:
    sizes = [_timeout(r, "_ALLGATHER_BASE", n) for r, n in ((0, 64), (1, 64), (2, 96), (3, 96))]
    assert initiating_ranks("desync", _incident(*sizes, waiting=(0, 1, 2, 3)), []) == ()


def test_of_two_equal_sides_the_one_in_a_tiny_all_reduce_left_the_loop() -> None:
    x = _incident(
        _timeout(0, "_ALLGATHER_BASE", 25_165_824), _timeout(1, "_ALLGATHER_BASE", 25_165_824),
        _timeout(2, "ALLREDUCE", 1), _timeout(3, "ALLREDUCE", 1), waiting=(0, 1, 2, 3),
    )  # fmt: skip
    assert initiating_ranks("desync", x, []) == (2, 3)


def test_a_tiny_call_of_any_kind_is_that_of_a_rank_which_left_the_loop() -> None:
    large = _timeout(0, "_ALLGATHER_BASE", 29_360_128)
    assert initiating_ranks("desync", _incident(large, _timeout(1, "ALLGATHER", 2), waiting=(0, 1)), []) == (1,)
    assert initiating_ranks("desync", _incident(large, _timeout(1, "_ALLGATHER_BASE", 2), waiting=(0, 1)), []) == ()


def test_a_host_whose_own_log_shows_the_reason_stands_for_its_ranks() -> None:
    ledger = tuple(LedgerRow(rank=r, node="n1" if r > 1 else "n0") for r in range(4))
    row = replace(_spoken(system=True), line=_line(node="n1"))
    assert initiating_ranks("straggler", _incident(waiting=(0, 1), ledger=ledger), [row]) == (2, 3)
    assert initiating_ranks("straggler", _incident(waiting=(0, 1, 2), ledger=ledger), [row]) == ()


def test_two_large_operations_do_not_show_who_left_the_loop() -> None:
    x = _incident(_timeout(0, "_ALLGATHER_BASE", 4096), _timeout(1, "ALLREDUCE", 4096), waiting=(0, 1))
    assert initiating_ranks("desync", x, []) == ()


def test_a_third_shape_shows_no_minority() -> None:
    x = _incident(*(_timeout(r, numel=n) for r, n in ((0, 8), (1, 8), (2, 9), (3, 10))), waiting=(0, 1, 2, 3))
    assert initiating_ranks("desync", x, []) == ()


def test_the_fingerprint_far_behind_took_another_path() -> None:
    differ = Event(kind=EventKind.MISMATCH, line=_line(1), rank=0, peer=3, detail="seq differs")
    assert initiating_ranks("desync", _incident(differ, waiting=(0, 3)), []) == (3,)
    same = Event(kind=EventKind.MISMATCH, line=_line(1), rank=0, peer=3, detail="shapes differ")
    assert initiating_ranks("desync", _incident(same, waiting=(0, 3)), []) == ()


def test_idle_devices_are_the_ends_of_an_uneven_pipeline() -> None:
    idle = [Event(kind=EventKind.MEMORY, line=_line(), rank=r, name="idle") for r in (7, 0)]
    busy = Event(kind=EventKind.MEMORY, line=_line(), rank=3, name="busy")
    x = _incident(*idle, busy, waiting=(1,), missing=(2,))
    assert initiating_ranks("uneven_sharding", x, []) == (0, 7)
    assert initiating_ranks("straggler", x, []) == (2,)


def _signalled(source: int, processes: int) -> list[Event]:
    """A launcher that was told to stop, and its words to each of its processes."""
    at: dict[str, Any] = {"source": source, "time": 10.0, "stamped": True}
    told = Event(kind=EventKind.SIGNAL, line=_line(1, **at), time=10.0, name="SIGHUP")
    closing = [
        Event(kind=EventKind.SIGNAL, line=_line(2 + i, **at), time=10.0, name="peer_terminated")
        for i in range(processes)
    ]
    return [told, *closing]


def _stopped(waiting: tuple[int, ...], *others: Event, processes: int = 4) -> Incident:
    detection = Event(
        kind=EventKind.TIMEOUT, line=_line(9, source=1, time=610.0, stamped=True), rank=waiting[0], time=610.0
    )
    events = (*_signalled(0, processes), *others, detection)
    return _incident(*events, waiting=waiting, detection=detection, onset=10.0)


def test_a_stopped_launcher_is_the_node_whose_block_does_not_wait() -> None:
    assert initiating_ranks("rank_failure", _stopped((0, 1, 2, 3, 8, 9, 10, 11)), []) == (4, 5, 6, 7)
    assert initiating_ranks("rank_failure", _stopped((4, 5, 6, 7)), []) == (0, 1, 2, 3)


@pytest.mark.parametrize(
    "waiting",
    [(0, 1, 2, 8, 9, 10, 11), (0, 1, 2, 3), (0, 1, 2, 3, 4, 5, 6, 7), (12, 13, 14, 15)],
    ids=["a waiting node is not complete", "no gap", "all wait", "two nodes absent and one more"],
)
def test_blocks_that_do_not_fit_name_no_node(waiting: tuple[int, ...]) -> None:
    assert initiating_ranks("rank_failure", _stopped(waiting), []) == ()


def test_with_a_known_world_the_last_node_can_be_the_stopped_one() -> None:
    assert initiating_ranks("rank_failure", replace(_stopped((0, 1, 2, 3)), world_size=8), []) == (4, 5, 6, 7)
    assert initiating_ranks("rank_failure", replace(_stopped((0, 1, 2, 3)), world_size=16), []) == ()


def test_two_stopped_launchers_name_no_node() -> None:
    x = _stopped((0, 1, 2, 3, 8, 9, 10, 11), *_signalled(2, 4))
    assert initiating_ranks("rank_failure", x, []) == ()


def test_a_launcher_stopped_after_the_timeout_names_no_node() -> None:
    at: dict[str, Any] = {"source": 0, "time": 700.0, "stamped": True}
    detection = Event(kind=EventKind.TIMEOUT, line=_line(9, source=1, time=610.0, stamped=True), rank=0, time=610.0)
    late = [
        Event(kind=EventKind.SIGNAL, line=_line(1, **at), time=700.0, name="SIGHUP"),
        *(Event(kind=EventKind.SIGNAL, line=_line(2 + i, **at), time=700.0, name="peer_terminated") for i in range(4)),
    ]
    x = _incident(detection, *late, waiting=(0, 1, 2, 3, 8, 9, 10, 11), onset=10.0)
    assert initiating_ranks("rank_failure", x, []) == ()


def test_without_a_verdict_the_only_absent_rank_is_still_named() -> None:
    assert shown_absent(_incident(_timeout(0), missing=(3,))) == (3,)
    assert shown_absent(_incident(_timeout(0), failed=(2,), missing=(3,))) == (2,)
    assert shown_absent(_incident(_timeout(0), missing=(3, 4), waiting=(0,))) == ()
    assert shown_absent(_incident(_timeout(0), missing=(2, 3), waiting=(0, 1))) == (2, 3)


@pytest.mark.parametrize("kind", [EventKind.TRANSPORT, EventKind.MISMATCH])
def test_without_a_verdict_a_broken_wire_or_a_mismatch_names_nobody(kind: EventKind) -> None:
    assert shown_absent(_incident(_timeout(0), Event(kind=kind, line=_line()), missing=(3,))) == ()
