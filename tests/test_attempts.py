"""Which detections are one incident: restarts, counters that fall back, repeated tails; in time linear in attempts."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from fsdpclassify.reading import find
from fsdpclassify.records import Incident
from fsdpclassify.sources import from_text

START = datetime(2026, 3, 5, 4, 0, 0)
BANNER = "[rank0]: {clock} INFO Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/2\n"


def clock(second: float) -> str:
    return (START + timedelta(seconds=second)).strftime("%Y-%m-%d %H:%M:%S,000")


def step(number: int, second: float, rank: int | None = 0) -> str:
    who = "" if rank is None else f"[rank{rank}]: "
    return f"{who}{clock(second)} INFO step {number} loss 2.{number}\n"


def timeout(second: float, rank: int = 0, seq: int = 812) -> str:
    at = START + timedelta(seconds=second)
    return (
        f"[rank{rank}]:[E{at.month}{at.day:02d} {at:%H:%M:%S}.778120334 ProcessGroupNCCL.cpp:632] [Rank {rank}] "
        f"Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=1, "
        "NumelOut=1, Timeout(ms)=600000) ran for 600000 milliseconds before timing out.\n"
    )


def run(first: int, last: int, second: float, rank: int | None = 0, seq: int = 812) -> str:
    """Steps `first` to `last`, one in ten seconds, and a timeout ten minutes after them."""
    steps = "".join(step(n, second + 10 * i, rank) for i, n in enumerate(range(first, last + 1)))
    return steps + timeout(second + 10 * (last - first) + 600, seq=seq)


def incidents(*texts: str) -> Sequence[Incident]:
    return find(from_text(texts)).incidents


@pytest.mark.parametrize("rank", [0, None])
def test_a_run_resumed_from_an_earlier_step_is_an_attempt_of_its_own(rank: int | None) -> None:
    first, second = incidents(run(100, 120, 0, rank) + run(101, 106, 2000, rank, seq=44))
    assert (first.collective.seq, second.collective.seq) == (812, 44)  # type: ignore[union-attr]
    assert second.first_line == {0: 23}
    assert all(e.line.number > 22 for e in second.events if e.step is not None)


@pytest.mark.parametrize(
    "line",
    [
        "Resuming from checkpoint /ckpt/step_100",
        "INFO resuming training from step 100",
        "Resumed from /data/run/ckpt-100.pt",
        "Resuming from global_step 100",
        "  successfully loaded checkpoint from /ckpt at iteration 100",
    ],
)
def test_a_run_that_resumed_and_never_made_a_step_is_an_attempt_of_its_own(line: str) -> None:
    text = run(100, 120, 0) + f"{clock(1500)} {line}\n" + timeout(2400, seq=1)
    assert len(incidents(text)) == 2
    assert len(incidents(f"{clock(-60)} {line}\n" + run(100, 120, 0))) == 1


def test_each_attempt_in_files_of_its_own_is_an_incident() -> None:
    assert len(incidents(run(100, 120, 0), run(101, 106, 2000))) == 2
    assert len(incidents(run(100, 120, 0, None), run(101, 106, 2000, None))) == 2


def test_progress_of_a_resumed_attempt_is_not_hidden_by_further_steps_of_an_earlier_one() -> None:
    text = run(100, 120, 0) + run(50, 60, 2000) + run(61, 70, 4000)
    assert len(incidents(text)) == 3
    crashed = "".join(step(n, 10 * n) for n in range(100, 120)) + BANNER.format(clock=clock(1900))
    assert len(incidents(crashed + run(50, 60, 2000) + run(61, 70, 4000))) == 2


@pytest.mark.parametrize("stamp", ["", "2026-03-05 04:00:00 "])
def test_a_tail_that_is_repeated_word_by_word_is_one_incident(stamp: str) -> None:
    tail = (
        "".join(f"{stamp}step {n} loss 2.{n}\n" for n in range(7))
        + "[rank0]: RuntimeError: Timed out waiting 1800000ms for recv operation to complete\n"
    )
    assert len(incidents(tail)) == 1
    assert len(incidents(tail + tail)) == 1


def test_without_clocks_a_counter_that_falls_back_in_one_file_tells_a_restart() -> None:
    lost = "[rank0]: RuntimeError: Timed out waiting 1800000ms for recv operation to complete\n"
    first = "".join(f"[rank0]: step {n} loss 2.{n}\n" for n in range(100, 107)) + lost
    second = "".join(f"[rank0]: step {n} loss 1.{n}\n" for n in range(102, 105)) + lost
    assert len(incidents(first + second)) == 2


def test_ranks_one_step_apart_are_no_restart() -> None:
    """Lines that name no rank: another rank prints the step before, which it reached late."""
    text = step(56, 0, None) + step(57, 10, None) + timeout(610) + step(56, 620, None) + timeout(640, rank=1)
    assert len(incidents(text)) == 1


def test_the_missing_rank_that_goes_on_with_its_own_work_is_no_progress() -> None:
    """A long evaluation counts steps of its own: below those of the training, and rising all the time."""
    trained = "".join(step(n, 10 * (n - 4000), 0) for n in range(4000, 4004))
    before = "".join(f"[rank0]: {clock(40 + 10 * n)} INFO eval step {n}\n" for n in range(1, 60))
    after = "".join(f"[rank0]: {clock(700 + 10 * n)} INFO eval step {60 + n}\n" for n in range(60))
    assert len(incidents(trained + before + timeout(650, rank=1) + after + timeout(1400, rank=2))) == 1


def attempts(count: int) -> str:
    return "".join(BANNER.format(clock=clock(900 * n)) + run(100, 104, 900 * n + 10, seq=n) for n in range(count))


def test_every_attempt_of_many_is_found_with_its_own_lines() -> None:
    found = incidents(attempts(40))
    assert [x.collective.seq for x in found if x.collective] == list(range(40))
    assert [len(x.lines) for x in found] == [7] * 40
    assert {len([e for e in x.events if e.step is not None]) for x in found} == {5}


def test_the_time_for_many_attempts_grows_no_faster_than_their_number() -> None:
    def seconds(count: int) -> float:
        sources = from_text([attempts(count)])
        started = time.process_time()
        assert len(find(sources).incidents) == count
        return time.process_time() - started

    seconds(20)
    small, large = min(seconds(100) for _ in range(2)), min(seconds(800) for _ in range(2))
    assert large < 24 * small + 0.2, "eight times the attempts; one that looks at all others takes 64 times as long"


@pytest.mark.parametrize("seed", range(12))
def test_wherever_clocks_jump_each_incident_keeps_its_own_detection(seed: int) -> None:
    rng = random.Random(seed)
    texts, second = [], 0
    for _ in range(rng.randint(1, 3)):
        text = ""
        for _ in range(rng.randint(2, 40)):
            second = max(0, second + rng.choice([-700, 0, 1, 10, 600]))
            rank = rng.choice([0, 1, 2])
            kinds = (step(rng.randint(0, 300), second, rank), timeout(second, rank), BANNER.format(clock=clock(second)))
            text += rng.choice(kinds)
        texts.append(text)
    for x in incidents(*texts, timeout(second + 900)):
        place = x.detection.line.source, x.detection.line.number
        assert place in {(line.source, line.number) for line in x.lines}
        assert x.first_line.get(place[0], 0) <= place[1] <= x.last_line.get(place[0], place[1])
