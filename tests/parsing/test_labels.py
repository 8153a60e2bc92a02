from collections.abc import Callable

from fsdpclassify.records import Line

Lines = Callable[..., list[Line]]


def test_bracketed_ranks_on_every_line_are_ranks(lines: Lines) -> None:
    found = lines("".join(f"[{n % 3}] step {n} loss 2.0\n" for n in range(9)).rstrip())
    assert [line.rank for line in found] == [0, 1, 2] * 3
    assert found[0].body == "step 0 loss 2.0"
    assert found[0].text == "[0] step 0 loss 2.0"


def test_a_bracketed_number_now_and_then_is_text(lines: Lines) -> None:
    found = lines("[1] first remark\nstep 1\nstep 2\n[2] second remark\nstep 3")
    assert [line.rank for line in found] == [None] * 5


def test_one_number_on_every_line_is_no_rank(lines: Lines) -> None:
    assert {line.rank for line in lines("[7] a\n[7] b\n[7] c\n[7] d\n[7] e")} == {None}


def test_hosts_on_every_line_are_nodes(lines: Lines) -> None:
    found = lines("node03: step 1\nnode04: step 1\nnode03: [rank5]: Traceback (most recent call last):\nnode04: a")
    assert [line.node for line in found] == ["node03", "node04", "node03", "node04"]
    assert [line.rank for line in found] == [None, None, 5, None]


def test_words_with_numbers_are_no_hosts(lines: Lines) -> None:
    found = lines("gpu0: 4 GiB\ngpu1: 4 GiB\nlayer3: ok\nlayer4: ok\nepoch1: ok")
    assert {line.node for line in found} == {None}


def test_levels_are_no_hosts(lines: Lines) -> None:
    assert {line.node for line in lines("INFO: a\nINFO: b\nINFO: c\nWARNING: d\nINFO: e")} == {None}
