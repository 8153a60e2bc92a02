"""The fault lab: what its dumps imply, and how they are stored."""

from __future__ import annotations

import importlib.util
import json
import pickle
from pathlib import Path
from types import ModuleType

import pytest

from fsdpclassify.recorder.loading import load
from tests.train.lab_making import GLOO, ROOT, dump, dumps_of, first_of
from train.lab.dumps import apart
from train.lab.launch import Run
from train.lab.pickled import rewritten, strings
from train.lab.store import NoIncidentError, describe, rendered_dumps


@pytest.mark.parametrize(
    ("dumps", "world", "expected"),
    [
        (dumps_of(dump(9), dump(8), dump(9)), 3, (1,)),
        (dumps_of(dump(9), dump(9, call="barrier"), dump(9)), 3, (1,)),
        (dumps_of(dump(9), dump(9), dump(9, numel=7)), 3, (2,)),
        (dumps_of(dump(9), dump(9), None), 3, (2,)),
        (dumps_of(dump(9), dump(9), dump(9)), 3, ()),
        (dumps_of(dump(9), dump(8), dump(8)), 3, ()),
        (dumps_of(dump(9), dump(9, numel=7)), 2, ()),
        (dumps_of(dump(9), None, None), 3, ()),
        ({}, 3, ()),
    ],
)
def test_dumps_name_one_rank_or_none(dumps: dict[str, str], world: int, expected: tuple[int, ...]) -> None:
    assert apart(dumps, world) == expected


def test_dumps_tell_the_rank_where_all_logs_look_alike() -> None:
    recording = first_of("slow_read", script="pretrain", world=4, transcribed=False)
    logs = {"console.log": "".join(GLOO.format(r) for r in range(4))}
    assert describe(recording, logs, dumps_of(dump(9), dump(9), dump(8), dump(9)))["initiating_ranks"] == [2]
    assert "initiating_ranks" not in describe(recording, logs, dumps_of(*[dump(9)] * 4))
    with pytest.raises(NoIncidentError, match="rank 1 late"):
        describe(recording, logs, dumps_of(dump(9), dump(8), dump(9), dump(9)))


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


def test_dumps_are_scrubbed_and_refused_if_a_path_is_left(tmp_path: Path) -> None:
    dumps = {"traces/comm_lib_trace_rank_0.json": f'{{"filename":"{tmp_path}/app/job.py"}}'.encode()}
    run = Run(files={}, dumps=dumps, facts={}, codes=(1,), seconds=1.0)
    assert rendered_dumps(run, tmp_path) == {"traces/comm_lib_trace_rank_0.json": '{"filename":"/opt/app/job.py"}'}
    with pytest.raises(NoIncidentError, match="still holds"):
        rendered_dumps(run, tmp_path / "elsewhere")


def _pickled(path: str) -> bytes:
    """A dump in the recorder's protocol, with a path in it."""
    return pickle.dumps({"entries": [{"filename": path, "line": 3}], "pg_status": {"0": {"last": 3}}}, protocol=2)


def test_a_pickled_dump_changes_in_its_strings_alone() -> None:
    content = _pickled("/tmp/work/app/job.py")
    changed = rewritten(content, lambda text: text.replace("/tmp/work", "/opt"))
    assert strings(changed) == [text.replace("/tmp/work", "/opt") for text in strings(content)]
    assert load(changed) == {"entries": [{"filename": "/opt/app/job.py", "line": 3}], "pg_status": {"0": {"last": 3}}}
    assert rewritten(content, str) == content
    with pytest.raises(ValueError, match="framed"):
        rewritten(pickle.dumps(["a" * 9] * 9, protocol=4), str)


def test_pickled_dumps_are_scrubbed_too(tmp_path: Path) -> None:
    run = Run(
        files={},
        dumps={"traces/nccl_trace_rank_0": _pickled(f"{tmp_path}/app/a.py")},
        facts={},
        codes=(1,),
        seconds=1.0,
    )
    (found,) = rendered_dumps(run, tmp_path).values()
    assert isinstance(found, bytes)
    assert "/opt/app/a.py" in strings(found)
    with pytest.raises(NoIncidentError, match="still holds"):
        rendered_dumps(run, tmp_path / "elsewhere")


def test_pickled_dumps_name_the_rank_as_texts_do() -> None:
    texts = dumps_of(dump(9), dump(8), dump(9))
    pickles = {
        f"traces/nccl_trace_rank_{rank}": pickle.dumps(json.loads(text), protocol=2)
        for rank, text in enumerate(texts.values())
    }
    assert apart(pickles, 3) == (1,)
