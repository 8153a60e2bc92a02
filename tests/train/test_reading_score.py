"""The score of reading alone: each of its words, and the exit code for an incident that was not found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fsdpclassify.labelled import load_all
from train.reading_score import main, read_all, totals

WORK = "WorkNCCL(SeqNum=8, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600000 milliseconds"


def watchdog(rank: int) -> str:
    return (
        f"[rank{rank}]:[E305 04:11:09.7 x.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: {WORK}\n"
    )


def write(root: Path, name: str, log: str, **stated: object) -> None:
    (root / name / "logs").mkdir(parents=True)
    (root / name / "logs" / "a.log").write_text(log)
    (root / name / "incident.json").write_text(json.dumps({"schema_version": 1, "id": name, **stated}))


@pytest.mark.parametrize(
    ("log", "stated", "words"),
    [
        (watchdog(0), {"label": "desync", "waiting_ranks": [0, 1]}, ("right", "-", "subset", "-")),
        (watchdog(0), {"label": "desync", "waiting_ranks": [1]}, ("right", "-", "wrong", "-")),
        (watchdog(0), {"label": "desync"}, ("right", "-", "unstated", "-")),
        ("world_size=4\n" + watchdog(0), {"label": "desync", "world_size": 4}, ("right", "right", "unstated", "-")),
        ("world_size=4\n" + watchdog(0), {"label": "desync", "world_size": 8}, ("right", "wrong", "unstated", "-")),
        (watchdog(0), {"label": "straggler", "world_size": 2, "waiting_ranks": [0], "initiating_ranks": [1]},
         ("right", "null", "exact", "empty")),
        ("all is well\n", {"label": "desync", "world_size": 4, "waiting_ranks": [0]}, ("wrong", "-", "-", "-")),
        ("all is well\n", {"label": "no_timeout"}, ("right", "-", "-", "-")),
    ],
)  # fmt: skip
def test_words(tmp_path: Path, log: str, stated: dict[str, object], words: tuple[str, ...]) -> None:
    write(tmp_path, "inc-001", log, **stated)
    (score,) = read_all(load_all([tmp_path]))
    assert (score.found, score.world, score.waiting, score.absent) == words


def test_a_missed_incident_is_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "inc-001", watchdog(0), label="desync", waiting_ranks=[0])
    assert main(["--incidents", str(tmp_path)]) == 0
    write(tmp_path, "inc-060", "all is well\n", label="desync")
    assert main(["--incidents", str(tmp_path)]) == 1
    assert main(["--incidents", str(tmp_path), "--subset", "reference", "--json"]) == 0
    last = capsys.readouterr().out.rsplit("wrong 1", 1)[1]
    assert json.loads(last[last.index("{") :])["totals"]["waiting"] == {"exact": 1}


def test_totals_count_every_incident(tmp_path: Path) -> None:
    for n, log in enumerate((watchdog(0), watchdog(1), "fine\n")):
        write(tmp_path, f"inc-00{n}", log, label="desync", waiting_ranks=[0])
    assert totals(read_all(load_all([tmp_path])))["waiting"] == {"-": 1, "exact": 1, "wrong": 1}
