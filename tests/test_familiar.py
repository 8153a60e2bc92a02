from __future__ import annotations

from pathlib import Path

import pytest

from fsdpclassify.familiar import (
    WORDS_FILE,
    is_familiar,
    known_share,
    load_words,
    vocabulary,
    words_bytes,
    words_of,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Saving checkpoint at <num>s", {"saving", "checkpoint", "at", "num"}),
        ("cudaMemcpy x 7 a_b", {"cudamemcpy"}),
        ("数据已经保存, Größe", {"数据已经保存", "größe"}),
        ("12:30 -- 7", set()),
    ],
)
def test_words_are_runs_of_letters_in_lower_case(text: str, words: set[str]) -> None:
    assert words_of(text) == words


def test_a_word_belongs_to_the_vocabulary_from_two_distinct_texts_on() -> None:
    assert vocabulary(["saving now", "saving now", "saving later", "never later"]) == {"saving", "later"}


def test_a_line_is_known_only_if_every_word_is() -> None:
    known = {"step", "loss"}
    assert known_share(["step loss", "step orlop", "loss", "orlop"], known) == 0.5
    assert known_share(["<7> --"], known) == known_share([], known) == 1.0


def test_a_name_in_a_long_line_is_forgiven_and_a_line_without_words_is_not_familiar() -> None:
    known = {f"w{chr(97 + i)}" for i in range(20)}
    assert is_familiar(" ".join([*sorted(known), "orlop"]), known)
    assert not is_familiar("wa orlop", known)
    assert not is_familiar("--", known)


def test_a_vocabulary_travels_as_sorted_lines_and_may_be_missing(tmp_path: Path) -> None:
    assert load_words(tmp_path) is None
    data = words_bytes({"step", "größe", "loss"})
    assert data.decode() == "größe\nloss\nstep\n"
    (tmp_path / WORDS_FILE).write_bytes(data)
    assert load_words(tmp_path) == {"step", "größe", "loss"}
