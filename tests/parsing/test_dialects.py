"""Every dialect of launchers, trainers, containers and libraries has a file here and yields its facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsdpclassify.reading import find
from fsdpclassify.records import Event, EventKind
from fsdpclassify.sources import from_text

FILES = Path(__file__).with_name("dialects")
DAY = 1_772_668_800.0  # 2026-03-05
STEP, BAR, EXIT, PHASE = EventKind.STEP, EventKind.PROGRESS, EventKind.EXIT, EventKind.PHASE


def at(hour: int, minute: int, second: float) -> float:
    """A time of that day."""
    return DAY + 3600 * hour + 60 * minute + second


#: (file, line, kind, what the event says)
FACTS = (
    ("accelerate", 2, BAR, {"step": 120, "total": 1000, "elapsed_s": 68.0}),
    ("lightning", 1, EventKind.WORLD, {"rank": 2, "total": 8}),
    ("lightning", 3, BAR, {"step": 320, "total": 5001, "name": "Epoch 0"}),
    ("lightning", 4, EXIT, {"rank": 1, "code": -9}),
    ("hf_trainer", 2, BAR, {"step": 24, "total": 1752, "value": 2.83}),
    ("nemo", 3, STEP, {"rank": 11, "step": 42, "value": 3.22}),
    ("verl", 1, STEP, {"step": 17, "value": 41.3}),
    ("verl", 2, BAR, {"step": 18, "total": 150}),
    ("torchtitan", 1, STEP, {"rank": 1, "step": 41, "time": at(4, 1, 8.117)}),
    ("deepspeed", 1, STEP, {"rank": 0, "step": 43, "time": at(4, 1, 8.117)}),
    ("deepspeed", 2, PHASE, {"rank": 0, "name": "bwd_microstep", "value": 1.02033}),
    ("deepspeed", 3, STEP, {"step": 100, "value": 3.412}),
    ("deepspeed", 4, EXIT, {"code": -6, "local_rank": 7}),
    ("megatron", 1, STEP, {"step": 4410, "total": 100_000, "value": 5.1204}),
    ("megatron", 2, PHASE, {"name": "forward-backward", "value": 5.0202}),
    ("mpirun", 1, STEP, {"rank": 14, "step": 4}),
    ("mpirun", 2, STEP, {"rank": 3, "step": 7, "time": at(4, 11, 20)}),
    ("mpirun", 3, EXIT, {"rank": 14, "code": -9}),
    ("hydra", 2, STEP, {"rank": 3, "step": 4}),
    ("pals", 1, STEP, {"rank": 12, "step": 9}),
    ("pals", 2, EXIT, {"rank": 12, "code": -9}),
    ("pdsh", 2, STEP, {"step": 41}),
    ("pdsh", 4, EventKind.ERROR, {"rank": 9, "name": "ValueError"}),
    ("pdsh", 5, EXIT, {"code": 1, "detail": "node04"}),
    ("cloudwatch", 1, STEP, {"rank": 1, "step": 7, "time": at(4, 11, 20.123)}),
    ("cloudwatch", 2, STEP, {"rank": 2, "step": 8, "time": at(4, 11, 21.123)}),
    ("cloudwatch", 3, STEP, {"rank": 5, "step": 9, "time": at(4, 11, 22.123)}),
    ("kubernetes", 1, STEP, {"rank": 5, "step": 3}),
    ("kubernetes", 2, STEP, {"rank": 6, "step": 4}),
    ("kubernetes", 3, STEP, {"rank": 7, "step": 5}),
    ("ray", 2, STEP, {"rank": 3, "step": 12}),
    ("ray", 3, EventKind.TIMEOUT, {"rank": 11, "seq": 1}),
    ("ray", 4, STEP, {"rank": 11, "step": 4}),
    ("rccl", 1, EventKind.WORLD, {"rank": 3, "total": 16}),
    ("rccl", 2, EventKind.TRANSPORT, {"rank": 3, "code": 12}),
    ("nccl_2_30", 1, EventKind.WORLD, {"rank": 3, "total": 8}),
    ("nccl_2_30", 2, EventKind.TRANSPORT, {"rank": 3, "code": 12, "time": at(4, 11, 20)}),
    ("nccl_2_30", 3, EventKind.NCCL_ERROR, {"detail": "timeout"}),
    ("torchcomms", 1, EventKind.TIMEOUT, {"rank": 3}),
    ("torchcomms", 2, EventKind.TIMEOUT, {"rank": 3, "elapsed_s": 600.0}),
    ("torchcomms", 3, EventKind.NCCL_ERROR, {"rank": 3}),
)


def events(name: str) -> tuple[Event, ...]:
    return find(from_text([(FILES / f"{name}.log").read_text(encoding="utf-8")])).events


@pytest.mark.parametrize(("name", "line", "kind", "facts"), FACTS, ids=[f"{f[0]}-{f[1]}" for f in FACTS])
def test_a_line_of_the_dialect_yields_its_facts(
    name: str, line: int, kind: EventKind, facts: dict[str, object]
) -> None:
    found = [e for e in events(name) if e.kind is kind and e.line.number == line]
    shown = [{key: getattr(e, key) for key in facts} for e in found]
    assert any(each == pytest.approx(facts) for each in shown), shown


def test_every_file_is_asked_about() -> None:
    assert {path.stem for path in FILES.iterdir()} == {name for name, *_ in FACTS}


def test_nodes_come_from_the_launchers_labels() -> None:
    found = find(from_text([(FILES / "pdsh.log").read_text()]))
    assert [line.node for line in found.lines[:4]] == ["node03", "node04", "node03", "node04"]
    (cloud,) = [line for line in find(from_text([(FILES / "cloudwatch.log").read_text()])).lines if line.rank == 5]
    assert cloud.node == "algo-2"
