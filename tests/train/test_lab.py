"""The fault lab: its table, its plan, what it writes, and the recordings that are shipped."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from train.lab import faults as table
from train.lab.dumps import apart
from train.lab.launch import Run
from train.lab.plan import Recording, plan
from train.lab.scrub import Scrubber
from train.lab.store import NoIncidentError, describe, rendered_dumps, stored, write
from train.lab.store import rendered as stored_logs
from train.lab.table import Told, rendered, tell, totals, write_into
from train.lab.transcribe import transcribe
from train.lab.witness import attest, decisive_lines, telling_line

ROOT = Path(__file__).resolve().parents[2]
RECORDED = sorted(p.parent for p in (ROOT / "data" / "lab").glob("*/*/incident.json"))
GLOO = (
    "[rank{0}]: Traceback (most recent call last):\n"
    '[rank{0}]:   File "/opt/app/pretrain.py", line 28, in main\n'
    "[rank{0}]: RuntimeError: [/__w/pytorch/gloo/transport/tcp/unbound_buffer.cc:78] "
    "Timed out waiting 8000ms for recv operation to complete\n"
)
FACTS = {
    "status": {"0": {"last_enqueued_collective": "41", "last_completed_collective": "40"}},
    "entries": [
        {
            "collective_seq_id": 41,
            "input_sizes": [[337]],
            "output_sizes": [[1348]],
            "process_group": ["0", "default_pg"],
            "profiling_name": "gloo:all_gather",
            "time_created_ns": 1_796_039_875_487_522_350,
            "timeout_ms": 8000,
        }
    ],
}


@pytest.fixture(scope="module")
def faults() -> tuple[table.Fault, ...]:
    return table.load_faults()


@pytest.fixture(scope="module")
def recordings(faults: tuple[table.Fault, ...]) -> list[Recording]:
    return plan(faults)


def _of(recordings: list[Recording], name: str, **wanted: object) -> Recording:
    fits = (r for r in recordings if r.fault.name == name and all(getattr(r, k) == v for k, v in wanted.items()))
    return next(fits)


def test_there_are_enough_faults_for_every_label(faults: tuple[table.Fault, ...]) -> None:
    labels = {label["id"] for label in _taxonomy()["label"]}
    assert len(faults) >= 25
    assert {f.label for f in faults} == labels | {"no_timeout"}


def test_causes_are_in_the_catalogue_under_the_same_label(faults: tuple[table.Fault, ...]) -> None:
    catalogue = {cause["id"]: cause["label"] for cause in _taxonomy()["cause"]}
    assert all(catalogue[f.cause_id] == f.label for f in faults if f.cause_id)


def test_actions_of_the_table_are_known_to_the_scripts(faults: tuple[table.Fault, ...]) -> None:
    code = "".join(p.read_text() for p in (ROOT / "train/lab/app").glob("*.py"))
    for fault in faults:
        if (name := fault.profile.get("do")) is not None:
            assert f"def {name}(" in code or f'"{name}"' in code, name


def test_splits_share_neither_faults_nor_scripts(recordings: list[Recording]) -> None:
    whats: tuple[Callable[[Recording], str], ...] = (lambda r: r.fault.name, lambda r: r.script)
    for what in whats:
        by_split = [{what(r) for r in recordings if r.fault.split == split} for split in table.SPLITS]
        assert not by_split[0] & by_split[1]
        assert not by_split[0] & by_split[2]
        assert not by_split[1] & by_split[2]


def test_ids_are_neutral_and_unique(recordings: list[Recording]) -> None:
    ids = [r.id for r in recordings]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"lab-[0-9a-f]{8}", i) for i in ids)


def test_the_plan_begins_with_every_fault_once(faults: tuple[table.Fault, ...], recordings: list[Recording]) -> None:
    assert [r.fault.name for r in recordings[: len(faults)]] == [f.name for f in faults]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('split = "lab_rest"', "unknown split"),
        ('split = "lab_test"\nwrappers = ["zero3"]', "unknown wrapper"),
        ('split = "lab_test"\nscripts = ["pretrain"]', "not scripts of"),
        ('split = "lab_test"\nspeed = 3', "speed"),
    ],
)
def test_a_faulty_table_is_refused_by_name(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "faults.toml"
    path.write_text(f'[[fault]]\nname = "a"\nlabel = "other"\ncause = "b"\n{line}\n')
    with pytest.raises(ValueError, match=message):
        table.load_faults(path)


def test_waiting_ranks_come_from_the_text_alone() -> None:
    seen = attest({"console.log": GLOO.format(3) + "step 4\n" + GLOO.format(0)})
    assert seen.waiting == (0, 3)
    assert seen.timeout_s == 8.0
    assert seen.incident


def test_a_healthy_log_is_no_incident() -> None:
    assert not attest({"console.log": "step 4/40 loss 0.1\ntraining finished\n"}).incident


def test_the_rank_in_another_call_is_the_odd_one() -> None:
    call = '[rank{0}]:   File "/opt/venv/torch/distributed/distributed_c10d.py", line 1, in {1}\n'
    both = [call.format(r, "barrier" if r == 1 else "all_gather") for r in range(4)]
    assert attest({"console.log": "".join(both)}).odd == (1,)
    assert attest({"console.log": "".join(both[:2])}).odd == ()
    assert attest({"console.log": "".join(call.format(r, "all_gather") for r in range(4))}).odd == ()


def test_decisive_lines_count_by_newline_alone() -> None:
    assert decisive_lines({"a.log": "x\r y\x0c\nsaving\n"}, "saving") == ["a.log:2"]


def test_paths_and_host_are_scrubbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "buildbox")
    scrubber = Scrubber(tmp_path, "gpu-node1")
    text = scrubber.clean(f'File "{tmp_path}/app/job.py" host : buildbox')
    assert text == 'File "/opt/app/job.py" host : gpu-node1'
    assert scrubber.leaks("/work/x") == ["/work/"]


def test_the_silent_rank_is_the_initiating_one(recordings: list[Recording]) -> None:
    recording = _of(recordings, "slow_read", wrapper="fsdp2", transcribed=False)
    found = describe(recording, {"console.log": "".join(GLOO.format(r) for r in (0, 1, 3))})
    assert found["initiating_ranks"] == [2]
    assert found["waiting_ranks"] == [0, 1, 3]
    assert found["world_size"] is None
    assert "2" not in json.dumps(found["id"])[:3]


def test_no_rank_is_blamed_where_all_speak_and_nothing_tells_them_apart(recordings: list[Recording]) -> None:
    recording = _of(recordings, "slow_read", script="pretrain", transcribed=False)
    found = describe(recording, {"console.log": "".join(GLOO.format(r) for r in range(4))})
    assert "initiating_ranks" not in found


def test_a_log_without_the_wait_is_not_recorded_as_one(recordings: list[Recording]) -> None:
    with pytest.raises(NoIncidentError):
        describe(_of(recordings, "slow_read"), {"console.log": "step 4\n"})
    crash = describe(_of(recordings, "bad_sample"), {"console.log": "ValueError: cannot decode\n"})
    assert crash["label"] == "no_timeout"


def test_transcription_keeps_counters_and_drops_the_other_voice() -> None:
    files = {"attempt_0/1/stderr.log": "step 8\n" + GLOO.format(1), "torchrun.log": "exitcode: 1\n"}
    found = transcribe(files, {1: FACTS}, [1])
    text = found["attempt_0/1/stderr.log"]
    assert set(found) == {"attempt_0/1/stderr.log"}
    assert text.startswith("step 8\n[rank1]:[E")
    assert "WorkNCCL(SeqNum=41, OpType=_ALLGATHER_BASE, NumelIn=337, NumelOut=1348, Timeout(ms)=8000) ran for" in text
    assert "last enqueued work: 41, last completed work: 40" in text
    assert "gloo" not in text
    assert "transcribed" not in text


def test_transcription_without_counters_is_refused() -> None:
    with pytest.raises(ValueError, match="no counters of rank 1"):
        transcribe({"attempt_0/1/stderr.log": GLOO.format(1)}, {}, [1])


def test_streams_of_the_second_node_are_those_of_its_ranks() -> None:
    found = transcribe({"node1/attempt_0/1/stderr.log": GLOO.format(3)}, {3: FACTS}, [3])
    assert found["node1/attempt_0/1/stderr.log"].startswith("[rank3]:[E")


def test_a_run_without_a_timeout_is_not_transcribed() -> None:
    closed = "[rank1]: RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.1]:1\n"
    with pytest.raises(ValueError, match="no wait ran out"):
        transcribe({"attempt_0/1/stderr.log": closed}, {1: FACTS}, [1])


def _dump(enqueued: int, call: str = "all_reduce", numel: int = 5, group: str = "0") -> str:
    """A dump of one rank, as gloo's recorder writes it: the call in flight and the counters of one group."""
    entry = {"pg_id": int(group), "collective_seq_id": enqueued, "profiling_name": f"gloo:{call}"}
    status = {"last_enqueued_collective": str(enqueued), "last_completed_collective": str(enqueued - 1)}
    return json.dumps({"entries": [entry | {"input_sizes": [[numel]]}], "pg_status": {group: status}})


