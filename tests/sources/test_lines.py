from hypothesis import given
from hypothesis import strategies as st

from fsdpclassify.sources.lines import LAST_FRAMES, MAX_FRAME_BYTES, LineMaker, clean


def made(block: bytes, first: int = 1) -> list[tuple[int, int, str]]:
    return [(line.number, line.frame, line.text) for line in LineMaker(0, None, None).lines(block, first)]


def test_newlines_part_lines_and_the_last_one_opens_no_further_line() -> None:
    assert made(b"a\n\nb\n") == [(1, 0, "a"), (2, 0, ""), (3, 0, "b")]
    assert made(b"a\nb") == [(1, 0, "a"), (2, 0, "b")]
    assert made(b"\n") == [(1, 0, "")]
    assert made(b"") == []


def test_numbers_go_on_from_the_first() -> None:
    assert made(b"a\nb\n", first=41) == [(41, 0, "a"), (42, 0, "b")]


def test_only_a_newline_counts() -> None:
    assert made("a\x0bb\x0cc\x85d\u2028e\n2".encode()) == [(1, 0, "abcde"), (2, 0, "2")]


def test_return_before_newline_ends_the_line() -> None:
    assert made(b"a\r\nb\r\r\nc\r") == [(1, 0, "a"), (2, 0, "b"), (3, 0, "c")]


def test_frames_share_the_number_and_keep_their_index() -> None:
    assert made(b"0%\r50%\r100%[rank5]: error\nx\n") == [
        (1, 0, "0%"),
        (1, 1, "50%"),
        (1, 2, "100%[rank5]: error"),
        (2, 0, "x"),
    ]


def test_empty_frames_are_dropped_but_counted() -> None:
    assert made(b"\ra\r\rb\n") == [(1, 1, "a"), (1, 3, "b")]
    assert made(b"\r\r\r\n") == [(1, 0, "")]


def test_of_many_frames_the_first_two_and_the_last_forty_are_kept() -> None:
    frames = [frame for _, frame, _ in made(b"\r".join(b"f%d" % number for number in range(1000)))]
    assert frames == [0, 1, *range(1000 - LAST_FRAMES, 1000)]


def test_long_frames_are_cut() -> None:
    assert [len(text) for _, _, text in made(b"x" * 200_000 + b"\ny")] == [MAX_FRAME_BYTES, 1]
    assert [len(text) for _, _, text in made(b"\x01" + b"x" * 200_000 + b"\ry")] == [MAX_FRAME_BYTES - 1, 1]


def test_escapes_go_and_tabs_stay() -> None:
    assert clean("\x1b[1;31merror\x1b[0m\tx") == "error\tx"
    assert clean("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b") == "ab"
    assert clean("\x1b(Ba\x1b=b\x9b31mc") == "abc"
    assert clean("cut \x1b[") == "cut "
    assert clean("cut \x1b") == "cut "


def test_nul_and_direction_marks_go() -> None:
    assert clean("a\x00b\x08c\x7fd\u202ee\u2066f\ufeffg") == "abcdefg"


def test_invalid_utf8_is_replaced() -> None:
    assert made(b"a\xff\xfeb\n\xc3\xa4") == [(1, 0, "a\ufffd\ufffdb"), (2, 0, "ä")]


def test_hints_are_on_every_line() -> None:
    lines = LineMaker(3, 7, "node1").lines(b"a\rb\nc\n", 1)
    assert {(line.source, line.hint_rank, line.hint_node) for line in lines} == {(3, 7, "node1")}


@given(st.binary())
def test_any_bytes_make_clean_lines_numbered_without_holes(block: bytes) -> None:
    lines = made(block)
    numbers = sorted({number for number, _, _ in lines})
    assert numbers == list(range(1, 1 + block.count(b"\n") + (block[-1:] not in (b"", b"\n"))))
    assert not any(ord(char) < 32 and char != "\t" for _, _, text in lines for char in text)
    assert lines == sorted(lines, key=lambda line: line[:2])


@given(st.lists(st.binary().map(lambda part: part.replace(b"\n", b"")), min_size=1), st.integers(0, 9))
def test_lines_do_not_depend_on_what_stands_around_them(parts: list[bytes], at: int) -> None:
    at %= len(parts)
    whole = made(b"\n".join(parts) + b"\n")
    assert [line for line in whole if line[0] == at + 1] == made(parts[at] + b"\n", first=at + 1)
