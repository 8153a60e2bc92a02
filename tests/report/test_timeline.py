"""The time line of `inspect`: few lines, in order of the clock, that name who did what."""

from __future__ import annotations

from fsdpclassify.reading import find
from fsdpclassify.records import Incident
from fsdpclassify.report.structured import Json
from fsdpclassify.report.timeline import LIMIT, timeline
from fsdpclassify.sources import from_text


def watchdog(rank: int, minute: int = 11) -> str:
    return (
        f"[rank{rank}]:[E305 04:{minute:02d}:09.7 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
        "Timeout(ms)=600000) ran for 600041 milliseconds before timing out.\n"
    )


def step(rank: int, number: int, second: int) -> str:
    return f"[rank{rank}]: 2026-03-05 04:00:{second:02d},000 INFO step {number} loss: 2.0 step_time=1.5s\n"


def rows(*texts: str) -> list[Json]:
    (incident,) = find(from_text(texts)).incidents
    return shown(incident)


def shown(incident: Incident) -> list[Json]:
    return timeline(incident, [f"{n}.log" for n in range(9)], lambda text: text.replace("secret", "***"))


def words(found: list[Json]) -> list[tuple[str, list[int], str, int]]:
    return [(row["kind"], row["ranks"], row["what"], row["lines"]) for row in found]


def test_steps_are_summed_up_for_ranks_that_went_together() -> None:
    text = "".join(step(rank, n, n) for n in range(1, 6) for rank in (0, 1)) + step(2, 1, 1) + step(2, 2, 2)
    assert words(rows(text + watchdog(0)))[:2] == [
        ("step", [2], "steps 1 to 2, 1.5 s each", 2),
        ("step", [0, 1], "steps 1 to 5, 1.5 s each", 10),
    ]


def test_the_same_wait_of_many_ranks_is_one_row() -> None:
    found = rows("".join(map(watchdog, (3, 0, 1))))
    assert words(found) == [("timeout", [0, 1, 3], "gave up ALLREDUCE seq 812 (1 element) after 600 s (10 min)", 3)]
    assert found[0]["clock"] == "04:11:09"
    assert found[0]["is_detection"]
    assert found[0]["text"] is None


def test_what_happens_later_is_told_apart() -> None:
    assert len(rows(watchdog(0) + watchdog(0, minute=31))) == 2


def test_rows_stand_in_the_order_of_the_clock_whatever_the_order_of_files() -> None:
    died = "[rank2]: 2026-03-05 04:05:00,000 INFO at work\n[rank2]: ValueError: secret sample\n"
    found = rows(watchdog(0), died, step(1, 7, 1))
    assert [row["kind"] for row in found] == ["step", "error", "timeout"]
    assert [row["clock"] for row in found] == ["04:00:01", "~04:05:00", "04:11:09"]
    assert found[1]["text"] == "ValueError: *** sample"


def test_a_long_story_keeps_failures_and_the_detection() -> None:
    noise = "".join(
        f"[rank{n}]: 2026-03-05 04:10:{n % 60:02d},000 INFO resume: Epoch {n}:  5%|5| 5/99 [00:01<00:09, 1.0it/s]\n"
        for n in range(90)
    )
    died = "[rank2]: 2026-03-05 04:05:00,000 INFO at work\n[rank2]: ValueError: bad sample\n"
    found = rows(noise, died, watchdog(0))
    assert len(found) == LIMIT
    assert {"error", "timeout"} <= {row["kind"] for row in found}