def _dumps(*texts: str | None) -> dict[str, str]:
    return {f"traces/comm_lib_trace_rank_{rank}.json": text for rank, text in enumerate(texts) if text is not None}


@pytest.mark.parametrize(
    ("dumps", "world", "expected"),
    [
        (_dumps(_dump(9), _dump(8), _dump(9)), 3, (1,)),
        (_dumps(_dump(9), _dump(9, call="barrier"), _dump(9)), 3, (1,)),
        (_dumps(_dump(9), _dump(9), _dump(9, numel=7)), 3, (2,)),
        (_dumps(_dump(9), _dump(9), None), 3, (2,)),
        (_dumps(_dump(9), _dump(9), _dump(9)), 3, ()),
        (_dumps(_dump(9), _dump(8), _dump(8)), 3, ()),
        (_dumps(_dump(9), _dump(9, numel=7)), 2, ()),
        (_dumps(_dump(9), None, None), 3, ()),
        ({}, 3, ()),
    ],
)
def test_dumps_name_one_rank_or_none(dumps: dict[str, str], world: int, expected: tuple[int, ...]) -> None:
    assert apart(dumps, world) == expected


def test_dumps_tell_the_rank_where_all_logs_look_alike(recordings: list[Recording]) -> None:
    recording = _of(recordings, "slow_read", script="pretrain", world=4, transcribed=False)
    logs = {"console.log": "".join(GLOO.format(r) for r in range(4))}
    assert describe(recording, logs, _dumps(_dump(9), _dump(9), _dump(8), _dump(9)))["initiating_ranks"] == [2]
    assert "initiating_ranks" not in describe(recording, logs, _dumps(*[_dump(9)] * 4))
    with pytest.raises(NoIncidentError, match="rank 1 late"):
        describe(recording, logs, _dumps(_dump(9), _dump(8), _dump(9), _dump(9)))


