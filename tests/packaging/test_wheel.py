"""The wheel, installed alone and used beside a user's own `train.py`, `data.py` and `models.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
USER_FILES = ("train.py", "data.py", "models.py", "tests.py")

pytestmark = [pytest.mark.slow, pytest.mark.model]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a program without this checkout on any path; its output, or a failure that shows it."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "FSDPCLASSIFY"))}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that holds the wheel and what it asks for, nothing else."""
    folder = tmp_path_factory.mktemp("env")
    venv.create(folder, with_pip=True)
    found = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    constraints = ROOT / "constraints.txt"
    run(
        found,
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "-c",
        constraints,
        wheel,
        cwd=folder,
    )
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's folder whose modules end the program when anybody imports them by accident."""
    for name in USER_FILES:
        (tmp_path / name).write_text("raise SystemExit('the module of the user was imported')\n")
    return tmp_path


def test_the_wheel_holds_one_package_and_the_released_bundle(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"fsdpclassify"}
    bundle = {name.removeprefix("fsdpclassify/_models/default/") for name in names if "/_models/default/" in name}
    assert {path.name for path in (ROOT / "models" / "default").iterdir()} == bundle
    assert "fsdpclassify/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_brings_one_importable_name(python: Path, project: Path) -> None:
    code = (
        "import importlib.metadata as m, json;print(json.dumps(sorted({f.parts[0] for f in m.files('fsdpclassify')})))"
    )
    tops = json.loads(run(python, "-c", code, cwd=project))
    importable = [t for t in tops if not t.endswith(".dist-info") and t not in {"..", "__pycache__"}]
    assert importable == ["fsdpclassify"]


def test_import_and_help_load_no_numeric_library(python: Path, project: Path) -> None:
    heavy = "print(sorted({'numpy', 'onnxruntime', 'tokenizers', 'sklearn', 'scipy'} & set(sys.modules)))"
    assert run(python, "-c", f"import sys, fsdpclassify; {heavy}", cwd=project) == "[]\n"
    code = (
        "import sys, contextlib, io\n"
        "from fsdpclassify.cli import main\n"
        "sys.argv = ['fsdpclassify', '--help']\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main()\n"
    )
    assert run(python, "-c", code + heavy, cwd=project) == "[]\n"


def test_the_command_answers_beside_modules_of_the_same_names(python: Path, project: Path) -> None:
    command = python.with_name("fsdpclassify")
    assert "classify" in run(command, "--help", cwd=project)
    assert run(python, "-m", "fsdpclassify", "--version", cwd=project).strip()
    (project / "run.log").write_text("epoch 1 done\n")
    answer = json.loads(run(command, "classify", "run.log", "--json", "--exit-zero", cwd=project))
    assert answer["incidents"] == []
    assert answer["model"]["name"] == "default"


def test_the_packaged_bundle_is_found_and_sound(python: Path, project: Path) -> None:
    code = (
        "from fsdpclassify import bundle\n"
        "folder = bundle.locate()\n"
        "bundle.verify(folder)\n"
        "print(folder.parent.name, folder.parent.parent.name)\n"
    )
    assert run(python, "-c", code, cwd=project) == "_models fsdpclassify\n"
