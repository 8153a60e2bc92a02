"""The fault lab: what it reads from a run, and what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.train.lab_making import FACTS, GLOO, first_of, planned
from train.lab.launch import Run
from train.lab.scrub import Scrubber
from train.lab.store import NoIncidentError, describe, write
from train.lab.store import rendered as stored_logs
from train.lab.transcribe import transcribe
from train.lab.witness import attest, decisive_lines, telling_line


def test_waiting_ranks_come_from_the_text_alone() -> None:
    seen = attest({"console.log": GLOO.format(3) + "step 4\n" + GLOO.format(0)})
    assert seen.waiting == (0, 3)
    assert seen.timeout_s == 8.0
    assert seen.incident


def test_a_read_that_was_repeated_is_no_incident() -> None:
    assert not attest({"train-1.log": "read of shard 00017 timed out after 5 s, retry 1 of 5\n"}).incident
    assert attest({"train-1.log": "The client socket has timed out after 12000ms while trying to connect\n"}).incident


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


def test_the_silent_rank_is_the_initiating_one() -> None:
    recording = first_of("slow_read", wrapper="fsdp2", transcribed=False)
    found = describe(recording, {"console.log": "".join(GLOO.format(r) for r in (0, 1, 3))})
    assert found["initiating_ranks"] == [2]
    assert found["waiting_ranks"] == [0, 1, 3]
    assert found["world_size"] is None
    assert "2" not in json.dumps(found["id"])[:3]


def test_no_rank_is_blamed_where_all_speak_and_nothing_tells_them_apart() -> None:
    recording = first_of("slow_read", script="pretrain", transcribed=False)
    found = describe(recording, {"console.log": "".join(GLOO.format(r) for r in range(4))})
    assert "initiating_ranks" not in found


def test_a_log_without_the_wait_is_not_recorded_as_one() -> None:
    with pytest.raises(NoIncidentError):
        describe(first_of("slow_read"), {"console.log": "step 4\n"})
    crash = describe(first_of("bad_sample"), {"console.log": "ValueError: cannot decode\n"})
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


@pytest.mark.parametrize(
    ("fault", "codes", "message"),
    [("slow_read", (0,), "ended with"), ("healthy", (1,), "ended with"), ("all_raise", (0,), "ended with")],
)
def test_a_run_that_ends_otherwise_than_its_fault_is_refused(
    tmp_path: Path, fault: str, codes: tuple[int, ...], message: str
) -> None:
    run = Run(files={"console.log": b"step 1\n"}, dumps={}, facts={}, codes=codes, seconds=1.0)
    with pytest.raises(NoIncidentError, match=message):
        stored_logs(first_of(fault), run, tmp_path)
    good = Run(files=run.files, dumps={}, facts={}, codes=(0,) if fault == "healthy" else (1,), seconds=1.0)
    assert stored_logs(first_of(fault), good, tmp_path) == {"console.log": "step 1\n"}


def test_a_telling_line_names_the_wait_before_the_end() -> None:
    files = {"attempt_0/1/stderr.log": GLOO.format(1), "torchrun.log": "exitcode  : 1 (pid: 7)\n"}
    assert "Timed out waiting 8000ms" in telling_line(files)
    assert telling_line({"torchrun.log": "a\n  exitcode  : 1 (pid: 7)\n"}) == "exitcode  : 1 (pid: 7)"
    assert telling_line({"torchrun.log": "step 1\n"}) == ""


def test_an_incident_is_written_whole(tmp_path: Path) -> None:
    folder = tmp_path / "lab_train" / "lab-1"
    write(planned()[0], {"id": "lab-1", "label": "other"}, {"attempt_0/0/stderr.log": "a\n"}, folder)
    assert (folder / "logs/attempt_0/0/stderr.log").read_text() == "a\n"
    assert json.loads((folder / "incident.json").read_text())["id"] == "lab-1"
    assert [p.name for p in folder.parent.iterdir()] == ["lab-1"]
