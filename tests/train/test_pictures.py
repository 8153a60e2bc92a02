from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from fsdpclassify.evaluation import summarise
from fsdpclassify.evaluation_curve import CalibrationBin, CurvePoint
from fsdpclassify.evaluation_outcome import Outcome
from train import pictures
from train.tables import tables

_SVG = "{http://www.w3.org/2000/svg}"


def _outcome(label: str, first: str, probability: float) -> Outcome:
    values: dict[str, Any] = {
        "id": "x", "label": label, "conclusion": first, "model_label": first, "probability": probability,
        "truth_probability": 0.3, "brier": 0.2, "strict": first == label, "accepted": True, "determinable": "no",
        "seen": False, "ranks_exact": True, "ranks_wrong": None, "waiting_exact": None, "evidence_hit": None,
        "fatal_hit": None, "cause": "ours", "cause_exact": True,
    }  # fmt: skip
    return Outcome(**values)


OUTCOMES = [_outcome("desync", "desync", 0.9), _outcome("desync", "a<b", 0.6), _outcome("a<b", "a<b", 0.7)]


def _tree(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


def _words(text: str) -> list[str]:
    return [each.text or "" for each in _tree(text).iter(f"{_SVG}text")]


def test_three_well_formed_pictures_are_written_and_are_the_same_each_time(tmp_path: Path) -> None:
    result = summarise(OUTCOMES)
    paths = pictures.write(result, tmp_path / "new" / "folder", "public & more")
    assert [p.name for p in paths] == ["reliability.svg", "risk_coverage.svg", "confusion.svg"]
    texts = [p.read_text() for p in paths]
    assert all(_words(text)[0].endswith("public & more") for text in texts)
    assert texts == [p.read_text() for p in pictures.write(result, tmp_path, "public & more")]


def test_a_bin_stands_at_its_mean_and_share_and_tells_its_size() -> None:
    item = CalibrationBin(low=0.4, high=0.6, count=17, mean_probability=0.5, right=1.0)
    text = pictures.reliability([item], "t")
    (mark,) = _tree(text).iter(f"{_SVG}circle")
    frame = _tree(text).findall(f"{_SVG}rect")[1].attrib
    left, top, side = (float(frame[k]) for k in ("x", "y", "width"))
    assert (float(mark.attrib["cx"]), float(mark.attrib["cy"])) == (left + side / 2, top)
    assert "17 of 17" in _words(text)


def test_the_curve_goes_through_every_point_and_may_be_empty() -> None:
    points = [
        CurvePoint(threshold=0.9, coverage=0.0, precision=1.0),
        CurvePoint(threshold=0.5, coverage=1.0, precision=0.0),
    ]
    text = pictures.risk_coverage(points, "t")
    (line,) = _tree(text).iter(f"{_SVG}polyline")
    assert len(line.attrib["points"].split()) == 2
    assert not list(_tree(pictures.risk_coverage([], "t")).iter(f"{_SVG}polyline"))


def test_the_axis_of_risk_ends_where_the_curve_does_and_precisions_are_marked() -> None:
    points = [
        CurvePoint(threshold=0.9, coverage=0.5, precision=1.0),
        CurvePoint(threshold=0.5, coverage=0.8, precision=0.75),
    ]
    text = pictures.risk_coverage(points, "t")
    frame = _tree(text).findall(f"{_SVG}rect")[1].attrib
    (line,) = _tree(text).iter(f"{_SVG}polyline")
    assert line.attrib["points"].split()[1].split(",")[1] == f"{float(frame['y']):.1f}"
    assert {"0.25", "precision 0.95: 0.50 named", "precision 0.98: 0.50 named"} <= set(_words(text))


def test_the_confusion_shows_each_count_once_and_names_are_escaped() -> None:
    text = pictures.confusion({"desync": {"desync": 4, "a<b": 6}, "a<b": {"a<b": 5}}, "t")
    assert sorted(w for w in _words(text) if w.isdigit()) == ["4", "5", "6"]
    assert [w for w in _words(text) if "a<b" in w] == ["a<b", "a<b (5)"]
    cells = [r for r in _tree(text).iter(f"{_SVG}rect") if "fill-opacity" in r.attrib]
    assert sorted(float(r.attrib["fill-opacity"]) for r in cells) == [0.0, 0.4, 0.6, 1.0]


def test_other_is_a_row_and_never_a_column_and_the_right_cell_has_a_frame() -> None:
    text = pictures.confusion({"other": {"straggler": 1, "undetermined": 2}, "straggler": {"straggler": 3}}, "t")
    assert [w for w in _words(text) if "other" in w] == ["other (3)"]
    frames = [r.attrib for r in _tree(text).iter(f"{_SVG}rect") if r.attrib.get("stroke-width") == "2"]
    cells = [r.attrib for r in _tree(text).iter(f"{_SVG}rect") if "fill-opacity" in r.attrib]
    # Rows: straggler, other; columns: straggler, undetermined.
    assert [(f["x"], f["y"]) for f in frames] == [(cells[k]["x"], cells[k]["y"]) for k in (0, 3)]


def test_tables_are_markdown_with_intervals_and_leave_out_what_was_not_asked() -> None:
    result = summarise(OUTCOMES)
    text = tables(result, {"best-guess": result, "balanced": result})
    for block in text.strip().split("\n\n"):
        assert len({line.count("|") for line in block.splitlines()}) == 1
    assert "| all, strict | 2 of 3, 0.667 (0.21 to 0.94) | 2 of 3, 0.667 |" in text
    assert "| balanced | 3 of 3, 1.000 (0.44 to 1.00) | 3 of 3, 1.000 (0.44 to 1.00) | 2 of 3" in text
    assert "| desync | 2 | 1 | 2 | 1.000 | 0.500 (0.09 to 0.91) | 0.667 |" in text
    assert "calibration error" not in text
    assert "no_timeout" not in text
