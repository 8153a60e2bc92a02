import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsdpclassify.numbers import list_spread, longest_duration, outlier, printed_list


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("saved checkpoint in 412.7s", 412.7),
        ("took 3 minutes", 180.0),
        ("took 2 hours, 5 min", 7200.0),
        ("gc pause 250 ms", 0.25),
        ("step_time: 1.5", 1.5),
        ("elapsed time per iteration (ms): 5120.4", 5.1204),
        ("165/400 [05:34<07:56,  2.03s/it]", 334.0),
        ("1:02:03 since start", 3723.0),
        ("nothing here", None),
        ("step 12 of 400", None),
        ("2026-03-05 04:11:09 started", None),
        ("[rank1]:[E305 04:11:09.778120334 x.cpp:1] started", None),
        ("Mar  5 04:11:09 node07 kernel: x", None),
        ("[04:11:09] x", None),
        ("Timeout(ms)=600000) ran for 600041 milliseconds before timing out.", None),
        ("wait timeout after 300000ms, keys: k", None),
        ("watchdog got stuck for 480 seconds", None),
    ],
)
def test_longest_duration(text: str, seconds: float | None) -> None:
    assert longest_duration(text) == (None if seconds is None else pytest.approx(seconds))


def test_outlier_is_the_rank_whose_number_differs() -> None:
    bodies: dict[int | None, str] = {r: f"load time {10 + r % 2} s" for r in range(8)}
    bodies[5] = "load time 400 s"
    assert outlier(bodies, 5) == 5.0
    assert outlier(bodies, 1) < 1.0


def test_outlier_needs_three_ranks() -> None:
    assert outlier({0: "a 1", 1: "a 900"}, 1) == 0.0
    assert outlier({0: "a 1", 1: "a 2", 2: "a 3"}, 7) == 0.0
    assert outlier({0: "a", 1: "b", 2: "c"}, 0) == 0.0


@given(st.dictionaries(st.integers(0, 9) | st.none(), st.text(max_size=60), max_size=6), st.integers(0, 9))
def test_outlier_stays_in_range(bodies: dict[int | None, str], rank: int) -> None:
    assert 0.0 <= outlier(bodies, rank) <= 5.0


@given(st.text(max_size=200))
def test_a_duration_is_not_negative(text: str) -> None:
    assert (longest_duration(text) or 0.0) >= 0.0


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("tokens [4410, 5120, 3988, 262144] (sorted)", (4410, 5120, 3988, 262144)),
        ("stage ms: (8.1, 35.4, 9.0, 8.8)", (8.1, 35.4, 9.0, 8.8)),
        ("ranks [0, 1, 2, 3] joined", ()),
        ("[1, 2, 1]", ()),
        ("shape [2, -1, 3, 4]", ()),
        ("[first, 2, 3, 4]", ()),
        ("", ()),
    ],
)
def test_a_printed_list_holds_one_load_for_each_rank(text: str, values: tuple[float, ...]) -> None:
    assert printed_list(text) == values


def test_the_spread_of_a_list_grows_with_its_largest_value() -> None:
    even, heavy, extreme = (list_spread(f"[{n}, 100, 110, 95]") for n in (105, 800, 90_000))
    assert 0.0 <= even < 0.1 < heavy < extreme == 1.0
    assert list_spread("[0, 0, 0, 0]") == 0.0
