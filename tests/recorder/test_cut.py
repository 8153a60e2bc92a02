"""Dumps that were cut off: what was complete is used, and what was lost speaks against nobody."""

from __future__ import annotations

import json
import pickle
import time
from pathlib import Path
from types import ModuleType

import pytest

from fsdpclassify.reading import find
from fsdpclassify.recorder.dumps import read_dump
from fsdpclassify.recorder.failures import DumpError
from fsdpclassify.recorder.loading import MAX_JSON_VALUES, load, load_part
from fsdpclassify.recorder.texts import completed_json
from fsdpclassify.records import InputStatus
from fsdpclassify.sources import collect


def whole(make: ModuleType, count: int = 40) -> dict[str, object]:
    found: dict[str, object] = make.dump(make.steps(count), groups=make.WORLD)
    return found


def forms(make: ModuleType, found: dict[str, object]) -> dict[str, bytes]:
    """As a process writes it, as somebody saves it anew, with the entries first, and as JSON."""
    return {
        "protocol 2": make.as_pickle(found),
        "protocol 5": pickle.dumps(found, protocol=5),
        "entries first": pickle.dumps({"entries": found["entries"], **found}, protocol=2),
        "json": make.as_json(found),
        "json, spread": json.dumps(found, indent=1).encode(),
    }


@pytest.mark.parametrize("form", ["protocol 2", "protocol 5", "entries first", "json", "json, spread"])
@pytest.mark.parametrize("share", [0.35, 0.5, 0.77, 0.95])
def test_complete_entries_of_a_cut_dump_are_kept(make: ModuleType, form: str, share: float) -> None:
    data = forms(make, whole(make))[form]
    cut = data[: int(share * len(data))]
    with pytest.raises(DumpError) as caught:
        load(cut)
    assert caught.value.is_cut
    works = read_dump(load_part(cut), is_cut=True).works
    assert 5 < len(works) < 40
    every = read_dump(load(data)).works
    assert works == every[: len(works)], "none is half of one"


@pytest.mark.parametrize("form", ["protocol 2", "protocol 5", "json"])
def test_wherever_it_is_cut_nothing_is_made_up(make: ModuleType, form: str) -> None:
    data = forms(make, whole(make, 4))[form]
    every = read_dump(load(data)).works
    for end in range(2, len(data)):
        try:
            found = read_dump(load_part(data[:end]), is_cut=True)
        except DumpError:
            continue
        assert found.works == every[: len(found.works)]


def test_a_cut_dump_is_used_and_said_to_be_cut(make: ModuleType, tmp_path: Path) -> None:
    dumps = make.lagging_rank()
    make.write(tmp_path, dumps)
    path = tmp_path / "comm_lib_trace_rank_0"
    path.write_bytes(path.read_bytes()[:-200])
    found = find(collect([tmp_path]))
    row = found.inputs[0]
    assert row.status is InputStatus.TRUNCATED
    assert row.message is not None
    assert "calls before that are used" in row.message
    assert found.recorded is not None
    assert sorted(found.recorded.sources) == [0, 1, 2, 3]
    assert found.recorded.front.initiating == (3,)


def test_a_rank_whose_newest_calls_were_cut_off_is_not_shown_behind(make: ModuleType, tmp_path: Path) -> None:
    """Its file may lack them and not the rank: who is shown behind by a whole dump comes first."""
    dumps = {rank: {**found, "pg_status": {}} for rank, found in make.lagging_rank().items()}
    make.write(tmp_path, dumps)
    path = tmp_path / "comm_lib_trace_rank_1"
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    (incident,) = find(collect([tmp_path])).incidents
    assert incident.missing == (3,)


def test_what_could_run_code_is_refused_in_a_cut_dump_too(make: ModuleType) -> None:
    evil = make.as_pickle(whole(make))[:-2] + b"cos\nsystem\n"
    with pytest.raises(DumpError, match="GLOBAL"):
        load_part(evil)


def test_hostile_text_that_never_ends_takes_no_longer_than_its_length() -> None:
    start = b'{"pg_config": {}, "entries": [{"a": 1}, '
    for tail in (b'"' + b'\\"' * 400_000, b"[" * 400_000, b'{"' * 200_000, b'"\\' * 200_000):
        began = time.process_time()
        assert len(completed_json(start + tail)) <= 1
        assert time.process_time() - began < 2.0
    assert MAX_JSON_VALUES >= 400_000
