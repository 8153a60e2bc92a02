"""What is remembered of a shape must be what peeling the line afresh gives."""

import random
import re

import pytest

from fsdpclassify.parsing.peeling import Peeled, peel
from fsdpclassify.parsing.prefixes import read_lines
from fsdpclassify.parsing.shapes import Shapes
from fsdpclassify.records import RawLine

LINES = (
    "2026-03-05 01:00:00,900 [rank17]: INFO train: step 12 loss 2.5 step_time_ms 812",
    "[rank17]: INFO data: shard-00012.tar opened, 3 workers",
    "[default3]:[rank19]: W1019 07:21:31.225000 731679 torch/x.py:908] slow",
    "[default3]:2026-03-05 01:00:00,900 step 7",
    "12: 2026-03-05 01:00:00,900 step 7",
    "(WorkerDict pid=7741, ip=192.0.2.27) step 7 [rank=3]",
    "[1,12]<stderr>:step 7",
    "node-03:7741:7802 [5] NCCL INFO comm 0x1a rank 13 nranks 64",
    "2026-03-05T01:00:00.123456789Z stdout F [rank2]: step 7",
    "[Rank 3] step=70 took 1.5 s",
    "03-05 01:00:00 step 7",
    "a line without any number",
)


def raws(texts: list[str]) -> list[RawLine]:
    return [RawLine(source=0, number=number, text=text) for number, text in enumerate(texts, 1)]


def redrawn(text: str, rng: random.Random) -> str:
    """The same shape with other digits; dates stay dates."""
    return re.sub(r"20\d\d-\d\d-\d\d \d\d:\d\d|\d", lambda m: m[0] if len(m[0]) > 1 else str(rng.randrange(10)), text)


@pytest.mark.parametrize("line", LINES)
def test_remembered_shapes_give_the_same_lines(line: str) -> None:
    rng = random.Random(line)
    texts = [line, *(redrawn(line, rng) for _ in range(40))]
    together, _ = read_lines(raws(texts))
    apart = [read_lines(raws([text]))[0][0] for text in texts]
    for found, alone in zip(together, apart, strict=True):
        assert (found.text, found.body, found.node, found.pid) == (alone.text, alone.body, alone.node, alone.pid)
        assert (found.stamped, found.unprefixed) == (alone.stamped, alone.unprefixed)


def test_a_shape_is_recalled_after_some_sightings() -> None:
    shapes = Shapes()
    asked = 0
    for rank in range(11, 31):
        raw = raws([f"[rank{rank}]: opened shard of rank {rank + 40}"])[0]
        found = shapes.recall(raw)
        if found is None:
            asked += 1
            shapes.learn(peel(Peeled(raw=raw, text=raw.text, body=raw.text)))
        else:
            assert (found.bracket, found.body) == (rank, f"opened shard of rank {rank + 40}")
    assert asked < 6


def test_a_number_that_stands_twice_is_not_guessed_at() -> None:
    shapes = Shapes()
    for _ in range(10):
        raw = raws(["[rank7]: step 7"])[0]
        assert shapes.recall(raw) is None
        shapes.learn(peel(Peeled(raw=raw, text=raw.text, body=raw.text)))


def test_a_date_before_a_rank_prefix_belongs_to_its_line() -> None:
    lines, dated = read_lines(raws(["2026-03-05 01:00:00,900 [rank17]: INFO train: step 12"]))
    assert [(line.rank, line.body, line.stamped) for line in lines] == [(17, "INFO train: step 12", True)]
    assert dated


def test_ranks_follow_the_digits_of_each_line() -> None:
    texts = [f"2026-03-05 01:00:0{rank % 10},900 [rank{rank}]: step {rank + 7}" for rank in range(10, 60)]
    lines, _ = read_lines(raws(texts))
    assert [line.rank for line in lines] == list(range(10, 60))
    assert len({line.time for line in lines}) == 10