def _traces() -> ModuleType:
    spec = importlib.util.spec_from_file_location("traces", ROOT / "train/lab/app/traces.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_dump_has_a_call_a_line_and_stays_the_same_json() -> None:
    traces = _traces()
    text = json.dumps({"entries": [{"time_created_ns": 5}, {"time_created_ns": 9}]}, separators=(",", ":"))
    assert traces.newest_call(json.loads(text)) == 9
    assert traces.newest_call({}) == 0
    assert traces.one_call_a_line(text).count("\n") == 1
    assert json.loads(traces.one_call_a_line(text)) == json.loads(text)


def test_second_seeds_keep_the_wrapper_and_change_the_world(
    faults: tuple[table.Fault, ...], recordings: list[Recording]
) -> None:
    seconds = {r.fault.name: r for r in recordings if r.seed == 11}
    firsts = {r.fault.name: r for r in recordings if r.seed == 0}
    assert len(seconds) == len(faults)
    assert all(seconds[name].wrapper == first.wrapper for name, first in firsts.items())
    assert all(max(r.ranks, default=0) < r.world for r in recordings)
    assert {2, 3, 5, 6, 8} <= {r.world for r in seconds.values()}
    assert all(r.world == 4 for r in seconds.values() if (r.fault.outside or "").startswith(("net:", "node:")))


@pytest.mark.parametrize(
    ("fault", "codes", "message"),
    [("slow_read", (0,), "ended with"), ("healthy", (1,), "ended with"), ("all_raise", (0,), "ended with")],
)
def test_a_run_that_ends_otherwise_than_its_fault_is_refused(
    recordings: list[Recording], tmp_path: Path, fault: str, codes: tuple[int, ...], message: str
) -> None:
    run = Run(files={"console.log": b"step 1\n"}, dumps={}, facts={}, codes=codes, seconds=1.0)
    with pytest.raises(NoIncidentError, match=message):
        stored_logs(_of(recordings, fault), run, tmp_path)
    good = Run(files=run.files, dumps={}, facts={}, codes=(0,) if fault == "healthy" else (1,), seconds=1.0)
    assert stored_logs(_of(recordings, fault), good, tmp_path) == {"console.log": "step 1\n"}


def test_dumps_are_scrubbed_and_refused_if_a_path_is_left(tmp_path: Path) -> None:
    dumps = {"traces/comm_lib_trace_rank_0.json": f'{{"filename":"{tmp_path}/app/job.py"}}'.encode()}
    run = Run(files={}, dumps=dumps, facts={}, codes=(1,), seconds=1.0)
    assert rendered_dumps(run, tmp_path) == {"traces/comm_lib_trace_rank_0.json": '{"filename":"/opt/app/job.py"}'}
    with pytest.raises(NoIncidentError, match="still holds"):
        rendered_dumps(run, tmp_path / "elsewhere")


def test_a_telling_line_names_the_wait_before_the_end() -> None:
    files = {"attempt_0/1/stderr.log": GLOO.format(1), "torchrun.log": "exitcode  : 1 (pid: 7)\n"}
    assert "Timed out waiting 8000ms" in telling_line(files)
    assert telling_line({"torchrun.log": "a\n  exitcode  : 1 (pid: 7)\n"}) == "exitcode  : 1 (pid: 7)"
    assert telling_line({"torchrun.log": "step 1\n"}) == ""


def _told(recording: Recording, found: bool | None, *blamed: int, **incident: object) -> Told:
    content = {"label": recording.fault.label, **incident}
    return Told(recording=recording, incident=content, line="a | b", dumps=2, found=found, blamed=blamed)


def test_the_table_has_a_row_for_each_fault_and_wrapper(recordings: list[Recording]) -> None:
    reads = [r for r in recordings if r.fault.name == "slow_read" and r.world == 4 and not r.transcribed]
    told = [_told(r, True, 2, waiting_ranks=[0, 1, 3], timeout_s=8.0) for r in reads]
    told.append(_told(_of(recordings, "slow_save"), None))
    text = rendered(told)
    rows = [line for line in text.split("\n") if line.startswith("| slow_")]
    assert len(rows) == 4
    assert r"`a \| b` | 0, 1, 3 | yes | 2 of 4 | right |" in rows[1]
    assert rows[0].startswith("| slow_save (test) |")
    assert rows[0].endswith("| - |")
    assert "3 of 3 read as what they are" in text


def test_totals_count_the_guilty_ranks_of_those_that_were_read(recordings: list[Recording]) -> None:
    reads = [r for r in recordings if r.fault.name == "slow_read" and r.world == 4][:3]
    told = [_told(reads[0], True, 2), _told(reads[1], True), _told(reads[2], True, 1)]
    counted = totals(told)[1]
    assert "there are dumps: right in 1 of 3 (none named in 1, another in 1)" in counted
    assert "without their dumps: right in 0 of 3 (none named in 3, another in 0)" in counted
    assert "recordings without dumps: right in 0 of 0" in counted
    link = _of(recordings, "narrow_link")
    assert "one is shown absent in 1 of 2" in totals([_told(link, True), _told(link, True, 1)])[1]


def test_the_table_replaces_its_older_self(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("# Head\n")
    write_into(path, "first\n")
    write_into(path, "second\n")
    assert "first" not in path.read_text()
    assert path.read_text().startswith("# Head\n")
    assert path.read_text().count("second") == 1


def test_an_incident_is_written_whole(tmp_path: Path, recordings: list[Recording]) -> None:
    folder = tmp_path / "lab_train" / "lab-1"
    write(recordings[0], {"id": "lab-1", "label": "other"}, {"attempt_0/0/stderr.log": "a\n"}, folder)
    assert (folder / "logs/attempt_0/0/stderr.log").read_text() == "a\n"
    assert json.loads((folder / "incident.json").read_text())["id"] == "lab-1"
    assert [p.name for p in folder.parent.iterdir()] == ["lab-1"]


def test_recordings_are_loadable_small_and_name_no_machine() -> None:
    from fsdpclassify.labelled import load_all

    assert len(load_all([ROOT / "data" / "lab"])) == len(RECORDED)
    assert sum(p.stat().st_size for p in (ROOT / "data" / "lab").rglob("*") if p.is_file()) < 40_000_000
    for folder in RECORDED:
        for path in (p for p in (folder / "logs").rglob("*") if p.is_file()):
            text = path.read_text()
            assert not re.search(r"/tmp/|/root/|/work/|RUN_PROFILE|transcribed", text), path


def test_decisive_lines_of_recordings_exist() -> None:
    for folder in RECORDED:
        for place in json.loads((folder / "incident.json").read_text()).get("decisive_lines", []):
            name, _, number = place.rpartition(":")
            assert int(number) <= (folder / "logs" / name).read_text().count("\n") + 1, folder.name


def test_recorded_dumps_are_dumps_of_ranks_of_their_run() -> None:
    from fsdpclassify.recorder.dumps import read_dump
    from fsdpclassify.recorder.loading import load

    with_dumps = [folder for folder in RECORDED if stored(folder, "*.json")]
    assert len(with_dumps) >= 40
    for folder in with_dumps:
        for name, text in stored(folder, "*.json").items():
            assert re.fullmatch(r"traces/comm_lib_trace_rank_[0-7]\.json", name), folder.name
            assert read_dump(load(text.encode())).works, folder.name


def test_what_is_recorded_reaches_the_numbers_that_the_lab_is_for(recordings: list[Recording]) -> None:
    there = [r for r in recordings if (ROOT / "data/lab" / r.fault.split / r.id).is_dir()]
    assert len(there) == len(RECORDED)
    seeds = Counter((r.fault.name, r.wrapper) for r in there if not r.transcribed)
    wrappers = Counter(name for name, _ in seeds)
    assert sum(count >= 2 for count in seeds.values()) >= 25
    assert sum(count == 3 for count in wrappers.values()) >= 10
    assert {2, 8} <= {r.world for r in there}


def test_the_readme_has_a_row_for_everything_recorded(recordings: list[Recording]) -> None:
    text = (ROOT / "data/lab/README.md").read_text()
    for recording in recordings:
        if (ROOT / "data/lab" / recording.fault.split / recording.id).is_dir():
            split = recording.fault.split.removeprefix("lab_")
            row = rf"^\| {recording.fault.name} \({split}\) \| {recording.fault.label} \| {recording.wrapper} \|"
            assert re.search(row, text, re.MULTILINE), recording.name


def test_the_test_split_is_described_but_not_read(recordings: list[Recording]) -> None:
    of_test = [r for r in recordings if r.fault.split == "lab_test"]
    told = tell(of_test, ROOT / "data" / "lab")
    assert told
    assert all(t.found is None and t.verdict == "-" for t in told)


def _taxonomy() -> dict[str, Any]:
    return tomllib.loads((ROOT / "data" / "taxonomy.toml").read_text())
