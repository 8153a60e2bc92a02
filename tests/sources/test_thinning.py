"""Thinning leaves out repetitions alone: the last lines, rare lines and unknown printers stay."""

from fsdpclassify import sources
from fsdpclassify.sources.interface import Anchor
from fsdpclassify.sources.limits import Limits
from fsdpclassify.sources.thinning import Thinner

LIMITS = Limits(last_lines=5, steps_each=3, repeats_each=2, sample_steps=2)


def said(rank: int, count: int, text: str = "cache holds {} entries") -> list[bytes]:
    return [f"[rank{rank}]: {text.format(number)}".encode() for number in range(count)]


def before(lines: list[bytes]) -> list[bytes]:
    thinner = Thinner(limits=LIMITS)
    return [lines[index] for index in thinner.before(lines)]


def test_the_last_lines_of_each_printer_stay() -> None:
    loud, quiet = said(1, 50), said(2, 5)
    kept = before(quiet + loud)
    assert kept == quiet + loud[-7:]


def test_steps_further_back_are_kept_apart_from_other_lines() -> None:
    steps = said(1, 20, "step {}")
    kept = before(steps + said(1, 20))
    assert [line for line in kept if b"step" in line] == steps[-3:]


def test_a_rare_line_is_kept_however_far_back_it_lies() -> None:
    rare = [b"[rank1]: Killed by somebody"]
    assert before(rare + said(1, 500))[0] == rare[0]


def test_lines_of_an_unknown_printer_stay() -> None:
    unknown = [f"host-a:{number}:77 [0] NCCL INFO comm rank {number}".encode() for number in range(40)]
    kept = before(unknown + said(1, 400))
    assert kept[:40] == unknown


def test_a_text_without_printers_stays_whole() -> None:
    lines = [f"cache holds {number} entries".encode() for number in range(300)]
    assert before(lines) == lines


def test_samples_keep_steps_of_each_printer_and_each_other_kind() -> None:
    steps = [line for rank in range(4) for line in said(rank, 6, "step {}")]
    others = said(1, 100)
    thinner = Thinner(limits=LIMITS)
    kept = [(steps + others)[index] for index in thinner.sample(steps + others)]
    assert sum(b"step" in line for line in kept) == 8
    assert 0 < sum(b"cache" in line for line in kept) < 100


def test_numbers_and_gaps_account_for_every_line() -> None:
    lines = [f"[rank{n % 4}]: cache holds {n} entries" for n in range(120_000)]
    lines[100_000] = "[rank2]: Watchdog caught collective operation timeout"
    text = "\n".join(lines)
    reading = sources.read(
        sources.from_text([text]),
        [Anchor(name="timeout", pattern=b"Watchdog caught", detection=True)],
        limits=Limits(whole_bytes=1 << 20),
    )
    kept = {line.number for line in reading.lines}
    skipped = {number for gap in reading.gaps for number in range(gap.first, gap.last + 1)}
    assert all(lines[line.number - 1] == line.text for line in reading.lines)
    assert kept | skipped == set(range(1, len(lines) + 1))
    assert not kept & skipped
    assert 100_001 in kept
    assert set(range(100_001 - 4 * Limits().last_lines, 100_001)) <= kept
    assert len(kept) < 25_000
