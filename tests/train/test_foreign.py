from __future__ import annotations

from pathlib import Path

import pytest

from fsdpclassify.classifier import Classifier
from fsdpclassify.records import Abstention
from fsdpclassify.sources import from_text
from train import foreign


def test_the_texts_are_many_of_both_parts_and_name_no_rank() -> None:
    texts = foreign.load()
    assert all(sum(t.part == part for t in texts) >= 20 for part in foreign.PARTS)
    assert not any("NCCL" in line or "[rank" in line for t in texts for line in t.lines)


def test_every_way_is_an_incident_and_holds_the_text() -> None:
    lines = ("The oven is cold.", "Nobody came.")
    classifier = Classifier.load()
    for write in foreign.WAYS.values():
        text = write(lines)
        assert all(line in text for line in lines)
        assert classifier.inspect(text).incidents


def test_an_answer_is_counted_and_named() -> None:
    told = [
        foreign.Told(name="a", way="w", verdict="straggler", because=None),
        foreign.Told(name="b", way="w", verdict="undetermined", because=Abstention.OUT_OF_SCOPE),
        foreign.Told(name="c", way="w", verdict="undetermined", because=Abstention.LOW_CONFIDENCE),
        foreign.Told(name="d", way="w", verdict="no_timeout", because=None),
    ]
    text = foreign.render("fresh", told, names=True)
    assert "given a cause: 1 of 4 (0.250, 0.05 to 0.70); out of scope: 1\n  a (w): straggler\n" in text
    assert foreign.render("fresh", told, names=False).count("\n") == 1


def test_most_foreign_texts_are_abstained_on() -> None:
    found = foreign.ask(Classifier.load(), foreign.load()[::6], "high-precision")
    named = [each for each in found if each.verdict not in ("undetermined", "no_timeout")]
    assert len(named) <= len(found) // 8


@pytest.mark.parametrize(
    "rows",
    ['[[text]]\nname="a"\npart="old"\nlines="x"', '[[text]]\nname="a"\npart="fresh"\nlines="x"\n' * 2],
)
def test_a_wrong_part_and_a_name_given_twice_are_refused(tmp_path: Path, rows: str) -> None:
    path = tmp_path / "f.toml"
    path.write_text(rows)
    with pytest.raises(ValueError, match="a"):
        foreign.load(path)


def test_without_a_vocabulary_nothing_is_unlike() -> None:
    classifier = foreign._unguarded(Classifier.load())
    text = foreign.WAYS["before one rank's sentence"](("kiln orlop hawser", "quokka plinth zephyr"))
    (found,) = classifier.classify_modes(from_text([text]), ("balanced",))["balanced"].incidents
    assert found.model_label in classifier.labels
