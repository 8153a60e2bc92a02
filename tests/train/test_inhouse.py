from __future__ import annotations

import re
from pathlib import Path

import pytest

from fsdpclassify.labelled import load_all
from fsdpclassify.reading import find
from fsdpclassify.sources import collect
from train import inhouse
from train.inhouse import Answer
from train.inhouse_logs import _DAILY, FAMILIES, is_new, make, make_silent

_LINES = Path(__file__).resolve().parents[2] / "data" / "lines"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("house")
    make(root / "given", "given", 5)
    make(root / "fresh", "fresh", 5)
    make_silent(root / "silent", 2)
    return root


def test_no_wording_of_the_house_is_known_to_the_inventory() -> None:
    known = "\n".join(path.read_text(encoding="utf-8") for path in sorted(_LINES.glob("*.toml"))).lower()
    texts = [*_DAILY, *(text for family in FAMILIES for text in (*family.known, *family.new))]
    programs = {re.split(r"[:.\-]", text)[0].removesuffix("d") for text in texts}
    assert len(programs) >= 6
    assert not [name for name in programs if name in known]


def test_every_incident_is_seen_and_names_one_rank_that_does_not_come(made: Path) -> None:
    incidents = load_all([made])
    assert len(incidents) == 5 * 5 * 2 + 2
    for incident in incidents:
        (found,) = find(collect([incident.logs])).incidents
        assert len(found.waiting) in (3, 7, 15)


def test_fresh_incidents_share_no_logs_with_the_given_ones_and_most_use_new_words(made: Path) -> None:
    given, fresh = ({p.parent.name: _logs(p.parent) for p in (made / n).glob("*/logs")} for n in ("given", "fresh"))
    assert not set(given.values()) & set(fresh.values())
    assert len(set(fresh.values())) == len(fresh) == 25
    assert not any(is_new(made / "given" / name) for name in given)
    assert sum(is_new(made / "fresh" / name) for name in fresh) == 15


def test_the_same_part_is_the_same_each_time(made: Path, tmp_path: Path) -> None:
    make(tmp_path, "given", 2)
    for folder in tmp_path.iterdir():
        assert _logs(folder) == _logs(made / "given" / folder.name)


def _logs(folder: Path) -> str:
    return "".join(path.read_text() for path in sorted((folder / "logs").iterdir()))


def test_the_table_tells_first_labels_verdicts_and_wrong_causes() -> None:
    fresh = [
        Answer(label="desync", new=True, first="desync", verdict="undetermined"),
        Answer(label="desync", new=False, first="straggler", verdict="straggler"),
        Answer(label="house", new=False, first="house", verdict="house"),
    ]
    silent = [Answer(label="undetermined", new=False, first="desync", verdict="undetermined")]
    rows = inhouse.render("after", fresh, silent).splitlines()
    assert re.fullmatch(r"  fresh +2/3 \[0\.21, 0\.94\]  1/3  1", rows[1])
    assert re.fullmatch(r"    told in known words +1/2 \[.*\]  1/2  1", rows[2])
    assert re.fullmatch(r"    desync +1/2 \[.*\]  0/2  1", rows[4])
    assert rows[-1].endswith("a cause is concluded for 0/1")
