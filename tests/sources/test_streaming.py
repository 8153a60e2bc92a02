"""Large inputs, made large by small limits: what is kept, and that it is the same as in a whole reading."""

import gzip
import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fsdpclassify.records import InputStatus
from fsdpclassify.sources import Anchor, Reading, collect, engines, large, read, scanning
from fsdpclassify.sources.limits import Limits

ANCHORS = [
    Anchor(name="timeout", pattern=rb"Watchdog caught", detection=True),
    Anchor(name="exit", pattern=rb"exitcode: -?[0-9]+ \("),
]
LIMITS = Limits(
    whole_bytes=4096,
    kept_bytes=512 * 1024,
    head_bytes=2048,
    tail_bytes=4096,
    before_bytes=16 * 1024,
    after_bytes=4096,
    sample_count=8,
    sample_bytes=1024,
    reach_bytes=64 * 1024,
)
WHOLE = replace(LIMITS, whole_bytes=1 << 30)


def log(lines: int, marks: dict[int, str], ranks: int = 4) -> bytes:
    rng = random.Random(lines)
    made = [
        marks.get(number, f"[rank{number % ranks}]: step {number} took {'x' * rng.randrange(90)} ms")
        for number in range(1, lines + 1)
    ]
    return "\n".join(made).encode() + b"\n"


def assert_part_of_the_whole(part: Reading, whole: Reading) -> None:
    """Rows agree, kept lines are lines of the whole, and lines and gaps cover every number once."""
    assert part.inputs == whole.inputs
    assert set(part.lines) <= set(whole.lines)
    assert part.lines == sorted(part.lines, key=lambda line: (line.source, line.number, line.frame))
    for source, row in enumerate(part.inputs):
        kept = {line.number for line in part.lines if line.source == source}
        skipped = [number for gap in part.gaps if gap.source == source for number in range(gap.first, gap.last + 1)]
        assert sorted([*kept, *skipped]) == list(range(1, row.lines + 1))


def read_file(folder: Path, data: bytes, limits: Limits = LIMITS, *, packed: bool = False) -> Reading:
    (folder / "a.log").write_bytes(gzip.compress(data, 1) if packed else data)
    return read(collect([folder]), ANCHORS, limits=limits)


