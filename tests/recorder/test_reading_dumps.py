"""Dumps end to end: `classify` and `inspect`, alone, packed, incomplete, and beside logs."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest
from jsonschema import Draft202012Validator

from fsdpclassify.classifier import Classifier
from fsdpclassify.reading import Findings, find
from fsdpclassify.records import EventKind, InputKind, InputStatus, Role
from fsdpclassify.report.inspection import inspection_as_dict, render_inspection
from fsdpclassify.report.structured import load_schema, report_as_dict, to_json
from fsdpclassify.sources import collect

pytestmark = pytest.mark.filterwarnings("error")


def found_in(*paths: Path) -> Findings:
    return find(collect(list(paths)))


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier.load()


@pytest.mark.model
@pytest.mark.parametrize(
    ("shape", "verdict", "initiating", "words"),
    [
        ("desync", "desync", [1], "rank 1 stands in ALLREDUCE of 1 elements, seq 12 of group 0(default_pg)"),
        ("mismatch", "desync", [0], "rank 0 stands in _ALLGATHER_BASE of 1024 elements"),
        ("missing_rank", "undetermined", [2], "rank 2 left no dump; ranks 0-1, 3 wait for it"),
        ("lagging_rank", "undetermined", [3], "issued at /job/checkpoint.py:44 in save_checkpoint"),
    ],
)
def test_each_shape_is_explained(
    classifier: Classifier,
    make: ModuleType,
    tmp_path: Path,
    shape: str,
    verdict: str,
    initiating: list[int],
    words: str,
) -> None:
    report = classifier.classify(make.write(tmp_path, getattr(make, shape)()))
    shown = json.loads(to_json(report_as_dict(report)))
    (incident,) = shown["incidents"]
    assert (incident["verdict"], incident["initiating_ranks"]) == (verdict, initiating)
    assert any(words in item["text"] and item["rank"] is not None for item in incident["evidence"])
    assert all(item["path"].startswith("comm_lib_trace_rank_") for item in incident["evidence"])
    assert all(row["dump"] == (row["rank"] != 2 or shape != "missing_rank") for row in incident["ledger"])
    assert incident["world_size"] == 4
    assert (incident["collective"]["group"], incident["collective"]["seq"]) == ("0(default_pg)", 12)
    assert incident["collective"]["timeout_s"] == 600.0
    # Who did not come is no reason why: only calls that differ are.
    assert bool(incident["abstained_because"]) == (verdict != "desync")
    wishes = [wish for wish in incident["collect_next"] if "flight-recorder" in wish]
    assert all("rank 2 left none" in wish for wish in wishes)
    assert bool(wishes) == (shape == "missing_rank")
    assert not list(Draft202012Validator(load_schema()).iter_errors(shown))


def test_the_ledger_holds_counters_and_roles(make: ModuleType, tmp_path: Path) -> None:
    (incident,) = found_in(make.write(tmp_path, make.lagging_rank())).incidents
    rows = {row.rank: row for row in incident.ledger}
    assert {r: row.role for r, row in rows.items()} == {
        0: Role.WAITING,
        1: Role.WAITING,
        2: Role.WAITING,
        3: Role.MISSING,
    }
    assert (rows[0].enqueued, rows[0].completed, rows[3].enqueued, rows[3].completed) == (13, 11, 11, 11)
    assert rows[0].groups[-1].op == "_ALLGATHER_BASE"
    assert (incident.waiting, incident.missing) == ((0, 1, 2), (3,))


def test_inspect_shows_every_dump(make: ModuleType, tmp_path: Path) -> None:
    found = found_in(make.write(tmp_path, make.lagging_rank()))
    shown = inspection_as_dict(found, None, lambda text: text)
    recorder = shown["flight_recorder"]
    assert recorder["initiating_ranks"] == [3]
    assert [dump["rank"] for dump in recorder["dumps"]] == [0, 1, 2, 3]
    first, last = recorder["dumps"][0], recorder["dumps"][3]
    assert first["oldest"]["op"] == "_ALLGATHER_BASE"
    assert first["oldest"]["frame"] == "/job/train.py:118 in train_step"
    assert first["waits_for"] == [3]
    assert last["oldest"] is None
    assert last["groups"][0] == {
        "group": "0(default_pg)",
        "ranks": [0, 1, 2, 3],
        "enqueued": 11,
        "started": -1,
        "completed": 11,
        "in_flight": 0,
    }
    text = render_inspection(shown, width=100)
    assert "initiating ranks    rank 3" in text
    assert "0-2    0(default_pg)  13        -        11         2" in text
    assert "rank 3 has nothing in flight while ranks 0-2 wait for it" in text
    json.dumps(shown)


def test_healthy_dumps_are_rows_and_no_incident(make: ModuleType, tmp_path: Path) -> None:
    found = found_in(make.write(tmp_path, make.healthy()))
    assert found.incidents == ()
    assert [(row.kind, row.status, row.lines) for row in found.inputs] == [
        (InputKind.FLIGHT_RECORDER, InputStatus.OK, 0)
    ] * 4
    assert "Flight recorder" in render_inspection(inspection_as_dict(found, None, str), width=100)


def test_packed_json_and_oddly_named_dumps_are_one_set(make: ModuleType, tmp_path: Path) -> None:
    dumps = make.lagging_rank()
    (tmp_path / "gpu-node-17.rank_0.pkl.gz").write_bytes(gzip.compress(make.as_pickle(dumps[0])))
    (tmp_path / "rank1.json").write_bytes(make.as_json(dumps[1]))
    with tarfile.open(tmp_path / "more.tar.gz", "w:gz") as archive:
        for rank in (2, 3):
            data = make.as_pickle(dumps[rank])
            info = tarfile.TarInfo(f"node{rank}/trace_rank_{rank}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    found = found_in(tmp_path)
    assert {row.status for row in found.inputs} == {InputStatus.OK}
    assert found.incidents[0].missing == (3,)
    (stop,) = [e for e in found.incidents[0].events if e.name == "idle"]
    assert found.inputs[stop.line.source].path == "more.tar.gz!node3/trace_rank_3"


def test_a_cut_dump_counts_as_absent(make: ModuleType, tmp_path: Path) -> None:
    make.write(tmp_path, make.lagging_rank())
    path = tmp_path / "comm_lib_trace_rank_3"
    path.write_bytes(path.read_bytes()[:-9])
    found = found_in(tmp_path)
    assert [row.status for row in found.inputs].count(InputStatus.TRUNCATED) == 1
    assert found.incidents[0].missing == (3,)
    *facts, last = [e for e in found.incidents[0].events if e.rank == 3]
    assert {e.name for e in facts} <= {"dump", "counters"}
    assert last.name == "no_dump"
    assert "left a dump that was cut off" in last.line.text


def test_two_dumps_of_one_rank_are_said(make: ModuleType, tmp_path: Path) -> None:
    make.write(tmp_path / "now", make.lagging_rank())
    make.write(tmp_path / "before", {1: make.dump(make.steps(3), groups=make.WORLD)})
    found = found_in(tmp_path)
    messages = {row.path: row.message for row in found.inputs if row.message}
    assert list(messages) == ["before/comm_lib_trace_rank_1"]
    assert "rank 1 has another dump" in str(messages["before/comm_lib_trace_rank_1"])
    assert found.incidents[0].missing == (3,)


def test_dumps_with_an_empty_recorder_still_name_the_rank(make: ModuleType, tmp_path: Path) -> None:
    empty = {r: make.dump([], groups=make.WORLD, status={"0": (14 if r else 11, 11)}) for r in range(4)}
    at = make.START_NS / 1e9
    (tmp_path / "rank1.log").write_text(_watchdog(1, at))
    make.write(tmp_path / "dumps", empty)
    (incident,) = found_in(tmp_path).incidents
    assert (incident.waiting, incident.missing) == ((1, 2, 3), (0,))
    (stop,) = [e for e in incident.events if e.name == "idle"]
    assert "ranks 1-3 wait for it in a call, seq 12 of group 0(default_pg)" in stop.line.text
    make.write(tmp_path / "alone", empty)
    alone = found_in(tmp_path / "alone")
    assert alone.incidents[0].missing == (0,)
    assert "a call seq 12" in render_inspection(inspection_as_dict(alone, None, str), width=100)


def test_dumps_of_an_earlier_attempt_are_left_out(make: ModuleType, tmp_path: Path) -> None:
    dumps = make.missing_rank()
    old = [make.work(n, at=n - 40_000) for n in range(1, 4)]
    make.write(tmp_path, {**dumps, 2: make.dump(old, groups=make.WORLD)})
    found = found_in(tmp_path)
    assert "of an earlier attempt" in str(found.inputs[2].message)
    assert found.incidents[0].missing == (2,)
    assert not found.incidents[0].ledger[2].dump


def _watchdog(rank: int, at: float, seq: int = 12) -> str:
    stamp = datetime.fromtimestamp(at, tz=UTC)
    work = f"WorkNCCL(SeqNum={seq}, OpType=_ALLGATHER_BASE, NumelIn=4096, NumelOut=16384, Timeout(ms)=600000)"
    return (
        f"[rank{rank}]:[E{stamp.month}{stamp:%d %H:%M:%S}.104992871 ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog"
        f" caught collective operation timeout: {work} ran for 600041 milliseconds before timing out.\n"
    )


@pytest.mark.parametrize("zone_s", [0, 2 * 3600, -5 * 3600 - 1800])
def test_logs_and_dumps_are_one_incident(make: ModuleType, tmp_path: Path, zone_s: int) -> None:
    at = make.START_NS / 1e9 + 12 * 0.25 + 600.041 + zone_s
    logs = tmp_path / "logs"
    logs.mkdir()
    for rank in (0, 1):
        (logs / f"rank{rank}.log").write_text(_watchdog(rank, at))
    make.write(tmp_path / "dumps", make.lagging_rank())
    found = found_in(logs, tmp_path / "dumps")
    (incident,) = found.incidents
    assert incident.detection.kind is EventKind.TIMEOUT
    assert found.inputs[incident.detection.line.source].path == "rank0.log"
    assert (incident.waiting, incident.missing) == ((0, 1, 2), (3,))
    assert [row.rank for row in incident.ledger] == [0, 1, 2, 3]
    assert all(row.dump for row in incident.ledger)
    waits = [e for e in incident.events if e.kind is EventKind.RECORDED and e.name == "waiting"]
    assert incident.detection.time is not None
    assert all(e.time is not None and abs(e.time - incident.detection.time) < 2.0 for e in waits)


def test_a_log_without_a_timeout_is_joined_too(make: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("".join(f"step {n} loss 2.{n}\n" for n in range(30)))
    make.write(tmp_path / "dumps", make.lagging_rank())
    (incident,) = found_in(tmp_path).incidents
    assert incident.detection.kind is EventKind.RECORDED
    assert incident.missing == (3,)
    assert len(incident.lines) == 30


def test_dumps_belong_to_the_last_of_two_attempts(make: ModuleType, tmp_path: Path) -> None:
    second = make.START_NS / 1e9 + 12 * 0.25 + 600.041
    first = second - 7200.0
    stamp = datetime.fromtimestamp(second - 3000, tz=UTC)
    steps = "".join(f"[{stamp:%Y-%m-%d %H:%M}:{n:02d}] step {n} loss 2.1\n" for n in range(40, 59))
    (tmp_path / "rank0.log").write_text(_watchdog(0, first, seq=3) + steps + _watchdog(0, second))
    make.write(tmp_path / "dumps", make.lagging_rank())
    found = found_in(tmp_path)
    assert len(found.incidents) == 2
    assert [any(e.kind is EventKind.RECORDED for e in x.events) for x in found.incidents] == [False, True]
    assert found.incidents[1].missing == (3,)


def test_a_rank_without_a_dump_that_its_log_shows_waiting_is_not_named(make: ModuleType, tmp_path: Path) -> None:
    at = make.START_NS / 1e9 + 12 * 0.25 + 600.041
    (tmp_path / "rank2.log").write_text(_watchdog(2, at))
    make.write(tmp_path / "dumps", make.missing_rank())
    (incident,) = found_in(tmp_path).incidents
    assert incident.waiting == (0, 1, 2, 3)
    assert incident.missing == ()


def test_dumps_of_another_run_beside_an_incident_are_not_used(make: ModuleType, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    at = make.START_NS / 1e9 + 90 * 3600
    stamp = datetime.fromtimestamp(at - 700, tz=UTC).strftime("%Y-%m-%d %H:%M:%S")
    for rank in (0, 1):
        (logs / f"rank{rank}.log").write_text(f"{stamp} INFO step 4 loss 2.1\n" + _watchdog(rank, at))
    make.write(tmp_path / "dumps", make.lagging_rank())
    found = found_in(logs, tmp_path / "dumps")
    (incident,) = found.incidents
    assert (incident.waiting, incident.missing, found.recorded) == ((0, 1), (), None)
    messages = [row.message or "" for row in found.inputs if row.kind is InputKind.FLIGHT_RECORDER]
    assert len(messages) == 4
    assert all("of another run and not used" in message for message in messages)
