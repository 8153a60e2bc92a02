"""Labelled incidents: a folder with `incident.json` and `logs/` -> a checked `LabelledIncident`.

What is shipped, what users give to `retrain` and what `evaluate` measures on have this one form.
`incident.json` is never read as a log, and the logs are read through `neutral_logs`, so that a
folder's name (which may say the answer) reaches neither features nor reports.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from fsdpclassify.errors import LabelledIncidentError

SCHEMA_VERSION = 1
MANIFEST, LOGS = "incident.json", "logs"
DETERMINABLE = ("yes", "partly", "no")
_MAX_MANIFEST_BYTES = 1 << 20
_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledIncident:
    """One incident whose cause somebody established.

    Rank lists are `None` where the label says nothing, `()` where it says that the log cannot tell.
    `decisive_lines` are (file below `logs/`, line) pairs. `hung` means: read it as with `--hung`.
    """

    folder: Path
    id: str
    label: str
    alt_label: str | None = None
    cause_id: str | None = None
    cause: str | None = None
    fix: str | None = None
    determinable_from_log: str | None = None
    initiating_ranks: tuple[int, ...] | None = None
    waiting_ranks: tuple[int, ...] | None = None
    initiating_nodes: tuple[str, ...] | None = None
    world_size: int | None = None
    timeout_s: float | None = None
    collective: str | None = None
    decisive_lines: tuple[tuple[str, int], ...] = ()
    hung: bool = False
    source: str | None = None

    @property
    def logs(self) -> Path:
        """The folder of the incident's logs."""
        return self.folder / LOGS


def load_all(folders: Sequence[Path]) -> tuple[LabelledIncident, ...]:
    """Every incident in or below the folders, in order; raises `LabelledIncidentError` at the first fault."""
    found = [load(folder) for root in folders for folder in incident_folders(root)]
    first: dict[str, Path] = {}
    for incident in found:
        other = first.setdefault(incident.id, incident.folder)
        if other != incident.folder:
            raise _fault(incident.folder / MANIFEST, "id", f"{incident.id!r} is also that of {other}")
    return tuple({incident.folder: incident for incident in found}.values())


def incident_folders(root: Path) -> list[Path]:
    """`root` itself if it is an incident, else all incidents below it, sorted by path; never empty."""
    if not root.is_dir():
        raise LabelledIncidentError(f"{root}: not a folder; give a folder that holds {MANIFEST} and {LOGS}/")
    if (root / MANIFEST).is_file():
        return [root]
    below = sorted(path.parent for path in root.rglob(MANIFEST) if LOGS not in path.relative_to(root).parts)
    if not below:
        raise LabelledIncidentError(f"{root}: no {MANIFEST} in it or below it")
    return below


def load(folder: Path) -> LabelledIncident:
    """Read and check one incident; raises `LabelledIncidentError` that names the file and the key."""
    path = folder / MANIFEST
    content = _read(path)
    if content.get("schema_version") != SCHEMA_VERSION or isinstance(content.get("schema_version"), bool):
        raise _fault(path, "schema_version", f"must be {SCHEMA_VERSION}, the form that this version reads")
    for key in ("id", "label"):
        if key not in content:
            raise _fault(path, key, "is missing")
    _check_spelling(path, content)
    if not any(item.is_file() for item in (folder / LOGS).rglob("*")):
        raise LabelledIncidentError(f"{folder / LOGS}: holds no file; the logs of the incident belong there")
    values: dict[str, Any] = {key: check(path, key, content[key]) for key, check in _CHECKS.items() if key in content}
    return LabelledIncident(folder=folder, **values)


