from __future__ import annotations

from dataclasses import replace

import pytest

from fsdpclassify.advice import alternatives, collect_next, remedy_for
from fsdpclassify.catalogue import Catalogue, Cause
from fsdpclassify.reading import find
from fsdpclassify.records import Alternative, Incident, Remedy
from fsdpclassify.sources import from_text

CATALOGUE = Catalogue(
    causes=(
        Cause(
            id="slow_disk", label="straggler", title="A slow disk", separate_by="the disk's own latency",
            look_alike=("desync",),
            remedy=Remedy(summary="Use another disk.", steps=("Move the data.",), verify=("iostat -x 1",)),
        ),
    ),
    boundaries={"straggler": "late, same sequence", "desync": "never arrives", "rank_failure": "left first"},
)  # fmt: skip

TIMEOUT = (
    "[rank{0}]:[E512 21:10:07.118820344 ProcessGroupNCCL.cpp:689] [Rank {0}] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600013"
    " milliseconds before timing out."
)


def _incident(*lines: str) -> Incident:
    (found,) = find(from_text(["\n".join(lines) + "\n"])).incidents
    return found


def test_rivals_come_by_probability_with_what_separates_them() -> None:
    scores = {"straggler": 0.5, "desync": 0.2, "ours": 0.3}
    assert alternatives(scores, "straggler", None, CATALOGUE) == (
        Alternative(label="ours", probability=0.3, separate_by=None),
        Alternative(label="desync", probability=0.2, separate_by="never arrives"),
    )


def test_the_cause_says_more_precisely_what_separates_it_from_a_look_alike() -> None:
    scores = {"straggler": 0.5, "desync": 0.3, "rank_failure": 0.2}
    assert [a.separate_by for a in alternatives(scores, "straggler", 0, CATALOGUE)] == [
        "the disk's own latency",
        "left first",
    ]


def test_at_most_two_rivals_and_no_hopeless_ones() -> None:
    scores = {"a": 0.4, "b": 0.25, "c": 0.2, "d": 0.15}
    assert [a.label for a in alternatives(scores, "a", None, CATALOGUE)] == ["b", "c"]
    assert alternatives({"a": 0.96, "b": 0.04}, "a", None, CATALOGUE) == ()
    assert len(alternatives({"a": 0.95, "b": 0.05}, "a", None, CATALOGUE)) == 1


def test_the_remedy_is_that_of_the_cause_else_of_the_label_else_empty() -> None:
    assert remedy_for("straggler", 0, CATALOGUE).summary == "Use another disk."
    assert remedy_for("straggler", None, CATALOGUE) == Remedy()
    general = replace(CATALOGUE, remedies={"straggler": Remedy(summary="Find the late phase.")})
    assert remedy_for("straggler", None, general).summary == "Find the late phase."
    assert remedy_for("undetermined", None, general) == Remedy()


@pytest.mark.parametrize(
    "lines",
    [
        ("AllGather timed out waiting for work on rank 3",),
        ("NCCL timeout error during FSDP parameter shard collection",),
        (TIMEOUT.format(0),),
        ("[rank0]: world_size=1", TIMEOUT.format(0)),
        ("step 17/100 loss 2.1", *(TIMEOUT.format(r) for r in range(8))),
    ],
)
def test_an_undetermined_incident_always_says_what_to_record(lines: tuple[str, ...]) -> None:
    assert collect_next(_incident(*lines), sure=False)


def test_a_verdict_brings_at_most_two_wishes() -> None:
    x = _incident("NCCL timeout error during FSDP parameter shard collection")
    everything = collect_next(x, sure=False)
    assert len(everything) > 2
    assert collect_next(x, sure=True) == everything[:2]


def _wishes(*lines: str) -> str:
    return " | ".join(collect_next(_incident(*lines), sure=False))


def test_only_what_this_input_lacks_is_asked_for() -> None:
    bare = _wishes("NCCL timeout error during FSDP parameter shard collection")
    assert "time stamps on every line" in bare
    assert "a line per step" in bare
    assert "NCCL_DEBUG" not in bare
    stepped = _wishes("[rank0]: step 17 loss 2.1", "[rank0]: step 18 loss 2.0", TIMEOUT.format(0))
    assert "time stamps on every line" not in stepped
    assert "a line per step" not in stepped


def test_transport_errors_ask_for_the_transport_s_own_log() -> None:
    line = "node1:14:99 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<41>"
    assert "dmesg" in _wishes(line + " with status=12 opcode=0 len=0 vendor err 129 (Recv)")


def test_where_only_the_absence_of_a_log_speaks_against_a_rank_that_log_is_asked_for_first() -> None:
    x = _incident(*(TIMEOUT.format(r) for r in range(7)))
    first = collect_next(x, sure=True)[0]
    assert first.startswith("what rank 7 printed: ")
    assert "or its log is not here" in first
    heard = _incident(*(TIMEOUT.format(r) for r in range(7)), "[rank7]: loading shard 3")
    assert not any("is not here" in wish for wish in collect_next(heard, sure=True))
