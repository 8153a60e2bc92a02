"""A bundle is refused by name, before the first prediction, for each thing that can be wrong with it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from fsdpclassify import bundle
from fsdpclassify.errors import BundleError
from fsdpclassify.features import FEATURE_VERSION
from fsdpclassify.manifest import MODES, Manifest
from fsdpclassify.onnx_wire import has_external_data, output_shapes
from fsdpclassify.templating import TEMPLATING_VERSION

LABELS = ("straggler", "desync", "other")
Edit = Callable[[dict[str, Any]], None]


def model(width: int, *, external: bool = False, output: str = "probabilities", nested: bool = False) -> bytes:
    """An ONNX file whose output is `[width]`; `external` puts its tensor into another file."""
    weight = numpy_helper.from_array(np.zeros(width, dtype=np.float32), "weight")
    if external:
        weight.ClearField("raw_data")
        weight.data_location = TensorProto.EXTERNAL
        weight.external_data.add(key="location", value="../../secret")
    result = helper.make_tensor_value_info(output, TensorProto.FLOAT, [width])
    if nested:
        node = helper.make_node("Constant", [], [output], value=weight)
        graph = helper.make_graph([node], "g", [], [result])
    else:
        node = helper.make_node("Identity", ["weight"], [output])
        graph = helper.make_graph([node], "g", [], [result], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


def files(**changed: bytes) -> dict[str, bytes]:
    """The files of a sound bundle, some of them replaced."""
    sound = {"encoder.onnx": model(4, output="vectors"), "head.onnx": model(3), "tokenizer.json": b"{}"}
    return sound | {name.replace("_", "."): data for name, data in changed.items()}


MANIFEST = Manifest(
    name="tiny",
    version="1",
    labels=LABELS,
    prior=dict.fromkeys(LABELS, 1 / 3),
    thresholds={mode: dict.fromkeys(LABELS, 0.5) for mode in MODES},
    out_of_scope={"distance": 1.5},
    feature_version=FEATURE_VERSION,
    templating_version=TEMPLATING_VERSION,
    inputs={"head.onnx": ("lines",)},
    outputs={"head.onnx": ("probabilities",), "encoder.onnx": ("vectors",)},
    data_sha256="0" * 64,
    code_sha256="1" * 64,
    library_versions={"onnx": "1"},
    metrics={"macro_f1": 0.5},
    training=("f" * 64,),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return bundle.write(tmp_path / "tiny", MANIFEST, files())


def edit(folder: Path, change: Edit) -> None:
    """Rewrite the manifest as somebody else's program would."""
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def put(folder: Path, name: str, data: bytes) -> None:
    """Replace a file together with its hash, so that only its content can be refused."""
    (folder / name).write_bytes(data)
    edit(folder, lambda content: content["files"].update({name: hashlib.sha256(data).hexdigest()}))


def test_what_is_written_is_read_back(folder: Path) -> None:
    read = bundle.verify(folder)
    assert dataclasses.replace(read, files={}) == MANIFEST
    assert set(read.files) == set(files())
    assert bundle.manifest_sha256(folder) == hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()


def test_the_same_values_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    again = bundle.write(tmp_path / "again", MANIFEST, dict(reversed(files().items())))
    assert (again / "manifest.json").read_bytes() == (folder / "manifest.json").read_bytes()


@pytest.mark.parametrize("name", sorted(files()))
def test_a_missing_file_is_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(BundleError, match=rf"{name}: missing"):
        bundle.verify(folder)


@pytest.mark.parametrize("name", sorted(files()))
def test_a_changed_file_is_refused(folder: Path, name: str) -> None:
    with (folder / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(BundleError, match=rf"{name}: sha256 .* differs"):
        bundle.verify(folder)


def test_a_link_is_refused_even_with_the_right_content(folder: Path, tmp_path: Path) -> None:
    (folder / "head.onnx").rename(tmp_path / "elsewhere")
    (folder / "head.onnx").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BundleError, match=r"head\.onnx: a file of a bundle may not be a link"):
        bundle.verify(folder)


@pytest.mark.parametrize("name", ["../head.onnx", "a/b.onnx", "/etc/passwd", "a\\b", ".hidden", "", "manifest.json"])
def test_a_name_that_leaves_the_folder_is_refused(folder: Path, name: str) -> None:
    edit(folder, lambda content: content["files"].update({name: "0" * 64}))
    with pytest.raises(BundleError, match="not a plain file name"):
        bundle.verify(folder)


