"""The released bundle says of 24 varied incidents what it said when it was released."""

from __future__ import annotations

import difflib
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from fsdpclassify.bundle import read_manifest

pytestmark = pytest.mark.model
COMMAND = "python tests/incidents/regenerate.py"


def _load() -> ModuleType:
    path = Path(__file__).with_name("regenerate.py")
    spec = importlib.util.spec_from_file_location("regenerate_golden", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


golden = _load()


@pytest.fixture(scope="module")
def folder() -> Path:
    version = read_manifest(golden.BUNDLE).version
    found: Path = golden.folder_of(version)
    assert found.is_dir(), f"no golden diagnoses for bundle {version}: {COMMAND}"
    return found


@pytest.fixture(scope="module")
def diagnoses() -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = golden.diagnoses()
    return found


def test_every_golden_incident_has_its_file(folder: Path) -> None:
    assert sorted(path.stem for path in folder.iterdir()) == sorted(golden.NAMES), COMMAND
    assert len(golden.NAMES) == len(set(golden.NAMES)) == 24


@pytest.mark.parametrize("name", golden.NAMES)
def test_the_diagnosis_is_the_golden_one(folder: Path, diagnoses: dict[str, dict[str, object]], name: str) -> None:
    expected = (folder / f"{name}.json").read_text(encoding="utf-8")
    found = golden.to_text(diagnoses[name])
    if found != expected:
        lines = difflib.unified_diff(expected.splitlines(), found.splitlines(), "golden", "now", lineterm="", n=2)
        shown = "\n".join(lines)
        pytest.fail(f"{name} is diagnosed differently; if that is meant: {COMMAND}\n{shown}", pytrace=False)


def test_the_golden_incidents_are_varied(folder: Path, diagnoses: dict[str, dict[str, object]]) -> None:
    flat = [x for value in diagnoses.values() for x in value["incidents"]]  # type: ignore[attr-defined]
    assert {x["model_label"] for x in flat} >= set(read_manifest(golden.BUNDLE).labels) - {"offload_latency"}
    assert {x["abstained_because"] for x in flat} >= {None, "low_confidence", "out_of_scope"}
    assert any(not value["incidents"] for value in diagnoses.values())
