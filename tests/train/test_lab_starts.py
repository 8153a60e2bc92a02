"""The fault lab: launchers besides torchrun, runs that are listed one by one, and what their logs show."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.train.lab_making import GLOO, planned
from train.lab import deeds
from train.lab.faults import FRESH, load_faults
from train.lab.plan import Recording, plan
from train.lab.starts import Tasks
from train.lab.witness import attest

#: A rank that speaks, tells its port and ends as its number says.
SCRIPT = """
import os, signal, sys
rank = int(os.environ["RANK"])
print("rank", rank, "of", os.environ["WORLD_SIZE"], "port", os.environ["MASTER_PORT"], flush=True)
sys.stdout.write("no newline")
sys.stdout.flush()
if rank == 2:
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(3 * rank)
"""


def _listed(launcher: str, **wanted: object) -> Recording:
    found = next(r for r in planned() if r.launcher == launcher and not r.on_two_nodes)
    return replace(found, world=3, script="minimal", **wanted)  # type: ignore[arg-type]


def _run(recording: Recording, work: Path) -> dict[str, str]:
    (work / "app").mkdir()
    (work / "logs").mkdir()
    (work / "app" / "minimal.py").write_text(SCRIPT)
    tasks = Tasks(recording, work, dict(os.environ))
    assert [p.wait(60) for p in tasks.processes] == [0, 3, -9]
    tasks.finish()
    return {p.name: p.read_text() for p in sorted((work / "logs").iterdir())}


def test_labels_and_reports_are_those_of_the_scheduler(tmp_path: Path) -> None:
    (text,) = _run(_listed("srun"), tmp_path).values()
    lines = text.splitlines()
    assert {"0: rank 0 of 3 port 29600", "1: rank 1 of 3 port 29600", "2: no newline"} <= set(lines)
    assert "srun: error: gpu-node0: task 1: Exited with exit code 3" in lines
    assert "srun: error: gpu-node0: task 2: Killed" in lines
    assert not any("task 0" in line for line in lines)


def test_a_file_a_rank_holds_its_output_as_it_is(tmp_path: Path) -> None:
    files = _run(_listed("files"), tmp_path)
    assert list(files) == ["train-0.log", "train-1.log", "train-2.log"]
    assert files["train-2.log"] == "rank 2 of 3 port 29600\nno newline"


def test_one_rank_can_be_given_another_port(tmp_path: Path) -> None:
    fault = next(f for f in load_faults() if f.outside == "port")
    recording = replace(next(r for r in planned() if r.fault == fault), world=3, script="minimal")
    files = _run(recording, tmp_path)
    assert "port 29611" in files["train-2.log"]
    assert "port 29600" in files["train-0.log"]


def test_a_signal_from_outside_meets_only_ranks_of_this_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deeds, "PORT", 39917)
    marks = {"RUN_PROFILE": "{}", "RANK": "3"}
    ours, other = (
        subprocess.Popen(
            [sys.executable, "-c", "print('up', flush=True); input()"],
            env={**os.environ, **marks, "MASTER_PORT": port},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for port in ("39917", "39918")
    )
    for process in (ours, other):
        assert process.stdout is not None
        process.stdout.readline()
    shot = next(r for r in planned() if r.fault.outside == "kill")
    act = deeds.action_on(shot, [])
    assert act is not None
    act()
    assert ours.wait(20) == -9
    assert other.poll() is None
    other.communicate(b"\n", timeout=20)
    ours.communicate()


def test_listed_recordings_are_the_whole_plan_of_their_fault() -> None:
    for fault in (f for f in load_faults() if f.split == FRESH):
        made = plan([fault])
        assert len(made) == len(fault.runs)
        assert len({r.id for r in made}) == len(made)
        assert all(max(r.ranks, default=0) < r.world for r in made)


@pytest.mark.parametrize("run", [{"launcher": "ssh"}, {"script": "titan"}, {"wrapper": "zero3"}, {"dumps": "xml"}])
def test_an_unknown_choice_in_a_listed_run_is_refused(run: dict[str, str]) -> None:
    fault = next(f for f in load_faults() if f.split == FRESH)
    with pytest.raises(ValueError, match="unknown"):
        plan([replace(fault, runs=({**fault.runs[0], **run},))])


@pytest.mark.parametrize(("split", "runs"), [("lab_fresh", ""), ("lab_test", 'runs = [{ script = "titan" }]')])
def test_runs_are_listed_in_one_split_alone(tmp_path: Path, split: str, runs: str) -> None:
    path = tmp_path / "faults.toml"
    path.write_text(f'[[fault]]\nname = "a"\nlabel = "other"\ncause = "b"\nsplit = "{split}"\n{runs}\n')
    with pytest.raises(ValueError, match="listed in"):
        load_faults(path)


def test_the_parent_of_spawned_processes_tells_one_rank_that_waited() -> None:
    error = GLOO.format(2).replace("[rank2]: ", "")
    assert attest({"console.log": f"-- Process 2 terminated with the following error:\n{error}"}).waiting == (2,)
    other = "-- Process 1 terminated with the following error:\nKeyError: 'x'\n"
    assert attest({"console.log": other}).waiting == ()


def test_ranks_without_a_group_are_told_by_label_or_file() -> None:
    joined = "torch.distributed.DistStoreError: Timed out after 13 seconds waiting for clients. 3/4 clients joined.\n"
    lost = "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed.\n"
    assert attest({"slurm-41823.out": f"0: {joined}3: {lost}1: ok\n"}).waiting == (0, 3)
    assert attest({"train-0.log": joined, "train-1.log": lost, "train-2.log": "ok\n"}).waiting == (0, 1)


def test_a_rank_that_aborts_on_a_size_is_told_by_label_or_file() -> None:
    text = "  what():  [enforce fail at pair.cc:456] op.preamble.length <= op.nbytes. 12 vs 8.\n"
    assert attest({"train-2.log": text}).waiting == (2,)
    assert attest({"slurm-41823.out": f"1: {text}"}).waiting == (1,)
