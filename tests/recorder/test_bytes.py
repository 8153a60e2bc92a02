"""The bytes of a dump reach its reader whole, however the input is read."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from fsdpclassify.records import InputKind, InputStatus
from fsdpclassify.sources import collect, judging, read, reading
from fsdpclassify.sources.limits import DEFAULT_LIMITS, Limits

DATA = b"\x80\x02}q\x00(X\x07\x00\x00\x00entriesq\x01]" + b"N" * 900_000 + b"u."


class Shelf:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.taken: dict[str, bytes] = {}

    def take(self, index: int, path: str, hint: int | None, data: bytes) -> tuple[InputStatus, str | None]:
        self.taken[path] = data
        return InputStatus.OK, f"input {index}, rank {hint}"


@pytest.mark.parametrize("limits", [DEFAULT_LIMITS, Limits(whole_bytes=1000, kept_bytes=1000)])
def test_files_and_packed_files_give_all_bytes(tmp_path: Path, limits: Limits) -> None:
    (tmp_path / "a_rank_3").write_bytes(DATA)
    (tmp_path / "b.gz").write_bytes(gzip.compress(DATA))
    (tmp_path / "c.log").write_bytes(b"step 1 loss 2.0\n" * 4000)
    shelf = Shelf()
    found = read(collect([tmp_path]), limits=limits, dumps=shelf)
    assert shelf.taken == {"a_rank_3": DATA, "b.gz": DATA}
    assert [(row.kind, row.bytes, row.lines) for row in found.inputs[:2]] == [
        (InputKind.FLIGHT_RECORDER, len(DATA), 0)
    ] * 2
    assert found.inputs[0].message == "input 0, rank 3"


def test_standard_input_may_be_a_dump() -> None:
    shelf = Shelf()
    read(collect(["-"], stdin=io.BytesIO(DATA)), dumps=shelf)
    assert shelf.taken == {"-": DATA}


def test_a_cut_gzip_is_said_to_be_cut(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(DATA + bytes(range(256)) * 400)[:-300])
    (row,) = read(collect([tmp_path]), dumps=Shelf()).inputs
    assert row.status is InputStatus.TRUNCATED
    assert row.message


def test_more_than_the_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_DUMP_BYTES", 500_000)
    (tmp_path / "a").write_bytes(DATA)
    shelf = Shelf()
    (row,) = read(collect([tmp_path]), dumps=shelf).inputs
    assert shelf.taken == {}
    assert row.status is InputStatus.UNREADABLE
    assert judging.MAX_DUMP_BYTES > 500_000
