from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsdpclassify.sources import engines
from fsdpclassify.sources.engines import CELL_BYTES, EngineMaker, Hits, HitTable
from fsdpclassify.sources.interface import Anchor

hyperscan = pytest.importorskip("hyperscan")

ANCHORS = [
    Anchor(name="literal", pattern=rb"Watchdog caught", detection=True),
    Anchor(name="escaped", pattern=rb"call last\)"),
    Anchor(name="either", pattern=rb"ncclRemote|ncclSystem"),
    Anchor(name="number", pattern=rb"exitcode: -?[0-9]+ \(pid"),
    Anchor(name="case", pattern=rb"XID"),
]
WORDS = [
    b"Watchdog caught",
    b"Watchdog ",
    b"caught",
    b"(most recent call last)",
    b"ncclRemote",
    b"ncclSystem",
    b"exitcode: -11 (pid",
    b"exitcode: ",
    b"7",
    b"xid XID",
    b"\n",
    b" ",
    b"x" * 700,
]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=60).map(b"".join)


def found(maker: EngineMaker, blocks: list[bytes]) -> list[list[int]]:
    hits = HitTable()
    engine = maker(hits)
    for block in blocks:
        engine.scan(block)
    engine.close()
    return [hits[number].cells() for number in range(len(ANCHORS))]


def cut(text: bytes, places: list[int]) -> list[bytes]:
    borders = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[low:high] for low, high in pairwise(borders)]


FAST = engines._hyperscan(hyperscan, ANCHORS)
SLOW = engines._portable(ANCHORS)


@given(TEXTS, st.lists(st.integers(0, 50_000), max_size=6))
def test_both_engines_find_the_same_wherever_blocks_end(text: bytes, places: list[int]) -> None:
    whole = found(FAST, [text])
    assert whole == found(SLOW, [text])
    assert whole == found(FAST, cut(text, places))
    assert whole == found(SLOW, cut(text, places))


def test_the_cell_is_where_the_match_ends() -> None:
    text = b"x" * (3 * CELL_BYTES - 4) + b"XID" + b"\n"
    assert found(FAST, [text])[4] == found(SLOW, [text])[4] == [2]


def test_a_match_in_a_line_longer_than_the_carry_is_found() -> None:
    text = b"y" * 300_000 + b"Watchdog caught" + b"y" * 300_000
    blocks = [text[at : at + 4096] for at in range(0, len(text), 4096)]
    assert found(SLOW, blocks) == found(FAST, blocks) != [[]] * len(ANCHORS)


def test_case_counts() -> None:
    assert not any(found(FAST, [b"xid watchdog caught"]) + found(SLOW, [b"xid watchdog caught"]))


def test_hits_of_a_common_anchor_are_bounded() -> None:
    hits = Hits()
    for cell in range(100_000):
        hits.add(cell * CELL_BYTES + 1)
    cells = hits.cells()
    assert len(cells) == 40_000
    assert (cells[0], cells[-1]) == (0, 99_999)


def test_without_hyperscan_the_portable_engine_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "hyperscan", None)
    engine = engines.engine_for(ANCHORS)(HitTable())
    assert isinstance(engine, engines.PortableEngine)


def test_no_anchors_no_engine() -> None:
    engine = engines.engine_for([])([])
    engine.scan(b"Watchdog caught")
    engine.close()
