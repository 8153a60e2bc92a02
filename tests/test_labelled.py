from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fsdpclassify.errors import LabelledIncidentError
from fsdpclassify.labelled import content_sha256, incident_folders, load, load_all, neutral_logs


def _write(folder: Path, logs: str = "hello\n", **changes: object) -> Path:
    (folder / "logs").mkdir(parents=True)
    (folder / "logs" / "a.log").write_text(logs)
    content = {"schema_version": 1, "id": folder.name, "label": "desync", **changes}
    (folder / "incident.json").write_text(json.dumps({k: v for k, v in content.items() if v is not ...}))
    return folder


def test_the_documented_keys_are_read(tmp_path: Path) -> None:
    folder = _write(
        tmp_path / "one",
        alt_label="straggler",
        cause_id="fewer_batches_on_one_rank",
        initiating_ranks=[3, 1],
        waiting_ranks=[],
        decisive_lines=["a.log:1", "node1/b:2.log:7"],
        determinable_from_log="partly",
        world_size=4,
        timeout_s=600,
        hung=True,
    )
    found = load(folder)
    assert found.initiating_ranks == (1, 3)
    assert found.waiting_ranks == ()
    assert found.decisive_lines == (("a.log", 1), ("node1/b:2.log", 7))
    assert found.hung
    assert found.timeout_s == 600.0
    assert found.cause_id == "fewer_batches_on_one_rank"


def test_what_is_not_stated_is_none(tmp_path: Path) -> None:
    found = load(_write(tmp_path / "one"))
    assert found.initiating_ranks is None
    assert found.world_size is None
    assert not found.hung


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema_version": 2}, "schema_version: must be 1"),
        ({"schema_version": True}, "schema_version: must be 1"),
        ({"schema_version": ...}, "schema_version: must be 1"),
        ({"label": ...}, "label: is missing"),
        ({"label": "two words"}, "label: must be a label"),
        ({"label": None}, "label: must be a label"),
        ({"id": 3}, "id: must be a text"),
        ({"waiting_ranks": [1, "2"]}, "waiting_ranks: must be a list of global ranks"),
        ({"waiting_ranks": [True]}, "waiting_ranks: must be a list of global ranks"),
        ({"initiating_ranks": [-1]}, "initiating_ranks: must be a list of global ranks"),
        ({"decisive_lines": ["a.log"]}, "decisive_lines: 'a.log' must read"),
        ({"decisive_lines": ["a.log:0"]}, "decisive_lines: 'a.log:0' must read"),
        ({"decisive_lines": [7]}, "decisive_lines: 7 must read"),
        ({"determinable_from_log": "maybe"}, "determinable_from_log: must be one of yes, partly, no"),
        ({"world_size": 0}, "world_size: must be a whole number"),
        ({"timeout_s": "600"}, "timeout_s: must be a number"),
        ({"hung": 1}, "hung: must be true or false"),
        ({"cause": " "}, "cause: must be a text"),
        ({"waiting_rank": [1]}, "waiting_rank: is not a known key; did you mean waiting_ranks?"),
    ],
)
def test_a_fault_names_the_file_and_the_key(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    folder = _write(tmp_path / "one", **changes)
    with pytest.raises(LabelledIncidentError) as caught:
        load(folder)
    assert str(folder / "incident.json") in str(caught.value)
    assert message in str(caught.value)


def test_notes_of_the_user_are_no_fault(tmp_path: Path) -> None:
    assert load(_write(tmp_path / "one", ticket="OPS-12", basis="reporter")).label == "desync"


def test_damaged_json_and_missing_logs_are_named(tmp_path: Path) -> None:
    folder = _write(tmp_path / "one")
    (folder / "incident.json").write_text("{")
    with pytest.raises(LabelledIncidentError, match="not valid JSON"):
        load(folder)
    (folder / "incident.json").write_text("[]")
    with pytest.raises(LabelledIncidentError, match="one JSON object"):
        load(folder)
    other = _write(tmp_path / "two")
    (other / "logs" / "a.log").unlink()
    with pytest.raises(LabelledIncidentError, match="holds no file"):
        load(other)


def test_incidents_are_found_below_a_folder_in_order_and_once(tmp_path: Path) -> None:
    for name in ("b", "a", "deep/c"):
        _write(tmp_path / name)
    found = load_all([tmp_path, tmp_path / "a"])
    assert [incident.id for incident in found] == ["a", "b", "c"]
    with pytest.raises(LabelledIncidentError, match=r"no incident\.json"):
        incident_folders(tmp_path / "a" / "logs")
    with pytest.raises(LabelledIncidentError, match="not a folder"):
        incident_folders(tmp_path / "nowhere")


def test_an_id_may_not_stand_for_two_incidents(tmp_path: Path) -> None:
    _write(tmp_path / "x", id="same")
    _write(tmp_path / "y", id="same")
    with pytest.raises(LabelledIncidentError, match="id: 'same' is also that of"):
        load_all([tmp_path])


def test_an_incident_json_among_the_logs_is_no_incident(tmp_path: Path) -> None:
    folder = _write(tmp_path / "one")
    (folder / "logs" / "incident.json").write_text("{}")
    assert incident_folders(tmp_path) == [folder]


def test_the_content_hash_follows_the_logs_and_nothing_else(tmp_path: Path) -> None:
    one = load(_write(tmp_path / "one", logs="text"))
    two = load(_write(tmp_path / "straggler-two", logs="text", label="straggler"))
    three = load(_write(tmp_path / "three", logs="other text"))
    assert content_sha256(one) == content_sha256(two) != content_sha256(three)


def test_logs_are_read_from_a_path_that_tells_nothing(tmp_path: Path) -> None:
    incident = load(_write(tmp_path / "straggler-rank7", logs="text"))
    (incident.logs / "node1").mkdir()
    (incident.logs / "node1" / "b.log").write_text("more")
    with neutral_logs(incident) as logs:
        assert "straggler" not in str(logs)
        assert (logs / "a.log").read_text() == "text"
        assert (logs / "node1" / "b.log").read_text() == "more"
    assert not logs.exists()
    assert (incident.logs / "a.log").exists()
