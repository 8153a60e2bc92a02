import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsdpclassify.records import InputKind, InputStatus, RawLine
from fsdpclassify.sources import collect, from_text, read
from fsdpclassify.sources.judging import DUMP_MESSAGE


def texts(lines: list[RawLine]) -> list[tuple[int, str]]:
    return [(line.number, line.text) for line in lines]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_marked_encodings(encoding: str, tmp_path: Path) -> None:
    text = "ä\r\nb\rc\n" * 400
    mark = "\ufeff" if encoding.endswith(("-le", "-be")) else ""
    (tmp_path / "a.log").write_bytes((mark + text).encode(encoding))
    reading = read(collect([tmp_path]))
    assert reading.inputs[0].lines == 800
    assert texts(reading.lines)[:3] == [(1, "ä"), (2, "b"), (2, "c")]
    assert reading.lines == read(from_text([text])).lines


def test_binary_and_dumps_give_rows_and_no_lines(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(range(256)) * 99)
    (tmp_path / "b").write_bytes(b"\x80\x02}q\x00X\x09\x00\x00\x00pg_configq\x01entries")
    (tmp_path / "c.json").write_bytes(b'{"version": "2.10", "pg_config": {}}')
    (tmp_path / "d").write_bytes(b"\x00" * 9000)
    reading = read(collect([tmp_path]))
    assert reading.lines == []
    assert [(row.kind, row.status) for row in reading.inputs] == [
        (None, InputStatus.BINARY),
        (InputKind.FLIGHT_RECORDER, InputStatus.UNREADABLE),
        (InputKind.FLIGHT_RECORDER, InputStatus.UNREADABLE),
        (None, InputStatus.BINARY),
    ]
    assert reading.inputs[1].message == DUMP_MESSAGE


def test_a_log_that_begins_with_nul_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"\x00" * 200_000 + b"first\nsecond\n")
    reading = read(collect([tmp_path]))
    assert reading.inputs[0].status is InputStatus.OK
    assert [line.number for line in reading.lines] == [1, 2]
    assert reading.lines[1].text == "second"


def test_max_bytes_cuts_each_input(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(b"1234\n" * 10)
    reading = read(collect([tmp_path], max_bytes=12))
    assert [(row.bytes, row.lines, row.status, row.message) for row in reading.inputs] == [
        (12, 3, InputStatus.TRUNCATED, "only the first 12 bytes were read")
    ] * 2
    assert texts(reading.lines)[:3] == [(1, "1234"), (2, "1234"), (3, "12")]
    assert {row.status for row in read(collect([tmp_path], max_bytes=50)).inputs} == {InputStatus.OK}


@pytest.mark.parametrize("max_bytes", [0, 1])
def test_tiny_max_bytes(max_bytes: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1234\n")
    (row,) = read(collect([tmp_path], max_bytes=max_bytes)).inputs
    assert row.bytes == max_bytes
    assert row.message == f"only the first {max_bytes} bytes were read"


def test_a_stream_that_breaks_is_truncated() -> None:
    class Breaking(io.RawIOBase):
        parts = iter((b"a\nb\n",))

        def read(self, size: int = -1) -> bytes:
            part = next(self.parts, None)
            if part is None:
                raise OSError("it broke")
            return part

    reading = read(collect(["-"], stdin=Breaking()))  # type: ignore[arg-type]
    assert [(row.status, row.message) for row in reading.inputs] == [(InputStatus.TRUNCATED, "it broke")]
    assert texts(reading.lines) == [(1, "a"), (2, "b")]


def test_a_closed_stream_is_a_row() -> None:
    stream = io.BytesIO(b"a\n")
    stream.close()
    (row,) = read(collect(["-"], stdin=stream)).inputs
    assert row.status is InputStatus.UNREADABLE


@given(st.lists(st.binary(max_size=300), max_size=4))
def test_arbitrary_bytes_never_raise(parts: list[bytes]) -> None:
    reading = read(from_text(parts))
    assert len(reading.inputs) == len(parts)
    for row, part in zip(reading.inputs, parts, strict=True):
        assert row.lines <= part.count(b"\n") + 1


@given(st.binary(max_size=300))
def test_arbitrary_bytes_on_a_stream_never_raise(data: bytes) -> None:
    read(collect(["-"], stdin=io.BytesIO(data)))


class Dripping(io.RawIOBase):
    """Gives as many bytes a read as it is told."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self.data, self.sizes = data, sizes

    def read(self, size: int = -1) -> bytes:
        step = min(size, self.sizes.pop() if self.sizes else size)
        part, self.data = self.data[:step], self.data[step:]
        return part


@given(
    st.lists(st.sampled_from([b"a", b"\r", b"\n", b"\xc3\xa4", b"\x1b[0m", b"\x00"]), max_size=80).map(b"".join),
    st.lists(st.integers(1, 9), max_size=40),
)
def test_chunk_borders_never_change_the_lines(data: bytes, sizes: list[int]) -> None:
    dripped = read(collect(["-"], stdin=Dripping(data, sizes)))  # type: ignore[arg-type]
    assert dripped.lines == read(from_text([data])).lines


@settings(max_examples=30)
@given(st.permutations(range(4)))
def test_order_of_files_never_changes_a_files_lines(order: list[int]) -> None:
    parts = [b"a\n" * 3, b"b\rc\n", b"", b"d\xff\n\n"]
    straight, mixed = read(from_text(parts)), read(from_text([parts[index] for index in order]))
    for place, index in enumerate(order):
        mine = [(line.number, line.frame, line.text) for line in straight.lines if line.source == index]
        assert mine == [(line.number, line.frame, line.text) for line in mixed.lines if line.source == place]


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_a_wrong_mark_of_utf_16_is_dropped(mark: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(mark + b"\x80[rank0]: first\nsecond\n")
    reading = read(collect([tmp_path]))
    assert [line.text for line in reading.lines] == ["\ufffd[rank0]: first", "second"]
