"""Turn a finished run into a labelled incident on disk."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from train.lab.dumps import apart
from train.lab.launch import Run
from train.lab.pickled import is_pickle, rewritten, strings
from train.lab.plan import LOG_FILES, Recording
from train.lab.scrub import Scrubber
from train.lab.transcribe import transcribe
from train.lab.witness import Shown, attest, decisive_lines

#: Larger than any recording should be; a runaway writer would fill the data folder.
_LARGEST = 400_000
_LATE = ("straggler", "offload_latency", "uneven_sharding")
_FRAMEWORKS = {"fsdp2": "FSDP2", "fsdp1": "FSDP1", "ddp": "DDP"}
#: Dumps by path: JSON text, or a pickle.
Dumps = Mapping[str, str | bytes]
_LAUNCHERS = {"torchrun": "torchrun", "srun": "srun", "spawn": "mp.spawn", "files": None}


class NoIncidentError(Exception):
    """The fault did not end in a wait that a log shows, or the log names this machine."""


def rendered(recording: Recording, run: Run, work: Path) -> dict[str, str]:
    """The log files of `run` as they will be stored.

    NoIncidentError where a name of this machine is left, or the run ended otherwise than its fault lets it end.
    """
    ended_well = not any(run.codes)
    if ended_well != (recording.fault.label == "no_timeout" and recording.fault.profile.get("do") != "check"):
        raise NoIncidentError(f"the launchers ended with {run.codes}")
    files = {}
    for name, content in run.files.items():
        node = "gpu-node1" if name.startswith("node1") else "gpu-node0"
        text = Scrubber(work, node).clean(content.decode("utf-8", errors="replace"))
        if leaks := Scrubber(work).leaks(text):
            raise NoIncidentError(f"{name} still holds {leaks}")
        files[name] = text[-_LARGEST:]
    if recording.transcribed:
        return transcribe(files, run.facts, attest(files).waiting)
    return files


def rendered_dumps(run: Run, work: Path) -> dict[str, str | bytes]:
    """The dumps of `run` as they will be stored. NoIncidentError where a name of this machine is left."""
    clean = Scrubber(work).clean
    dumps: dict[str, str | bytes] = {
        name: rewritten(content, clean) if is_pickle(content) else clean(content.decode())
        for name, content in run.dumps.items()
    }
    texts = ["\n".join(strings(dump)) if isinstance(dump, bytes) else dump for dump in dumps.values()]
    if leaks := sorted({leak for text in texts for leak in Scrubber(work).leaks(text)}):
        raise NoIncidentError(f"a dump still holds {leaks}")
    return dumps


def describe(recording: Recording, files: Mapping[str, str], dumps: Dumps | None = None) -> dict[str, Any]:
    """The content of `incident.json`. NoIncidentError where the log contradicts the label or the dumps the ranks."""
    seen = attest(files)
    fault = recording.fault
    label = fault.label
    if seen.incident == (label == "no_timeout"):
        if label != "rank_failure":
            raise NoIncidentError("an incident in a healthy run" if seen.incident else "no incident in the log")
        label = "no_timeout"  # a crash in which nobody is shown waiting
    _refuse_spoilt(recording, dumps or {})
    found: dict[str, Any] = {
        "schema_version": 1,
        "id": recording.id,
        "label": label,
        "cause_id": fault.cause_id if label == fault.label else None,
        "cause": fault.cause,
        "basis": "injected",
        "initiating_ranks": [] if label == "no_timeout" else list(_initiating(recording, seen, dumps or {})),
        "waiting_ranks": list(seen.waiting),
        "world_size": _world(recording, files),
        "nodes": 2 if recording.on_two_nodes else 1,
        "framework": _FRAMEWORKS[recording.wrapper],
        "launcher": _LAUNCHERS[recording.launcher],
        "torch": _torch_version(),
        "timeout_s": seen.timeout_s,
        "determinable_from_log": _sure(recording, label, seen),
        "alt_label": fault.alt_label,
        "decisive_lines": decisive_lines(files, fault.decisive),
        "transcribed": True if recording.transcribed else None,
        "source": "lab",
    }
    return {k: v for k, v in found.items() if v not in (None, []) or k in ("world_size",)}


def write(recording: Recording, incident: Mapping[str, Any], files: Dumps, folder: Path) -> None:
    """Write the incident to `folder`, by way of a temporary one beside it."""
    fresh = folder.with_name(folder.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    for name, text in files.items():
        path = fresh / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    write_manifest(fresh, incident)
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)


def stored_logs(folder: Path) -> dict[str, str]:
    """The log files of a recording: path below `logs/` -> text."""
    found = sorted(p for kind in LOG_FILES for p in (folder / "logs").rglob(kind))
    return {p.relative_to(folder / "logs").as_posix(): p.read_bytes().decode() for p in found}


def stored_dumps(folder: Path) -> dict[str, str | bytes]:
    """The dumps of a recording: path below `logs/` -> JSON text, or a pickle."""
    found = {p.relative_to(folder / "logs").as_posix(): p.read_bytes() for p in sorted(folder.glob("logs/traces/*"))}
    return {name: content if is_pickle(content) else content.decode() for name, content in found.items()}


def write_manifest(folder: Path, incident: Mapping[str, Any]) -> None:
    """Write `incident.json` alone."""
    (folder / "incident.json").write_text(json.dumps(incident, indent=1, ensure_ascii=False) + "\n")


def _refuse_spoilt(recording: Recording, dumps: Dumps) -> None:
    """NoIncidentError where the dumps show another rank late: the load of the machine made this wait, not the fault.

    Only for causes that make a rank late: after a mismatch a rank may end before it can write its dump.
    """
    late = apart(dumps, recording.world)
    if recording.fault.label in _LATE and late and late != recording.ranks:
        raise NoIncidentError(f"the dumps show rank {late[0]} late instead of {recording.ranks}")


def _initiating(recording: Recording, seen: Shown, dumps: Dumps) -> tuple[int, ...]:
    """The injected ranks as far as logs and dumps show or imply them: named, or alone in silence or in their place."""
    wanted = recording.fault.initiating
    if wanted and apart(dumps, recording.world) == wanted:
        return wanted
    if not wanted or (recording.layout == "filtered" and wanted != (0,)):
        return ()
    world = recording.world
    silent = tuple(r for r in range(world) if r not in seen.raised and r not in seen.waiting)
    if wanted in (silent, seen.reducer) or recording.fault.label == "rank_failure":
        return wanted
    if recording.fault.label == "desync" and seen.odd == wanted:
        return wanted
    # Everybody raised: only a voice that names its ranks, or an error of another kind, tells them apart.
    named = recording.fault.sure_in.get(recording.script, recording.fault.sure)
    return wanted if named == "yes" else ()


def _sure(recording: Recording, label: str, seen: Shown) -> str:
    fault = recording.fault
    sure = fault.sure_in.get(recording.script, fault.sure)
    if label == "no_timeout" or (label == "desync" and (seen.checked or seen.odd == fault.ranks)):
        return "yes"
    hidden = recording.layout == "filtered" and fault.ranks not in ((), (0,))
    return "no" if hidden else sure


def _world(recording: Recording, files: Mapping[str, str]) -> int | None:
    text = "\n".join(files.values())
    size = recording.world
    shown = (
        f"world size {size}",
        f"world_size {size}\n",
        f" of {size}\n",
        f"Num processes = {size}",
        f"['dp_shard'], [{size}]",
        f"/{size:02d} |",
        f'"world": {size},',
        f"data parallel group of {size} ",
        f"/{size} clients joined",
    )
    return size if any(s in text for s in shown) else None


def _torch_version() -> str | None:
    try:
        return version("torch").partition("+")[0]
    except PackageNotFoundError:
        return None