REFUSED: dict[str, tuple[Edit, str]] = {
    "newer schema": (lambda c: c.update(schema_version=2), "schema_version 2 is newer than 1"),
    "schema no number": (lambda c: c.update(schema_version="1"), "schema_version must be"),
    "newer features": (lambda c: c.update(feature_version=FEATURE_VERSION + 1), "feature_version is"),
    "older features": (lambda c: c.update(feature_version=0), "feature_version is 0"),
    "templating": (lambda c: c.update(templating_version=99), "templating_version is 99"),
    "unknown key": (lambda c: c.update(extra=1), "extra is not a known key"),
    "missing key": (lambda c: c.pop("prior"), "prior is missing"),
    "label twice": (lambda c: c.update(labels=["a", "a", "b"]), "labels must be distinct"),
    "label count": (lambda c: _relabel(c, ["a", "b"]), "gives 3 values and the manifest has 2 labels"),
    "label missing in prior": (lambda c: c["prior"].pop("other"), "prior must hold exactly the labels"),
    "threshold above one": (lambda c: c["thresholds"]["balanced"].update(other=1.5), "from 0 to 1"),
    "threshold not a number": (lambda c: c["thresholds"]["balanced"].update(other=True), "names to numbers"),
    "mode missing": (lambda c: c["thresholds"].pop("balanced"), "exactly the modes"),
    "hash malformed": (lambda c: c["files"].update({"head.onnx": "XYZ"}), "must be a sha256"),
    "training malformed": (lambda c: c.update(training=["x"]), "sha256 sums"),
    "file not listed": (lambda c: c["files"].pop("head.onnx"), "does not list head.onnx"),
    "output unknown": (lambda c: c["outputs"].update({"head.onnx": ["scores"]}), "has no output 'scores'"),
    "head output unnamed": (lambda c: c["outputs"].pop("head.onnx"), "names none of head.onnx"),
    "name with a folder": (lambda c: c.update(name="../x"), "name must be a plain name"),
    "labels no list": (lambda c: c.update(labels="abc"), "labels must be a list"),
}


def _relabel(content: dict[str, Any], labels: list[str]) -> None:
    content["labels"] = labels
    content["prior"] = dict.fromkeys(labels, 0.5)
    content["thresholds"] = {mode: dict.fromkeys(labels, 0.5) for mode in MODES}


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_wrong_manifest_is_refused_by_name(folder: Path, change: Edit, message: str) -> None:
    edit(folder, change)
    with pytest.raises(BundleError, match=message):
        bundle.verify(folder)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"name": "a", "name": "b"}'])
def test_a_damaged_manifest_is_refused(folder: Path, text: bytes) -> None:
    (folder / "manifest.json").write_bytes(text)
    with pytest.raises(BundleError, match=r"manifest\.json"):
        bundle.read_manifest(folder)


@pytest.mark.parametrize("nested", [False, True])
def test_tensors_in_another_file_are_refused(folder: Path, nested: bool) -> None:
    put(folder, "head.onnx", model(3, external=True, nested=nested))
    with pytest.raises(BundleError, match=r"head\.onnx: holds external data"):
        bundle.verify(folder)


@pytest.mark.parametrize("data", [b"\x0b", b"\x3a\xff", model(3)[:-3], b"\x80" * 20])
def test_a_damaged_graph_is_refused(folder: Path, data: bytes) -> None:
    put(folder, "head.onnx", data)
    with pytest.raises(BundleError, match=r"head\.onnx: (not a readable ONNX file|has no output)"):
        bundle.verify(folder)


def test_the_wire_reader_agrees_with_onnx() -> None:
    assert output_shapes(model(3)) == {"probabilities": (3,)}
    assert not has_external_data(model(3))
    assert not has_external_data(model(3, nested=True))


def test_a_failed_write_leaves_the_old_bundle(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(BundleError, match="gives 5 values"):
        bundle.write(folder, MANIFEST, files(head_onnx=model(5)))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_new_bundle_replaces_the_old_one(folder: Path) -> None:
    bundle.write(folder, dataclasses.replace(MANIFEST, version="2"), files() | {"README.md": b"card"})
    assert bundle.verify(folder).version == "2"
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_folder_of_other_files_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(BundleError, match="holds files but no bundle"):
        bundle.write(tmp_path / "mine", MANIFEST, files())
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep"


def test_argument_then_environment_then_shipped(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = bundle.write(tmp_path / "other", MANIFEST, files())
    monkeypatch.setenv(bundle.ENVIRONMENT, str(other))
    assert bundle.locate(folder) == folder
    assert bundle.locate() == other
    monkeypatch.delenv(bundle.ENVIRONMENT)
    monkeypatch.setattr(bundle, "_PACKAGED", folder)
    monkeypatch.setattr(bundle, "_CHECKOUT", other)
    assert bundle.locate() == folder
    monkeypatch.setattr(bundle, "_PACKAGED", tmp_path / "none")
    assert bundle.locate() == other
    monkeypatch.setattr(bundle, "_CHECKOUT", tmp_path / "none")
    with pytest.raises(BundleError, match="no bundle was installed"):
        bundle.locate()


def test_a_named_folder_that_is_not_there_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BundleError, match="the bundle named is not a folder"):
        bundle.locate(tmp_path / "none")
    monkeypatch.setenv(bundle.ENVIRONMENT, os.fspath(tmp_path / "none"))
    with pytest.raises(BundleError, match=bundle.ENVIRONMENT):
        bundle.locate()
    with pytest.raises(BundleError, match="no manifest"):
        bundle.read_manifest(tmp_path)
