"""Which global rank wrote a dump."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from fsdpclassify.recorder.dumps import Dump, read_dump
from fsdpclassify.recorder.ranks import Claim, assign


def claims(dumps: Mapping[str, Dump], hints: Mapping[str, int] | None = None) -> dict[int, Claim]:
    return {
        i: Claim(dump=dump, path=path, hint=(hints or {}).get(path)) for i, (path, dump) in enumerate(dumps.items())
    }


def of(make: ModuleType, *groups: tuple[str, tuple[int, ...]], works: tuple[object, ...] = ()) -> Dump:
    listed = {name: ("", ranks) for name, ranks in groups}
    return read_dump(make.dump(list(works), groups=listed or None))


def test_the_only_rank_in_all_groups_wrote_it_whatever_the_file_is_called(make: ModuleType) -> None:
    dump = of(make, ("0", (0, 1, 2, 3)), ("1", (1, 3)), ("2", (2, 3)))
    assert assign(claims({"node07-gpu1.pkl": dump})) == ({3: 0}, {})
    assert assign(claims({"trace_rank_1": dump})) == ({3: 0}, {})


def test_a_name_counts_only_for_ranks_that_the_groups_allow(make: ModuleType) -> None:
    dump = of(make, ("0", (4, 5, 6, 7)))
    ranks, reasons = assign(claims({"a/nccl_trace_rank_5.pkl.gz": dump, "b/rank_1": dump}))
    assert ranks == {5: 0}
    assert list(reasons) == [1]


def test_a_host_number_is_no_rank(make: ModuleType) -> None:
    dump = of(make, ("0", (0, 1, 2, 3)))
    ranks, reasons = assign(claims({"host2.pkl": dump, "host3.pkl": dump}))
    assert ranks == {}
    assert "does not tell which rank" in reasons[0]


def test_trailing_numbers_count_if_they_differ(make: ModuleType) -> None:
    dump = of(make, ("0", (0, 1, 2, 3)))
    assert assign(claims({"x/_dump_0": dump, "x/_dump_3": dump}))[0] == {0: 0, 3: 1}
    assert assign(claims({"job_1": dump, "copy_1": dump}))[0] == {}


def test_sends_name_the_writer_in_its_group(make: ModuleType) -> None:
    send = make.work(1, op="nccl:send 1->0", group=("7", "pp"), is_p2p=True)
    dump = of(make, ("0", (0, 1, 2, 3)), ("7", (2, 3)), works=(send,))
    assert assign(claims({"a": dump}))[0] == {3: 0}


def test_the_last_one_is_found_by_elimination(make: ModuleType) -> None:
    known, open_ = of(make, ("0", (0, 1)), ("1", (1,))), of(make, ("0", (0, 1)))
    assert assign(claims({"a": open_, "b": known}))[0] == {0: 0, 1: 1}


def test_a_path_rule_gives_the_rank_where_nothing_else_does(make: ModuleType) -> None:
    dump = of(make, ("0", (0, 1, 2, 3)))
    assert assign(claims({"two/dump": dump}, {"two/dump": 2}))[0] == {2: 0}


def test_of_two_dumps_of_one_rank_the_newer_counts(make: ModuleType) -> None:
    old, new = (read_dump(make.dump(make.steps(n), groups=make.WORLD)) for n in (3, 5))
    ranks, reasons = assign(claims({"old/trace_rank_1": old, "new/trace_rank_1": new}))
    assert ranks == {1: 1}
    assert "new/trace_rank_1" in reasons[0]
