from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fsdpclassify.errors import LabelledIncidentError
from fsdpclassify.training.examples import Example, load, read_example, read_examples, repository, save

Make = Callable[..., Example]
TIMEOUT = (
    "[rank0]:[E512 21:10:07.118820344 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600013"
    " milliseconds before timing out.\n"
)


def _incident(folder: Path, text: str = f"[rank1]: saving took 590 s\n{TIMEOUT}", **keys: object) -> Path:
    (folder / "logs").mkdir(parents=True)
    (folder / "logs" / "a.log").write_text(text)
    content = {"schema_version": 1, "id": folder.name, "label": "straggler"} | keys
    (folder / "incident.json").write_text(json.dumps(content))
    return folder


def test_features_come_from_the_files_and_the_label_from_the_folder_s_card(tmp_path: Path) -> None:
    found = read_example(_incident(tmp_path / "x", decisive_lines=["a.log:1"], cause_id="slow_disk"))
    assert (found.id, found.label, found.cause, found.found) == ("x", "straggler", "slow_disk", True)
    assert found.decisive == (True, False)
    assert len(found.texts) == len(found.facts) == 2


def test_neither_the_folder_s_name_nor_the_card_enters_a_feature(tmp_path: Path) -> None:
    one = read_example(_incident(tmp_path / "desync-rank3"))
    two = read_example(_incident(tmp_path / "y", label="desync", world_size=64, waiting_ranks=[5], cause="a sentence"))
    assert (one.texts, one.facts, one.ledger, one.sha256) == (two.texts, two.facts, two.ledger, two.sha256)


def test_logs_without_an_incident_are_an_example_that_was_not_found(tmp_path: Path) -> None:
    found = read_example(_incident(tmp_path / "x", "all is well\n"))
    assert (found.found, found.texts, found.ledger) == (False, (), ())
    hung = read_example(_incident(tmp_path / "y", "[rank0]: step 1 loss 2\n", hung=True))
    assert hung.found


def test_the_last_incident_is_the_labelled_one(tmp_path: Path) -> None:
    first = "2026-05-12T21:10:07Z " + TIMEOUT
    step = "2026-05-12T21:20:00Z [rank0]: step 9 loss 2.1\n2026-05-12T21:30:00Z [rank3]: the lease was kept\n"
    found = read_example(_incident(tmp_path / "x", first + step + first.replace("21:10", "21:40")))
    assert any("lease" in text for text in found.texts)


def test_folders_are_read_in_the_order_of_their_paths(tmp_path: Path) -> None:
    for name in ("b", "a", "c/d"):
        _incident(tmp_path / name)
    assert [e.id for e in read_examples(tmp_path)] == ["a", "b", "d"]
    assert [e.id for e in read_examples(tmp_path / "b")] == ["b"]


def test_a_folder_without_incidents_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabelledIncidentError, match="incident"):
        read_examples(tmp_path)


@pytest.mark.parametrize(
    ("source", "unit"),
    [
        ("https://example.org/Owner/Repo/issues/7", "owner/repo"),
        ("https://example.org/Owner/Repo/pull/9#note", "owner/repo"),
        ("https://example.org/alone", "https://example.org/alone"),
        ("lab run", "lab run"),
    ],
)
def test_leave_one_out_goes_by_repository(source: str, unit: str) -> None:
    assert repository(source) == unit


def test_what_is_saved_is_loaded(make_example: Make, tmp_path: Path) -> None:
    given = [make_example("a", "desync"), make_example("b", "ours", ("é\u2028",), cause="c", alt_label="desync")]
    save(tmp_path / "deep" / "x.jsonl", given)
    assert load(tmp_path / "deep" / "x.jsonl") == given
