from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsdpclassify.errors import BundleError
from fsdpclassify.facts import LINE_FACTS
from fsdpclassify.training import archive
from fsdpclassify.training.archive import FROZEN_FILE, TRAINING_FILE, VALIDATION_FILE, pack, read, unpack
from fsdpclassify.training.examples import Example
from fsdpclassify.training.fit import Wordings

Make = Callable[..., Example]
SHIPPED = Path(__file__).resolve().parents[2] / "models" / "default"


def test_what_is_packed_comes_back(make_example: Make) -> None:
    given = [
        make_example("a", "straggler", ("x", "y", "x"), (False, True, False), cause="slow_disk"),
        make_example("b", "ours", ("é\u2028 <n>",)),
    ]
    assert unpack(pack(given, [1.0, 2.5])) == (given, [1.0, 2.5])


def test_an_example_without_lines_comes_back(make_example: Make) -> None:
    given = [make_example("a", "desync", (), ()), make_example("b", "desync"), make_example("c", "desync", (), ())]
    assert unpack(pack(given, [1.0] * 3))[0] == given
    assert unpack(pack([], [])) == ([], [])


def test_the_same_examples_give_the_same_bytes(make_example: Make) -> None:
    def once() -> bytes:
        return pack([make_example("a", "straggler"), make_example("b", "desync", ("z", "y"))], [1.0, 1.0])

    assert once() == once()


def test_texts_are_stored_once_and_in_order(make_example: Make) -> None:
    given = [make_example("a", "desync", tuple("qwertyuiop")), make_example("b", "desync", tuple("poiuasdf"))]
    with np.load(io.BytesIO(pack(given, [1.0, 1.0])), allow_pickle=False) as store:
        texts = store["texts"].tobytes().decode().split("\n")
    assert texts == sorted(set("qwertyuiopasdf"))


def test_facts_are_stored_to_half_a_255th_and_capped(make_example: Make) -> None:
    row = tuple(np.linspace(-1.0, 2.0, len(LINE_FACTS)).tolist())
    (found,), _ = unpack(pack([make_example("a", "desync", ("x",), facts=(row,))], [1.0]))
    assert np.abs(np.array(found.facts[0]) - np.clip(row, 0, 1)).max() <= 0.5 / 255 + 1e-7


def test_every_example_needs_a_weight(make_example: Make) -> None:
    with pytest.raises(ValueError, match="zip"):
        pack([make_example("a", "desync")], [])


def test_nothing_is_pickled(make_example: Make) -> None:
    with np.load(io.BytesIO(pack([make_example("a", "desync")], [1.0])), allow_pickle=False) as store:
        assert all(store[name].dtype != object for name in store.files)


def test_a_pickle_inside_is_never_loaded() -> None:
    out = io.BytesIO()
    np.savez(out, texts=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        unpack(out.getvalue())


def test_wordings_travel_with_the_examples(make_example: Make) -> None:
    wordings = Wordings(texts=("a b", "c"), vectors=np.zeros((2, 3), np.float32), labels=("desync", "nothing"))
    data = pack([make_example("a", "desync")], [1.0], archive.pack_wordings(wordings))
    assert archive.unpack_wordings(data) == (["a b", "c"], ["desync", "nothing"])
    assert len(unpack(data)[0]) == 1


def test_an_archive_without_wordings_has_none(make_example: Make) -> None:
    assert archive.unpack_wordings(pack([make_example("a", "desync")], [1.0])) == ([], [])
    none = Wordings(texts=(), vectors=np.zeros((0, 3), np.float32), labels=())
    assert archive.unpack_wordings(pack([], [], archive.pack_wordings(none))) == ([], [])


@pytest.mark.parametrize("data", [b"", b"junk", b"PK\x03\x04junk"])
def test_a_damaged_archive_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    (tmp_path / TRAINING_FILE).write_bytes(data)
    with pytest.raises(BundleError, match=r"training\.npz: no readable training examples"):
        read(tmp_path, TRAINING_FILE)


def test_a_missing_archive_and_missing_arrays_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"frozen\.npz"):
        read(tmp_path, FROZEN_FILE)
    np.savez(tmp_path / FROZEN_FILE, texts=np.zeros(1, np.uint8))
    with pytest.raises(BundleError, match="KeyError"):
        read(tmp_path, FROZEN_FILE)


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=20), max_size=6))
def test_any_template_survives(make_example: Make, texts: list[str]) -> None:
    example = make_example("a", "desync", tuple(texts), (False,) * len(texts))
    assert unpack(pack([example], [1.0]))[0] == [example]


@pytest.mark.model
def test_the_released_archives_hold_templates_and_no_cause_that_is_not_in_the_bundle() -> None:
    for name in (TRAINING_FILE, VALIDATION_FILE, FROZEN_FILE):
        examples, weights = read(SHIPPED, name)
        assert len(examples) == len(weights) > 50
        assert pack(*unpack(pack(examples, weights))) == pack(examples, weights)
        assert not any("\n" in text for e in examples for text in e.texts)
