"""Facts of the ledger about the ranks that do not wait."""

from __future__ import annotations

import pytest

from fsdpclassify.reading import find
from fsdpclassify.sources import from_text
from fsdpclassify.vector import ledger_vector, named
from fsdpclassify.vector_absent import ABSENT_FACTS

_DAY = "2026-03-05"


def watchdog(rank: int) -> str:
    return (
        f"[rank{rank}]:[E305 04:11:09.7 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for "
        "600000 milliseconds before timing out.\n"
    )


def true(*texts: str) -> set[str]:
    (incident,) = find(from_text(texts)).incidents
    found = named(ledger_vector(incident))
    return {name for name in ABSENT_FACTS if found[name]}


@pytest.mark.parametrize(
    ("last", "fact"),
    [
        ("step 12 | loss 2.13 | 0.5 s/it\n", "absent_ends_in_step"),
        ("Tokenizing:  40%|####      | 400/1000 [05:00<07:30,  1.33it/s]\n", "absent_ends_in_step"),
        ("clustering 108402377 points\n", "absent_ends_in_other"),
    ],
)
def test_with_what_the_output_of_the_main_process_ends(last: str, fact: str) -> None:
    assert true("begin\n" + last + watchdog(1)) == {fact}


def test_an_error_is_a_last_word_too() -> None:
    assert "absent_ends_in_error" in true("[rank2]: ValueError: bad\n" + watchdog(1))


def test_a_waiting_main_process_says_nothing_of_the_absent_one() -> None:
    assert true("begin\nclustering points\n" + watchdog(0)) == set()


def test_a_rank_that_prints_during_the_wait_or_after_it_lives() -> None:
    during = f"{_DAY} 04:06:00 [rank2]: shard 9 of 40\n"
    after = f"{_DAY} 04:11:40 [rank2]: shard 30 of 40\n"
    assert "absent_speaks_during" in true(during + watchdog(1))
    assert "absent_speaks_after" not in true(during + watchdog(1))
    assert "absent_speaks_after" in true(watchdog(1) + after)


def test_silence_since_the_wait_began() -> None:
    assert "absent_silent_since_onset" in true(f"{_DAY} 04:01:05 [rank2]: saving\n" + watchdog(1))
    assert "absent_silent_since_onset" not in true(f"{_DAY} 04:10:05 [rank2]: saving\n" + watchdog(1))
