"""The builder of dump sets, as a fixture: test folders are no packages."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


def _module(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def make() -> ModuleType:
    """`builder.py` beside this file."""
    return _module("recorder_builder", Path(__file__).with_name("builder.py"))


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    """`tests/benchmarks/wavefront.py`."""
    return _module("wavefront_benchmark", Path(__file__).parents[1] / "benchmarks" / "wavefront.py")
