from __future__ import annotations

from fsdpclassify.features import FEATURE_VERSION, LEDGER_FACTS, LINE_FACTS, Features, extract
from fsdpclassify.reading import find
from fsdpclassify.sources import from_text

TIMEOUT = (
    "[rank0]:[E512 21:10:07.118820344 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600013"
    " milliseconds before timing out."
)


def _features(*lines: str, hung: bool = False) -> Features:
    found = find(from_text(["\n".join(lines) + "\n"]), hung=hung)
    (incident,) = found.incidents
    return extract(incident, found.kinds)


def test_the_version_is_the_one_that_bundles_were_made_for() -> None:
    # Raised with every change of a fact: bundles of another version are refused.
    assert FEATURE_VERSION == 3


def test_every_part_has_the_size_that_the_model_takes() -> None:
    found = _features("[rank1]: saving took 41 s", "[rank1]: saved", TIMEOUT)
    assert len(found.texts) == len(found.facts) == len(found.window) == 3
    assert {len(row) for row in found.facts} == {len(LINE_FACTS)}
    assert len(found.ledger) == len(LEDGER_FACTS)
    assert found.texts == tuple(row.text for row in found.window)


def test_numbers_leave_the_text_and_come_back_as_facts() -> None:
    slow = _features("[rank1]: saving took 590 s", TIMEOUT)
    fast = _features("[rank1]: saving took 3 s", TIMEOUT)
    assert slow.texts == fast.texts
    column = LINE_FACTS.index("duration_share")
    assert slow.facts[0][column] > fast.facts[0][column] > 0
    assert slow.ledger == fast.ledger


def test_repeated_lines_are_one_text_with_a_count() -> None:
    once, often = (_features(*["[rank1]: shard 7 is late"] * n, TIMEOUT) for n in (1, 9))
    assert once.texts == often.texts
    column = LINE_FACTS.index("repeats")
    assert often.facts[0][column] > once.facts[0][column]


def test_the_same_text_gives_the_same_features() -> None:
    lines = ("[rank1]: saving took 590 s", "[rank2]: CUDA error", TIMEOUT)
    one, two = _features(*lines), _features(*lines)
    assert (one.texts, one.facts, one.ledger) == (two.texts, two.facts, two.ledger)


def test_a_lone_phrase_has_features_too() -> None:
    found = _features("NCCL timeout error during FSDP parameter shard collection")
    assert len(found.ledger) == len(LEDGER_FACTS)
    assert len(found.texts) == len(found.facts)
