"""`manifest.json` of a bundle: bytes to a checked `Manifest` and back.

Input: the file's bytes; output: a frozen value, or a `BundleError` that names the key. Unknown keys
are refused, since a key that this version ignores could change what a newer one would answer.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from fsdpclassify.errors import BundleError

SCHEMA_VERSION = 1
MANIFEST_FILE = "manifest.json"
MODES = ("best-guess", "balanced", "high-precision")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a bundle says about itself.

    `labels` is the order of the head's outputs; `thresholds` holds for each mode the probability above
    which each label is concluded; `inputs` and `outputs` name the tensors of each graph, by file;
    `files` holds the sha256 of every file but the manifest; `training` the content hashes of the
    labelled incidents that the head has seen.
    """

    schema_version: int = SCHEMA_VERSION
    name: str
    version: str
    labels: tuple[str, ...]
    prior: dict[str, float]
    thresholds: dict[str, dict[str, float]]
    out_of_scope: dict[str, float] = field(default_factory=dict)
    feature_version: int
    templating_version: int
    inputs: dict[str, tuple[str, ...]]
    outputs: dict[str, tuple[str, ...]]
    files: dict[str, str] = field(default_factory=dict)
    data_sha256: str
    code_sha256: str
    library_versions: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    training: tuple[str, ...] = ()


def encode(manifest: Manifest, files: Mapping[str, bytes]) -> bytes:
    """Return the manifest as JSON with the hashes of `files`; the same values give the same bytes."""
    content = asdict(manifest)
    content["files"] = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
    content["training"] = sorted(manifest.training)
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def decode(data: bytes, path: Path) -> Manifest:
    """Return the manifest in `data`; `path` is only named in errors."""
    try:
        content = json.loads(data, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path}: not valid JSON ({error}); install the bundle again") from error
    if not isinstance(content, dict):
        raise _refusal(path, "the manifest", "must be an object")
    _check_schema(content.get("schema_version"), path)
    _check_keys(content, path)
    for key, value in content.items():
        _CHECKS[key](path, key, value)
    manifest = Manifest(**{key: _frozen(key, value) for key, value in content.items()})
    _check_labels(manifest, path)
    return manifest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that stands twice: two readers could follow two of them."""
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return content


def _refusal(path: Path, key: str, problem: str) -> BundleError:
    return BundleError(f"{path}: {key} {problem}; install the bundle again or make it anew")


def _check_schema(found: object, path: Path) -> None:
    if type(found) is not int or found < 1:
        raise _refusal(path, "schema_version", "must be a positive whole number")
    if found > SCHEMA_VERSION:
        raise BundleError(
            f"{path}: schema_version {found} is newer than {SCHEMA_VERSION}, the newest this program reads;"
            " upgrade fsdpclassify or use an older bundle"
        )


def _check_keys(content: Mapping[str, Any], path: Path) -> None:
    known = {f.name for f in fields(Manifest)}
    if unknown := sorted(set(content) - known):
        raise _refusal(path, ", ".join(unknown), "is not a known key")
    if missing := sorted(known - set(content)):
        raise _refusal(path, ", ".join(missing), "is missing")


def _check_text(path: Path, key: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise _refusal(path, key, "must be a text that is not empty")


def _check_count(path: Path, key: str, value: object) -> None:
    if type(value) is not int or value < 0:
        raise _refusal(path, key, "must be a whole number")


def _check_texts(path: Path, key: str, value: object) -> None:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _refusal(path, key, "must be a list of texts")


def _check_hashes(path: Path, key: str, value: object) -> None:
    _check_texts(path, key, value)
    if isinstance(value, list) and not all(_SHA256.fullmatch(item) for item in value):
        raise _refusal(path, key, "must hold sha256 sums in lower-case hexadecimal")


def _check_numbers(path: Path, key: str, value: object) -> None:
    if not isinstance(value, dict) or not all(type(v) in {int, float} for v in value.values()):
        raise _refusal(path, key, "must map names to numbers")


def _check_thresholds(path: Path, key: str, value: object) -> None:
    if not isinstance(value, dict) or set(value) != set(MODES):
        raise _refusal(path, key, f"must hold exactly the modes {', '.join(MODES)}")
    for mode, numbers in value.items():
        _check_numbers(path, f"{key}.{mode}", numbers)


def _check_tensors(path: Path, key: str, value: object) -> None:
    if not isinstance(value, dict):
        raise _refusal(path, key, "must map files to the names of their tensors")
    for name, tensors in value.items():
        _check_texts(path, f"{key}.{name}", tensors)


def _check_files(path: Path, key: str, value: object) -> None:
    if not isinstance(value, dict):
        raise _refusal(path, key, "must map file names to their sha256")
    for name, digest in value.items():
        if not _NAME.fullmatch(name) or name == MANIFEST_FILE:
            raise _refusal(path, f"{key}: {name!r}", "is not a plain file name (no folders, no leading dot)")
        if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
            raise _refusal(path, f"{key}.{name}", "must be a sha256 in lower-case hexadecimal")


def _check_mapping(path: Path, key: str, value: object) -> None:
    if not isinstance(value, dict):
        raise _refusal(path, key, "must be an object")


_CHECKS = {
    "schema_version": _check_count,
    "name": _check_text,
    "version": _check_text,
    "labels": _check_texts,
    "prior": _check_numbers,
    "thresholds": _check_thresholds,
    "out_of_scope": _check_numbers,
    "feature_version": _check_count,
    "templating_version": _check_count,
    "inputs": _check_tensors,
    "outputs": _check_tensors,
    "files": _check_files,
    "data_sha256": _check_text,
    "code_sha256": _check_text,
    "library_versions": _check_mapping,
    "metrics": _check_mapping,
    "training": _check_hashes,
}


def _check_labels(manifest: Manifest, path: Path) -> None:
    """Prior and thresholds must speak of exactly the labels; the bundle's name must be a plain one."""
    labels = set(manifest.labels)
    if len(labels) != len(manifest.labels) or not labels or not all(map(_NAME.fullmatch, labels)):
        raise _refusal(path, "labels", "must be distinct plain names, at least one")
    for key, numbers in {"prior": manifest.prior, **manifest.thresholds}.items():
        if set(numbers) != labels:
            raise _refusal(path, key, "must hold exactly the labels")
        if not all(0 <= number <= 1 for number in numbers.values()):
            raise _refusal(path, key, "must hold numbers from 0 to 1")
    if not _NAME.fullmatch(manifest.name):
        raise _refusal(path, "name", "must be a plain name (no folders, no leading dot)")


def _frozen(key: str, value: Any) -> Any:  # noqa: ANN401  (JSON values)
    """Lists become tuples where the manifest's fields are tuples."""
    if key in {"labels", "training"}:
        return tuple(value)
    if key in {"inputs", "outputs"}:
        return {name: tuple(tensors) for name, tensors in value.items()}
    return value
