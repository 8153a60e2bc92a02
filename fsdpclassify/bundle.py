"""The bundle: a folder that holds a model. Finds it, reads its manifest, checks it, writes a new one.

Everything in a bundle is checked before the first prediction: a bundle is data from elsewhere, and a
wrong one would answer wrongly without any sign of it. Every refusal is a `BundleError` that says what
is wrong, where, and what to try.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from fsdpclassify.encoder import ENCODER_FILE, TOKENIZER_FILE
from fsdpclassify.errors import BundleError
from fsdpclassify.head import HEAD_FILE
from fsdpclassify.manifest import MANIFEST_FILE, Manifest, decode, encode
from fsdpclassify.onnx_wire import has_external_data, output_shapes

ENVIRONMENT = "FSDPCLASSIFY_MODEL"
REQUIRED_FILES = (ENCODER_FILE, HEAD_FILE, TOKENIZER_FILE)

_PACKAGE = Path(__file__).resolve().parent
_PACKAGED = _PACKAGE / "_models" / "default"
_CHECKOUT = _PACKAGE.parent / "models" / "default"
_MAX_MANIFEST_BYTES = 64 << 20
_AGAIN = "install it again, or name another with --model"


def locate(path: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of the bundle: the argument, else the environment, else the one shipped."""
    if path is not None:
        return _existing(Path(path), "the bundle named")
    if named := os.environ.get(ENVIRONMENT):
        return _existing(Path(named), f"the bundle named by {ENVIRONMENT}")
    for folder in (_PACKAGED, _CHECKOUT):
        if (folder / MANIFEST_FILE).is_file():
            return folder
    raise BundleError(
        f"{_PACKAGED}: no bundle was installed with fsdpclassify; install the wheel again,"
        f" or name a bundle with --model or {ENVIRONMENT}"
    )


def _existing(folder: Path, what: str) -> Path:
    if not folder.is_dir():
        raise BundleError(f"{folder}: {what} is not a folder; check the path")
    return folder


def read_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """Read and check `manifest.json` by itself: schema, keys, types, and versions this program knows."""
    from fsdpclassify.features import FEATURE_VERSION  # these load most of the model's side of the program
    from fsdpclassify.templating import TEMPLATING_VERSION

    path = Path(folder) / MANIFEST_FILE
    manifest = decode(_read(path, "no manifest, so this is no bundle", _MAX_MANIFEST_BYTES), path)
    for name, found, known in (
        ("feature_version", manifest.feature_version, FEATURE_VERSION),
        ("templating_version", manifest.templating_version, TEMPLATING_VERSION),
    ):
        if found != known:
            raise BundleError(
                f"{path}: {name} is {found} and this program computes {known};"
                f" use a bundle made for it, or {'a newer' if found > known else 'an older'} fsdpclassify"
            )
    return manifest


def manifest_sha256(folder: str | os.PathLike[str]) -> str:
    """Return the hash by which reports name the bundle."""
    return hashlib.sha256(_read(Path(folder) / MANIFEST_FILE, "no manifest", _MAX_MANIFEST_BYTES)).hexdigest()


def verify(folder: str | os.PathLike[str]) -> Manifest:
    """Check the whole bundle and return its manifest; raises `BundleError` at the first fault."""
    root = Path(folder)
    manifest = read_manifest(root)
    contents = {name: _checked_file(root, name, digest) for name, digest in manifest.files.items()}
    for name in REQUIRED_FILES:
        if name not in contents:
            raise BundleError(f"{root / MANIFEST_FILE}: files does not list {name}; {_AGAIN}")
    for name, data in contents.items():
        if name.endswith(".onnx"):
            _check_graph(root / name, data, manifest)
    return manifest


def _checked_file(root: Path, name: str, digest: str) -> bytes:
    """Return the bytes of one listed file; refuses links, since they may point out of the bundle."""
    path = root / name
    if path.is_symlink():
        raise BundleError(f"{path}: a file of a bundle may not be a link; put the file itself there")
    data = _read(path, "missing, though the manifest lists it")
    if (found := hashlib.sha256(data).hexdigest()) != digest:
        raise BundleError(
            f"{path}: sha256 {found} differs from {digest} in the manifest: the file was changed or damaged; {_AGAIN}"
        )
    return data


def _read(path: Path, missing: str, limit: int | None = None) -> bytes:
    try:
        if limit is not None and path.stat().st_size > limit:
            raise BundleError(f"{path}: larger than {limit} bytes, so it is no manifest; {_AGAIN}")
        return path.read_bytes()
    except FileNotFoundError as error:
        raise BundleError(f"{path}: {missing}; {_AGAIN}") from error
    except OSError as error:
        raise BundleError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error


def _check_graph(path: Path, data: bytes, manifest: Manifest) -> None:
    """Refuse tensors in other files, outputs that the manifest does not name, and another label count."""
    try:
        external, shapes = has_external_data(data), output_shapes(data)
    except ValueError as error:
        raise BundleError(f"{path}: not a readable ONNX file ({error}); {_AGAIN}") from error
    if external:
        raise BundleError(
            f"{path}: holds external data, which could name any file; save the model with its tensors inside"
        )
    for name in manifest.outputs.get(path.name, ()):
        if name not in shapes:
            raise BundleError(
                f"{path}: has no output {name!r}, only {sorted(shapes)}; manifest and graph belong to different bundles"
            )
    if path.name == HEAD_FILE:
        _check_labels(path, shapes, manifest)


def _check_labels(path: Path, shapes: Mapping[str, tuple[int | str | None, ...]], manifest: Manifest) -> None:
    outputs = manifest.outputs.get(HEAD_FILE, ())
    widths = {name: shapes[name][-1] if shapes[name] else None for name in outputs}
    for name, width in widths.items():
        if width != len(manifest.labels):
            raise BundleError(
                f"{path}: output {name!r} gives {width} values and the manifest has {len(manifest.labels)}"
                " labels; manifest and graph belong to different bundles"
            )
    if not widths:
        raise BundleError(f"{path.with_name(MANIFEST_FILE)}: outputs names none of {HEAD_FILE}; {_AGAIN}")


def write(folder: str | os.PathLike[str], manifest: Manifest, files: Mapping[str, bytes]) -> Path:
    """Write a bundle and return its folder; either the whole bundle appears there or nothing does.

    `manifest.files` is replaced by the hashes of `files`; the bundle is verified before it takes the
    place of one that stood there. Files of `files` that are not part of the bundle's contract, such as
    a card, are listed and hashed like the others.
    """
    import tempfile

    target = Path(folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as scratch:
        fresh = Path(scratch) / "new"
        fresh.mkdir()
        for name, data in files.items():
            (fresh / name).write_bytes(data)
        (fresh / MANIFEST_FILE).write_bytes(encode(manifest, files))
        verify(fresh)
        _replace(fresh, target, Path(scratch) / "old")
    return target


def _replace(fresh: Path, target: Path, aside: Path) -> None:
    """Move `fresh` to `target`; what stood there is kept aside until the new one stands."""
    import shutil

    if not target.exists():
        fresh.rename(target)
        return
    if not (target / MANIFEST_FILE).is_file() and {p.name for p in target.iterdir()} - set(REQUIRED_FILES):
        raise BundleError(f"{target}: holds files but no bundle, so it is not replaced; name another folder")
    target.rename(aside)
    try:
        fresh.rename(target)
    except OSError:
        aside.rename(target)
        raise
    shutil.rmtree(aside)