@pytest.mark.parametrize("packed", [False, True], ids=["file", "stream"])
class TestLarge:
    def test_head_tail_and_samples_are_kept(self, packed: bool, tmp_path: Path) -> None:
        data = log(60_000, {})
        part = read_file(tmp_path, data, packed=packed)
        assert_part_of_the_whole(part, read_file(tmp_path, data, WHOLE, packed=packed))
        numbers = [line.number for line in part.lines]
        assert numbers[:10] == list(range(1, 11))
        assert numbers[-30:] == list(range(59_971, 60_001))
        assert 5 <= len(part.gaps) <= 40
        assert len(numbers) < 6000

    def test_the_lines_before_and_after_a_detection_are_kept(self, packed: bool, tmp_path: Path) -> None:
        data = log(60_000, {30_000: "[rank1]: Watchdog caught collective operation timeout"})
        part = read_file(tmp_path, data, packed=packed)
        assert_part_of_the_whole(part, read_file(tmp_path, data, WHOLE, packed=packed))
        assert set(range(29_850, 30_050)) <= {line.number for line in part.lines}

    def test_a_rank_that_was_silent_long_before_is_found(self, packed: bool, tmp_path: Path) -> None:
        marks = {number: f"[rank9]: loading shard {number}" for number in range(29_300, 29_330)}
        data = log(60_000, marks | {30_000: "Watchdog caught", 29_999: "[rank9]: x"})
        part = read_file(tmp_path, data, packed=packed)
        assert_part_of_the_whole(part, read_file(tmp_path, data, WHOLE, packed=packed))
        assert set(range(29_300, 29_330)) <= {line.number for line in part.lines}

    def test_other_anchors_keep_a_few_lines(self, packed: bool, tmp_path: Path) -> None:
        marks = {number: f"exitcode: -{number} (pid)" for number in (7_000, 44_000)}
        part = read_file(tmp_path, log(60_000, marks), packed=packed)
        kept = {line.number for line in part.lines}
        assert {6_999, 7_000, 7_001, 43_999, 44_000, 44_001} <= kept

    def test_every_incident_of_a_few_is_kept_and_the_last_of_many(self, packed: bool, tmp_path: Path) -> None:
        marks = dict.fromkeys(range(1_000, 60_000, 2_000), "Watchdog caught")
        part = read_file(tmp_path, log(60_000, marks), packed=packed)
        kept = {line.number for line in part.lines}
        assert {1_000, 57_000, 59_000, 58_990} <= kept

    def test_a_flood_of_detections_stays_bounded(self, packed: bool, tmp_path: Path) -> None:
        part = read_file(tmp_path, log(60_000, dict.fromkeys(range(1, 60_001), "Watchdog caught")), packed=packed)
        assert 100 < len(part.lines) < 40_000

    def test_one_physical_line_of_frames_with_the_error_at_its_end(self, packed: bool, tmp_path: Path) -> None:
        bar = b"\r".join(b"%5d/90000 it" % number for number in range(90_000))
        data = b"begin\n" + bar + b"[rank5]: Watchdog caught\nend\n"
        part = read_file(tmp_path, data, packed=packed)
        assert part.inputs[0].lines == 3
        (line,) = [line for line in part.lines if "Watchdog" in line.text]
        assert line.number == 2
        assert [line.number for line in part.lines if line.text == "end"] == [3]
        assert len(part.lines) < 2000

    def test_long_lines_are_kept_whole_where_an_anchor_is_in_them(self, packed: bool, tmp_path: Path) -> None:
        marks = {30_000: "a" * 20_000 + "exitcode: -9 (" + "b" * 20_000}
        part = read_file(tmp_path, log(60_000, marks), packed=packed)
        (line,) = [line for line in part.lines if "exitcode" in line.text]
        assert line.number == 30_000
        if not packed:
            assert line.text == marks[30_000]

    def test_without_hyperscan_the_lines_are_the_same(
        self, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        data = log(30_000, {15_000: "Watchdog caught", 7_000: "exitcode: -9 (x", 20_000: "exitcode: 1 ("})
        fast = read_file(tmp_path, data, packed=packed)
        monkeypatch.setattr(large, "engine_for", engines._portable)
        assert read_file(tmp_path, data, packed=packed) == fast

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        st.lists(
            st.sampled_from(
                [
                    b"[rank1]: x",
                    b"\n",
                    b"\n\n",
                    b"\r",
                    b"y" * 3000,
                    b"Watchdog caught",
                    b"exitcode: -9 (",
                    b"\xc3\xa4",
                ]
            ),
            max_size=120,
        ).map(b"".join)
    )
    def test_numbers_are_right_whatever_the_text(self, packed: bool, tmp_path: Path, data: bytes) -> None:
        data = log(300, {}) + data + b"\n" + log(300, {})
        part, whole = (
            read_file(tmp_path, data, packed=packed),
            read_file(tmp_path, data, WHOLE, packed=packed),
        )
        assert part.inputs == whole.inputs
        printed: dict[int, str] = {}
        for line in whole.lines:
            printed[line.number] = printed.get(line.number, "") + line.text
        assert all(line.text in printed[line.number] for line in part.lines)


