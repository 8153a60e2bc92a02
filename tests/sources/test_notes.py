"""Notes, scripts and configurations beside logs: recognised, listed with a message, and no evidence."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from fsdpclassify.reading import find
from fsdpclassify.records import InputStatus
from fsdpclassify.sources import collect, from_text, read
from fsdpclassify.sources.notes import no_log

TIMEOUT = (
    "[rank{r}]:[E305 04:11:09.778120334 ProcessGroupNCCL.cpp:632] [Rank {r}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600000 "
    "milliseconds before timing out."
)
HEALTHY = "".join(f"2026-03-05 04:00:{n:02d} INFO step {n} loss 2.{n}\n" for n in range(9))
SAYS = TIMEOUT.format(r=3)
BESIDE = {
    "notes.md": f"# The run of last week\n\n- it died on node 7:\n\n```\n{SAYS}\n"
    f"{TIMEOUT.format(r=4)}\n```\nWe raised it.\n",
    "run.sh": f"#!/bin/bash\nexport NCCL_P2P_DISABLE=1  # fixes {SAYS}\nexec torchrun train.py\n",
    "scripts/train.py": f'"""Trains.\n\n{SAYS}\n"""\nimport torch\n',
    "conf/config.yaml": f"trainer:\n  timeout: 600  # else {SAYS}\n",
    "README": f"Read this first.\n{SAYS}\n",
    "notes.txt": f"{SAYS}\n",
    "what happened.txt": (
        f"Hi all, this is what we saw on Tuesday after the update of the driver.\n{SAYS}\n"
        "I think that it was the switch, because it had been slow for days and the others were not.\n"
        "We have moved the job to other nodes and it is fine for now.\n"
    ),
    "job": f"#!/usr/bin/env bash\n# {SAYS}\nsrun python train.py\n",
    "trainer_state.json": '{\n "log_history": [\n  {"step": 4000, "note": "' + SAYS + '"}\n ]\n}\n',
    "old/notes.md.gz": f"{SAYS}\n",
    "log_utils.py": f"# {SAYS}\n",
    "lab-log.md": f"{SAYS}\n",
}


@pytest.mark.parametrize("name", BESIDE)
def test_what_lies_beside_a_log_makes_no_incident(name: str, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(HEALTHY)
    beside = tmp_path / name
    beside.parent.mkdir(exist_ok=True)
    text = BESIDE[name].encode()
    beside.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    found = find(collect([tmp_path]))
    assert found.incidents == ()
    (row,) = [row for row in found.inputs if row.path == name]
    assert (row.status, row.kind, row.lines) == (InputStatus.OK, None, 0)
    assert row.bytes == len(text) or name.endswith(".gz")
    assert row.message is not None
    assert "no log" in row.message


@pytest.mark.parametrize("name", BESIDE)
def test_the_only_input_is_read_as_a_log_whatever_its_name(name: str, tmp_path: Path) -> None:
    only = tmp_path / Path(name).name.removesuffix(".gz")
    only.write_text(BESIDE[name])
    reading = read(collect([only]))
    assert reading.inputs[0].message is None
    assert len(reading.lines) == reading.inputs[0].lines > 0


def test_members_of_an_archive_are_judged_alike(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in (("a/run.sh", BESIDE["run.sh"]), ("a/train.log", HEALTHY)):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    rows = read(collect([path])).inputs
    assert [(row.path.rsplit("!", 1)[-1], row.lines) for row in rows] == [("a/run.sh", 0), ("a/train.log", 9)]


def test_text_in_memory_is_always_a_log() -> None:
    assert len(read(from_text([SAYS + "\n", BESIDE["run.sh"]])).lines) == 4


LOGS = {
    "slurm-4417.out": "#!/bin/bash\n#SBATCH -N 2\n" + SAYS + "\n",  # a job that prints its own script first
    "train.py.log": SAYS + "\n",
    "job.sh.o4417": SAYS + "\n",
    "job.sh.e4417": SAYS + "\n",
    "log.txt": "#!/bin/sh\n" + SAYS + "\n",
    "log_rank3.txt": SAYS + "\n",
    "train.log.2": SAYS + "\n",
    "worker.md": (TIMEOUT.format(r=1) + "\n") * 20,
    "rank3": SAYS + "\n",
    "paste.txt": SAYS + "\nSome NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA "
    "kernels, subsequent GPU operations might run on corrupted/incomplete data.\n"
    "To avoid data inconsistency, we are taking the entire process down.\n",
    "events.yaml": "apiVersion: v1\nkind: List\nitems:\n- kind: Event\n  message: OOMKilled\n",
    "pod.json": '{\n "kind": "Pod",\n "status": {"reason": "OOMKilled"}\n}\n',
    "lines.json": '{"log": "step 1"}\n{"log": "step 2"}\n',
}


@pytest.mark.parametrize("name", LOGS)
def test_logs_by_other_names(name: str) -> None:
    assert no_log(f"run/{name}", LOGS[name].encode()) is None


def test_a_configuration_printed_inside_a_log_stays(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Runs\n")
    (tmp_path / "train.log").write_text("trainer:\n  timeout: 600\n  seed: 3\n" + HEALTHY)
    rows = read(collect([tmp_path])).inputs
    assert [row.lines for row in rows] == [0, 12]
