import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsdpclassify.records import InputKind, InputRow, InputStatus
from fsdpclassify.sources import Reading, archives, collect, decompress, read

zstandard = pytest.importorskip("zstandard")

TEXT = b"".join(b"[rank%d]: step %d\n" % (number % 4, number) for number in range(3000))
Pack = Callable[[bytes], bytes]
PACKERS: dict[str, Pack] = {
    "gz": gzip.compress,
    "zst": zstandard.ZstdCompressor().compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
}


def read_bytes(folder: Path, data: bytes, name: str = "x") -> Reading:
    (folder / name).write_bytes(data)
    return read(collect([folder]))


def texts(reading: Reading) -> list[str]:
    return [line.text for line in reading.lines]


def tar_of(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS.keys())
class TestPacked:
    def test_is_recognised_by_content(self, pack: Pack, tmp_path: Path) -> None:
        reading = read_bytes(tmp_path, pack(TEXT), "no-suffix")
        assert reading.inputs == (
            InputRow(path="no-suffix", kind=InputKind.LOG, bytes=len(TEXT), lines=3000, status=InputStatus.OK),
        )
        assert texts(reading) == TEXT.decode().splitlines()

    def test_concatenated_streams_are_one_text(self, pack: Pack, tmp_path: Path) -> None:
        parts = [pack(TEXT[at : at + 1000]) for at in range(0, len(TEXT), 1000)]
        assert texts(read_bytes(tmp_path, b"".join(parts))) == TEXT.decode().splitlines()

    def test_an_empty_text_is_empty(self, pack: Pack, tmp_path: Path) -> None:
        (row,) = read_bytes(tmp_path, pack(b"")).inputs
        assert row.status is InputStatus.EMPTY

    def test_what_comes_before_damage_is_kept(self, pack: Pack, tmp_path: Path) -> None:
        long = b"".join(b"%x\n" % (number * 2654435761 % 2**32) for number in range(200_000))
        packed = pack(long)
        reading = read_bytes(tmp_path, packed[: len(packed) * 3 // 4])
        (row,) = reading.inputs
        if not row.bytes:  # one block of this packer holds the whole text
            assert row.status is InputStatus.UNREADABLE
            return
        assert row.status is InputStatus.TRUNCATED
        assert row.message
        kept = texts(reading)
        assert kept[:-1] == long.decode().splitlines()[: len(kept) - 1]

    def test_garbage_behind_the_magic_is_a_row(self, pack: Pack, tmp_path: Path) -> None:
        (row,) = read_bytes(tmp_path, pack(TEXT)[:6] + b"garbage" * 9).inputs
        assert row.status in (InputStatus.UNREADABLE, InputStatus.TRUNCATED)
        assert row.message

    def test_other_encodings_inside(self, pack: Pack, tmp_path: Path) -> None:
        assert texts(read_bytes(tmp_path, pack("ä\nb\n".encode("utf-16")))) == ["ä", "b"]

    def test_a_packed_archive(self, pack: Pack, tmp_path: Path) -> None:
        reading = read_bytes(tmp_path, pack(tar_of({"b/rank1.log": TEXT, "a.log": b"x\n"})), "all")
        assert [row.path for row in reading.inputs] == ["all!b/rank1.log", "all!a.log"]
        assert texts(reading) == [*TEXT.decode().splitlines(), "x"]
        assert {line.hint_rank for line in reading.lines} == {1, None}

    def test_a_bomb_is_stopped(self, pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(decompress, "FREE_BYTES", 100_000)
        monkeypatch.setattr(decompress, "MAX_RATIO", 20)
        (row,) = read_bytes(tmp_path, pack(b"0123456789abcde\n" * 200_000)).inputs
        assert row.status in (InputStatus.TRUNCATED, InputStatus.UNREADABLE)
        assert row.message is not None
        assert "times its size" in row.message
        assert row.bytes < 2_000_000


def test_gzip_without_isal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "isal", None)
    assert texts(read_bytes(tmp_path, gzip.compress(TEXT))) == TEXT.decode().splitlines()


def test_a_missing_unpacker_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "zstandard", None)
    (row,) = read_bytes(tmp_path, PACKERS["zst"](TEXT)).inputs
    assert row.status is InputStatus.UNREADABLE
    assert row.message == "zstandard is not installed: pip install zstandard"


def test_members_of_a_plain_archive(tmp_path: Path) -> None:
    files = {
        "rank0.log": TEXT,
        "x.log.gz": gzip.compress(b"packed\n"),
        "empty.log": b"",
        "bom": b"\xef\xbb\xbfz",
    }
    reading = read_bytes(tmp_path, tar_of(files), "a.tar")
    assert [(row.path, row.status) for row in reading.inputs] == [
        ("a.tar!rank0.log", InputStatus.OK),
        ("a.tar!x.log.gz", InputStatus.OK),
        ("a.tar!empty.log", InputStatus.EMPTY),
        ("a.tar!bom", InputStatus.OK),
    ]
    assert texts(reading) == [*TEXT.decode().splitlines(), "packed", "z"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_links_and_devices_in_an_archive_are_passed_by(pack: Pack, tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for kind, name in (
            (tarfile.SYMTYPE, "link"),
            (tarfile.CHRTYPE, "device"),
            (tarfile.FIFOTYPE, "pipe"),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    (row,) = read_bytes(tmp_path, pack(out.getvalue())).inputs
    assert (row.path, row.status, row.message) == ("x", InputStatus.EMPTY, "the archive holds no files")


def test_an_archive_is_never_extracted(tmp_path: Path) -> None:
    reading = read_bytes(tmp_path, tar_of({"../escaped.log": b"x\n", "/abs.log": b"y\n"}))
    assert [row.path for row in reading.inputs] == ["x!../escaped.log", "x!/abs.log"]
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_a_cut_archive_keeps_what_came_before(pack: Pack, tmp_path: Path) -> None:
    packed = pack(tar_of({"a.log": b"x\n" * 999, "b.log": TEXT * 9}))
    rows = read_bytes(tmp_path, packed[: len(packed) // 2]).inputs
    assert rows[0].status is InputStatus.OK
    assert rows[0].lines == 999
    assert rows[-1].path == "x"
    assert rows[-1].status is InputStatus.TRUNCATED


def test_a_header_that_asks_for_much_memory_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 8 * 1024**3
    data = info.tobuf(tarfile.GNU_FORMAT) + b"\x00" * 4096
    (row,) = read_bytes(tmp_path, data).inputs
    assert row.message is not None
    assert "too large" in row.message


def test_a_large_packed_archive_is_read_member_by_member(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "SMALL_BYTES", 10_000)
    files = {f"rank{rank}.log": b"%d\n" % rank + TEXT for rank in range(4)}
    (tmp_path / "a.tgz").write_bytes(gzip.compress(tar_of(files)))
    sources = collect([tmp_path])
    forward, backward = read(sources), read(sources[::-1])
    assert [row.path for row in forward.inputs] == [f"a.tgz!rank{rank}.log" for rank in range(4)]
    for index in range(4):
        mine = [line.text for line in forward.lines if line.source == index]
        assert mine == files[f"rank{index}.log"].decode().splitlines()
        assert mine == [line.text for line in backward.lines if line.source == 3 - index]


@given(st.sampled_from([*PACKERS]), st.integers(0, 10_000), st.integers(0, 255))
def test_no_damage_ever_raises(name: str, at: int, byte: int) -> None:
    packed = bytearray(PACKERS[name](tar_of({"a": TEXT[:2000]}) if byte % 2 else TEXT[:2000]))
    packed[at % len(packed)] = byte
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        read_bytes(Path(folder), bytes(packed))


@pytest.mark.parametrize("missing", [1, 8, 10, 400])
@pytest.mark.parametrize("with_isal", [True, False])
def test_a_cut_gzip_gives_what_came_before(
    missing: int, with_isal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    if not with_isal:
        monkeypatch.setitem(sys.modules, "isal", None)
    reading = read_bytes(tmp_path, gzip.compress(TEXT)[:-missing])
    (row,) = reading.inputs
    assert row.status is InputStatus.TRUNCATED
    assert row.message
    kept = texts(reading)
    assert kept[:-1] == TEXT.decode().splitlines()[: len(kept) - 1]
    assert row.bytes > len(TEXT) // 2 if missing == 400 else row.bytes > len(TEXT) - 200


def test_a_gzip_cut_in_its_header_is_unreadable(tmp_path: Path) -> None:
    (row,) = read_bytes(tmp_path, gzip.compress(TEXT)[:8]).inputs
    assert row.status is InputStatus.UNREADABLE
    assert row.message


@pytest.mark.parametrize("lines", [10, 3000])
@pytest.mark.parametrize("name", ["gz", "xz", "bz2"])
def test_a_wrong_checksum_costs_no_text(name: str, lines: int, tmp_path: Path) -> None:
    text = b"".join(TEXT.splitlines(keepends=True)[:lines])
    packed = bytearray(PACKERS[name](text))
    packed[-6] ^= 0x55
    reading = read_bytes(tmp_path, bytes(packed))
    assert reading.inputs[0].status is InputStatus.TRUNCATED
    assert texts(reading) == text.decode().splitlines()


@pytest.mark.parametrize("name", ["gz", "xz"])
def test_damage_in_the_middle_keeps_what_came_before(name: str, tmp_path: Path) -> None:
    packed = bytearray(PACKERS[name](TEXT))
    middle = len(packed) // 2
    packed[middle:] = bytes(len(packed) - middle)
    reading = read_bytes(tmp_path, bytes(packed))
    assert reading.inputs[0].status is InputStatus.TRUNCATED
    # What damaged codes still say behind that is no text of ours.
    assert texts(reading)[:1000] == TEXT.decode().splitlines()[:1000]


def test_padding_of_more_than_one_block_ends_the_text(tmp_path: Path) -> None:
    reading = read_bytes(tmp_path, gzip.compress(TEXT) + bytes(200_000))
    assert reading.inputs[0].status is InputStatus.OK
    assert texts(reading) == TEXT.decode().splitlines()