def test_many_files_share_the_limits(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for rank in range(40):
        marks = {} if rank == 7 else {1_500: "Watchdog caught"}
        (folder / f"rank{rank}.log").write_bytes(log(3_000, marks))
    part = read(collect([folder]), ANCHORS, limits=LIMITS)
    assert_part_of_the_whole(part, read(collect([folder]), ANCHORS, limits=WHOLE))
    assert sum(len(line.text) for line in part.lines) < 2 * LIMITS.kept_bytes
    by_rank = {rank: {line.number for line in part.lines if line.hint_rank == rank} for rank in range(40)}
    assert all(1_500 in numbers for rank, numbers in by_rank.items() if rank != 7)
    assert 1_500 in by_rank[7], "where the others were thrown out, the silent rank is read too"


def test_a_stream_that_turns_out_large_does_not_cost_the_small_ones(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(log(60_000, {})))
    (tmp_path / "b.log").write_bytes(b"x\ny\n")
    part = read(collect([tmp_path]), ANCHORS, limits=LIMITS)
    assert [line.text for line in part.lines if line.source == 1] == ["x", "y"]


def test_a_damaged_large_stream_keeps_what_came_before(tmp_path: Path) -> None:
    packed = gzip.compress(log(60_000, {1_000: "Watchdog caught"}))
    (tmp_path / "a.gz").write_bytes(packed[: len(packed) // 2])
    part = read(collect([tmp_path]), ANCHORS, limits=LIMITS)
    assert part.inputs[0].status is InputStatus.TRUNCATED
    assert 1_000 in {line.number for line in part.lines}


def test_max_bytes_on_a_large_file(tmp_path: Path) -> None:
    data = log(60_000, {})
    (tmp_path / "a.log").write_bytes(data)
    part = read(collect([tmp_path], max_bytes=1_000_000), ANCHORS, limits=LIMITS)
    assert part.inputs[0].status is InputStatus.TRUNCATED
    assert part.inputs[0].bytes == 1_000_000
    assert part.lines[-1].number == part.inputs[0].lines == data[:1_000_000].count(b"\n") + 1


def test_a_long_file_scanned_in_parts_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks = {number: "Watchdog caught" for number in (10_000, 29_999, 30_000, 30_001, 50_000)}
    data = log(60_000, marks)
    monkeypatch.setattr(scanning.os, "cpu_count", lambda: 1)
    alone = read_file(tmp_path, data)
    monkeypatch.setattr(scanning.os, "cpu_count", lambda: 3)
    monkeypatch.setattr(scanning, "_PART_BYTES", 100_000)
    assert read_file(tmp_path, data) == alone


def test_a_file_that_is_cut_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = log(60_000, {})

    def cut(*_: object) -> None:
        raise OSError("it was cut while it was read")

    monkeypatch.setattr(scanning.Scanner, "scan_seekable", cut)
    part = read_file(tmp_path, data)
    assert part.inputs[0].lines == 60_000


def test_blocks_are_read_ahead_and_an_early_stop_ends_the_thread() -> None:
    before = threading.active_count()
    blocks = [bytes([number + 1]) for number in range(100)]
    assert list(scanning.ahead(iter(blocks))) == blocks
    some = scanning.ahead(iter(blocks))
    assert next(some) == blocks[0]
    some.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


def test_an_error_while_reading_ahead_does_not_hang() -> None:
    def broken() -> Iterator[bytes]:
        yield b"x"
        raise RuntimeError("our own fault")

    with pytest.raises(RuntimeError, match="our own fault"):
        list(scanning.ahead(broken()))


@pytest.mark.parametrize("packed", [False, True], ids=["file", "stream"])
def test_many_short_lines_stay_bounded(packed: bool, tmp_path: Path) -> None:
    data = b"\n" * 3_000_000 + b"Watchdog caught\n" + b"\n" * 3_000_000
    part = read_file(tmp_path, data, packed=packed)
    assert part.inputs[0].lines == 6_000_001
    assert len(part.lines) < 60_000
    assert part.lines[-1].number == 6_000_001


def test_a_small_input_of_too_many_lines_is_read_as_a_large_one(tmp_path: Path) -> None:
    part = read_file(tmp_path, b"\n" * 400_000, Limits())
    assert part.inputs[0].lines == 400_000
    assert len(part.lines) < 100_000


def test_a_large_file_of_nul_bytes_is_binary(tmp_path: Path) -> None:
    part = read_file(tmp_path, bytes(1_000_000))
    assert (part.inputs[0].status, part.lines) == (InputStatus.BINARY, [])
