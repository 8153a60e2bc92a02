import pytest

from fsdpclassify.reading import find
from fsdpclassify.sources import from_text
from fsdpclassify.window import BEFORE_LINES, MAX_TEMPLATES, When, WindowLine, cut_window


def watchdog(rank: int, clock: str = "04:11:09") -> str:
    return (
        f"[rank{rank}]:[E305 {clock}.7 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600000 "
        "milliseconds before timing out.\n"
    )


WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau".split()


def distinct(count: int) -> list[str]:
    """Lines whose templates differ."""
    return [f"{a} {b} {c}" for a in WORDS for b in WORDS for c in WORDS][:count]


def window(*texts: str, of: int = -1) -> list[WindowLine]:
    found = find(from_text(texts))
    return cut_window(found.incidents[of], found.kinds)


def by_text(rows: list[WindowLine]) -> dict[str, WindowLine]:
    return {row.line.body: row for row in rows}


def test_sides_by_clock() -> None:
    text = "2026-03-05 {c} INFO {word} item\n"
    lines = [text.format(c=c, word=w) for c, w in [("04:00:00", "early"), ("04:05:00", "amid"), ("04:11:30", "late")]]
    rows = window("".join(lines), watchdog(0))
    when = {next(w for w in ("early", "amid", "late", "Watchdog") if w in row.line.text): row.when for row in rows}
    assert when == {"early": When.BEFORE, "amid": When.DURING, "late": When.AFTER, "Watchdog": When.AFTER}


def test_long_after_the_detection_nothing_counts() -> None:
    rows = window("2026-03-05 04:30:00 INFO late item\n", watchdog(0))
    assert all("late" not in row.line.text for row in rows)


def test_without_clocks_the_detection_line_is_the_border() -> None:
    gloo = "[rank1]: RuntimeError: Timed out waiting 60000ms for recv operation to complete\n"
    rows = by_text(window("first thing\n" + gloo + "last thing\n"))
    assert rows["first thing"].when is When.BEFORE
    assert rows["last thing"].when is When.AFTER
    assert rows["first thing"].age_s is None


def test_lines_of_one_template_are_counted_together_with_their_ranks() -> None:
    text = "".join(f"[rank{r}]: loaded shard {r} in {r}.5 s\n" for r in range(4))
    (row,) = [row for row in window(text + watchdog(0)) if "loaded" in row.line.text]
    assert (row.count, row.ranks) == (4, {0, 1, 2, 3})
    assert len(row.bodies) == 4


def test_at_most_a_hundred_lines_before_the_wait() -> None:
    rows = window("\n".join(distinct(3 * BEFORE_LINES)) + "\n" + watchdog(0))
    assert sum(row.when is When.BEFORE for row in rows) <= BEFORE_LINES


def test_the_whole_stays_bounded() -> None:
    files = ["".join(f"[rank{r}]: {w} {WORDS[r]}\n" for w in distinct(90)) for r in range(1, 8)]
    assert len(window(*files, watchdog(0))) <= MAX_TEMPLATES


def test_an_incident_does_not_see_the_lines_of_its_neighbour() -> None:
    text = "step 1 loss: 2\nalpha beta\n" + watchdog(0) + "step 2 loss: 2\ngamma delta\n" + watchdog(0, "05:11:09")
    assert "alpha beta" in by_text(window(text, of=0))
    assert max(row.line.number for row in window(text, of=0)) < 6, "ends before the next detection"
    assert "alpha beta" not in by_text(window(text, of=1))


def test_rules_and_registers_are_left_out() -> None:
    rows = window("=" * 40 + "\nframe #3: foo + 0x1 (0x7f in a.so)\nPC: @ 0x7e\nalpha beta\n" + watchdog(0))
    assert [row.line.body[:5] for row in rows] == ["alpha", "[Rank"]


def test_detection_lines_are_marked() -> None:
    rows = window("alpha beta\n" + watchdog(0))
    assert [row.is_detection for row in rows] == [False, True]


def gloo(rank: int) -> str:
    return f"[rank{rank}]: RuntimeError: Timed out waiting 60000ms for recv operation to complete\n"


def test_what_a_waiting_rank_prints_after_its_own_wait_is_later_in_its_own_file_too() -> None:
    rows = by_text(window("alpha thing\n" + gloo(0), "beta thing\n" + gloo(1) + "terminate called at exit\n"))
    assert rows["beta thing"].when is When.BEFORE
    assert rows["terminate called at exit"].when is When.AFTER


@pytest.mark.parametrize(
    "line", ["    raise ChildFailedError(", "/opt/app/train.py FAILED", "    raise ProcessRaisedException(msg, i, p)"]
)
def test_a_launchers_report_is_left_out(line: str) -> None:
    assert line.strip() not in {row.line.body.strip() for row in window(f"alpha thing\n{line}\n" + gloo(0))}


def test_an_amount_of_zero_is_another_line_than_an_amount() -> None:
    rows = window("swap used 0 B\nswap used 31 B\nswap used 7 B\n" + gloo(0))
    assert sorted(row.count for row in rows if "swap" in row.text) == [1, 2]
