"""Hostile pickles: nothing is executed, memory stays small, and each file gets a row that says why."""

from __future__ import annotations

import gzip
import os
import pickle
import struct
import tracemalloc
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsdpclassify.classifier import inspect_sources
from fsdpclassify.recorder.dumps import read_dump
from fsdpclassify.recorder.failures import DumpError
from fsdpclassify.recorder.loading import load
from fsdpclassify.recorder.opcodes import MAX_DEPTH, scan
from fsdpclassify.records import InputKind, InputRow, InputStatus
from fsdpclassify.sources import collect
from fsdpclassify.sources.judging import MAX_DUMP_BYTES

HEAD = b"\x80\x02}q\x00(X\x07\x00\x00\x00entriesq\x01"
_SMALL = 16 * 1024 * 1024


class _Runs:
    """Its pickle calls `os.mkdir` when it is loaded."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (self._path,)


def rows(folder: Path) -> dict[str, InputRow]:
    """The rows of all files of `folder`, by name."""
    return {row.path: row for row in inspect_sources(collect([folder])).inputs}


def hostile(tmp_path: Path) -> dict[str, bytes]:
    depth = 100_000
    return {
        "code": pickle.dumps({"entries": [_Runs(str(tmp_path / "was-run"))]}, protocol=2),
        "code4": pickle.dumps({"entries": [_Runs(str(tmp_path / "was-run"))]}, protocol=4),
        "memo": HEAD + b"]r\xff\xff\xff\x7fu.",
        "string": HEAD + b"X" + struct.pack("<I", 2**31) + b"abc",
        "string8": HEAD + b"\x8d" + struct.pack("<Q", 2**62) + b"abc",
        "bytes": HEAD + b"B" + struct.pack("<I", 2**31) + b"abc",
        "frame": b"\x80\x04\x95" + struct.pack("<Q", 2**60) + b"}\x8c\x07entries\x94]s.",
        "depth": HEAD + b"]" * depth + b"a" * depth + b"u.",
        "marks": HEAD + b"(" * depth + b"l" * depth + b"u.",
        "tuples": HEAD + b")" + b"\x85" * depth + b"u.",
        "cut": pickle.dumps({"version": "2.10", "pg_config": {}, "entries": [{"a": 1}] * 9}, protocol=2)[:-7],
        "stack": HEAD + b"uuuu.",
        "gone": HEAD + b"j\x09\x00\x00\x00u.",
        "json-depth": b'{"pg_config": ' + b"[" * depth + b"]" * depth + b"}",
        "json-cut": b'{"version": "2.10", "pg_config": {"0": {"na',
        "json-number": b'{"pg_config": {}, "entries": [' + b"9" * 1_000_000 + b"]}",
        "list": b"\x80\x02]q\x00X\x07\x00\x00\x00entriesq\x01a.",
        "other": pickle.dumps({"no": ["entries here"]}, protocol=2),
    }


def test_hostile_dumps_give_rows_and_run_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "dumps"
    folder.mkdir()
    for name, data in hostile(tmp_path).items():
        (folder / name).write_bytes(data)
    (folder / "text.pkl").write_text("step 1 loss 2.0\n" * 40)
    rows(folder / "text.pkl")  # what is imported once is not to be counted
    tracemalloc.start()
    found = rows(folder)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert not (tmp_path / "was-run").exists()
    assert peak < _SMALL
    text = found.pop("text.pkl")
    assert (text.kind, text.status, text.lines) == (InputKind.LOG, InputStatus.OK, 40)
    assert {row.kind for row in found.values()} == {InputKind.FLIGHT_RECORDER}
    assert {name for name, row in found.items() if row.status is InputStatus.TRUNCATED} == {
        "cut",
        "frame",
        "json-cut",
    }
    assert all(row.status in (InputStatus.TRUNCATED, InputStatus.UNREADABLE) for row in found.values())
    assert all(row.message for row in found.values())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("code", "refused: it asks for GLOBAL"),
        ("code4", "refused: it asks for STACK_GLOBAL"),
        ("memo", "memo entry 2147483647"),
        ("string", "string of 2147483648 bytes"),
        ("depth", f"nested deeper than {MAX_DEPTH}"),
        ("marks", f"nested deeper than {MAX_DEPTH}"),
        ("tuples", f"nested deeper than {MAX_DEPTH}"),
        ("cut", "ends in the middle"),
        ("list", "a dump is a dictionary, this holds a list"),
        ("other", "no entries and no process groups"),
        ("json-depth", "nested too deep"),
        ("bytes", "opcode 0x42"),
    ],
)
def test_the_reason_is_named(name: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DumpError, match=words):
        read_dump(load(hostile(tmp_path)[name]))


def test_many_small_values_are_bounded_by_their_number() -> None:
    with pytest.raises(DumpError, match="more than 2000000 containers"):
        scan(b"\x80\x02]q\x00" + b"(" + b"}" * 2_100_000 + b"e.")
    with pytest.raises(DumpError, match="more than 8000000 opcodes"):
        scan(b"\x80\x02]q\x00" + b"(" + b"N" * 8_100_000 + b"e.")


def test_a_bomb_in_gzip_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(HEAD + b"(" + b"N" * 100_000_000 + b"lu.", 1))
    tracemalloc.start()
    row = rows(tmp_path)["bomb.gz"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert row.status in (InputStatus.UNREADABLE, InputStatus.TRUNCATED)
    assert row.message
    assert peak < 3 * MAX_DUMP_BYTES


def test_every_cut_of_a_dump_is_refused_and_the_whole_is_not(make: ModuleType) -> None:
    data = make.as_pickle(make.desync()[1])
    for end in range(2, len(data), 7):
        with pytest.raises(DumpError) as caught:
            load(data[:end])
        assert caught.value.is_cut
    assert load(data) == pickle.loads(data)


_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=300),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(max_size=9), inner, max_size=5)
        | st.lists(inner, max_size=4).map(tuple)
    ),
    max_leaves=40,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(max_size=9), _PLAIN, max_size=8), st.sampled_from([2, 3, 4, 5]))
def test_plain_containers_pass_in_every_protocol(value: dict[str, object], protocol: int) -> None:
    assert load(pickle.dumps(value, protocol=protocol)) == value


def _outcome(data: bytes) -> DumpError | None:
    try:
        read_dump(load(data))
    except DumpError as error:
        return error
    return None


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 3000), st.integers(0, 255))
def test_damaged_dumps_raise_nothing_else(tail: bytes, place: int, value: int) -> None:
    data = bytearray(pickle.dumps({"version": "2.9", "entries": [{"pg_id": i, "x": [i]} for i in range(60)]}, 2))
    data[min(place, len(data) - 1)] = value
    for hurt in (bytes(data), b"\x80\x02" + tail, bytes(data[:place]) + tail):
        caught = _outcome(b"\x80" + hurt[1:])
        assert caught is None or str(caught)