def content_sha256(incident: LabelledIncident) -> str:
    """Hash of the logs: names below `logs/` and bytes, whatever the folder is called and however labelled.

    A bundle's manifest lists these hashes of what its head has seen.
    """
    whole = hashlib.sha256()
    for path in sorted(item for item in incident.logs.rglob("*") if item.is_file()):
        name = path.relative_to(incident.logs).as_posix().encode("utf-8", "surrogateescape")
        with path.open("rb") as file:
            whole.update(name + b"\0" + hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()


@contextmanager
def neutral_logs(incident: LabelledIncident) -> Iterator[Path]:
    """The logs below a temporary path that says nothing about the incident; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="fsdpclassify-") as scratch:
        target = Path(scratch) / LOGS
        shutil.copytree(incident.logs, target, copy_function=_link_or_copy)
        yield target


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=True)
    except OSError:
        shutil.copyfile(source, target)


def _fault(path: Path, key: str, problem: str) -> LabelledIncidentError:
    return LabelledIncidentError(f"{path}: {key}: {problem}")


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _MAX_MANIFEST_BYTES:
            raise LabelledIncidentError(f"{path}: larger than {_MAX_MANIFEST_BYTES} bytes")
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise LabelledIncidentError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise LabelledIncidentError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise LabelledIncidentError(f"{path}: must hold one JSON object")
    return content


def _check_spelling(path: Path, content: Mapping[str, Any]) -> None:
    # Other keys are the user's own notes; a near miss would silently drop a fact.
    known = [*_CHECKS, *_NOTES]
    for key in content:
        close = [] if key in known else get_close_matches(key, known, n=1, cutoff=0.85)
        if close:
            raise _fault(path, key, f"is not a known key; did you mean {close[0]}?")


def _text(path: Path, key: str, value: object) -> str | None:
    if value is None or (isinstance(value, str) and value.strip()):
        return value
    raise _fault(path, key, "must be a text that is not empty")


def _label(path: Path, key: str, value: object) -> str | None:
    if value is None and key != "label":
        return None
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        raise _fault(path, key, "must be a label such as straggler, undetermined or no_timeout")
    return value


def _id(path: Path, key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _fault(path, key, "must be a text that is not empty")
    return value


def _ranks(path: Path, key: str, value: object) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(type(item) is int and item >= 0 for item in value):
        raise _fault(path, key, "must be a list of global ranks (whole numbers from 0)")
    return tuple(sorted(set(value)))


def _names(path: Path, key: str, value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _fault(path, key, "must be a list of texts")
    return tuple(value)


def _world(path: Path, key: str, value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise _fault(path, key, "must be a whole number from 1, or null where the log does not show it")


def _seconds(path: Path, key: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    raise _fault(path, key, "must be a number of seconds")


def _flag(path: Path, key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _fault(path, key, "must be true or false")
    return value


def _determinable(path: Path, key: str, value: object) -> str | None:
    if value is not None and value not in DETERMINABLE:
        raise _fault(path, key, f"must be one of {', '.join(DETERMINABLE)}")
    return str(value) if value is not None else None


def _lines(path: Path, key: str, value: object) -> tuple[tuple[str, int], ...]:
    if not isinstance(value, list):
        raise _fault(path, key, 'must be a list such as ["trainer.log:12"]')
    return tuple(_line(path, key, item) for item in value)


def _line(path: Path, key: str, item: object) -> tuple[str, int]:
    name, colon, number = item.rpartition(":") if isinstance(item, str) else ("", "", "")
    if not name or not colon or not number.isdecimal() or int(number) < 1:
        raise _fault(path, key, f'{item!r} must read "file:line", the file below logs/ and the line from 1')
    return name, int(number)


_CHECKS: dict[str, Callable[[Path, str, Any], object]] = {
    "id": _id,
    "label": _label,
    "alt_label": _label,
    "cause_id": _label,
    "cause": _text,
    "fix": _text,
    "determinable_from_log": _determinable,
    "initiating_ranks": _ranks,
    "waiting_ranks": _ranks,
    "initiating_nodes": _names,
    "world_size": _world,
    "timeout_s": _seconds,
    "collective": _text,
    "decisive_lines": _lines,
    "hung": _flag,
    "source": _text,
}
_NOTES = ("schema_version", "basis", "nodes", "framework", "launcher", "torch")
