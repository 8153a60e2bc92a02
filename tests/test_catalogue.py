from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fsdpclassify.bundle import read_manifest
from fsdpclassify.catalogue import CATALOGUE_FILE, load_catalogue
from fsdpclassify.errors import BundleError

SHIPPED = Path(__file__).resolve().parents[1] / "models" / "default"


def _content() -> dict[str, Any]:
    remedy = {"summary": "s", "steps": ["a", "b"], "longer_timeout_helps": False, "verify": ["v"], "ops_request": None}
    entry = {
        "id": "x",
        "label": "desync",
        "title": "T",
        "separate_by": "by",
        "look_alike": ["straggler"],
        "remedy": remedy,
    }
    return {
        "causes": [entry, entry | {"id": "y", "label": "straggler"}],
        "boundaries": {"desync": "b"},
        "remedies": {"desync": remedy},
    }


def _write(folder: Path, content: object) -> Path:
    (folder / CATALOGUE_FILE).write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_what_a_bundle_carries_is_read(tmp_path: Path) -> None:
    found = load_catalogue(_write(tmp_path, _content()))
    assert [c.id for c in found.causes] == ["x", "y"]
    assert found.boundaries == {"desync": "b"}
    assert found.remedies["desync"].steps == ("a", "b")
    assert (found.causes[0].separate_by, found.causes[0].look_alike) == ("by", ("straggler",))
    remedy = found.causes[0].remedy
    assert (remedy.steps, remedy.verify, remedy.longer_timeout_helps) == (("a", "b"), ("v",), False)


def test_a_remedy_without_an_ops_request_has_none(tmp_path: Path) -> None:
    content = _content()
    del content["causes"][0]["remedy"]["ops_request"]
    assert load_catalogue(_write(tmp_path, content)).causes[0].remedy.ops_request is None


def test_causes_are_found_by_label_in_the_graph_s_order(tmp_path: Path) -> None:
    found = load_catalogue(_write(tmp_path, _content()))
    assert (found.of_label("desync"), found.of_label("straggler"), found.of_label("ours")) == ([0], [1], [])


DAMAGE: dict[str, Callable[[dict[str, Any]], object]] = {
    "no causes": lambda c: c.pop("causes"),
    "no boundaries": lambda c: c.pop("boundaries"),
    "no remedies": lambda c: c.pop("remedies"),
    "boundaries are a list": lambda c: c.update(boundaries=[]),
    "a cause is a text": lambda c: c.update(causes=["x"]),
    "a cause without remedy": lambda c: c["causes"][0].pop("remedy"),
    "a cause without look-alikes": lambda c: c["causes"][0].pop("look_alike"),
    "a remedy without steps": lambda c: c["causes"][0]["remedy"].pop("steps"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_catalogue_is_refused_by_name(tmp_path: Path, damage: Callable[[dict[str, Any]], object]) -> None:
    content = _content()
    damage(content)
    with pytest.raises(BundleError, match=r"catalogue\.json: not a readable catalogue"):
        load_catalogue(_write(tmp_path, content))


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[]", b"3"])
def test_what_is_no_catalogue_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    (tmp_path / CATALOGUE_FILE).write_bytes(data)
    with pytest.raises(BundleError, match=r"catalogue\.json"):
        load_catalogue(tmp_path)


def test_a_missing_catalogue_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"catalogue\.json"):
        load_catalogue(tmp_path)


@pytest.mark.model
def test_the_released_catalogue_says_something_for_every_label_and_cause() -> None:
    found, labels = load_catalogue(SHIPPED), read_manifest(SHIPPED).labels
    assert len({c.id for c in found.causes}) == len(found.causes)
    assert {c.label for c in found.causes} <= set(labels)
    assert {name for c in found.causes for name in c.look_alike} <= set(labels)
    for label in labels:
        assert found.of_label(label), label
        assert found.boundaries[label], label
    for cause in found.causes:
        assert cause.title, cause.id
        assert cause.separate_by, cause.id
        assert cause.remedy.summary, cause.id
        assert cause.remedy.steps, cause.id
        assert cause.remedy.verify, cause.id
        assert cause.remedy.longer_timeout_helps in (True, False), cause.id
