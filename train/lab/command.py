"""`python -m train lab`: make the recordings that are not there yet, one after another."""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from train.lab.faults import load_faults
from train.lab.launch import launch
from train.lab.plan import Recording, plan
from train.lab.store import (
    NoIncidentError,
    describe,
    rendered,
    rendered_dumps,
    stored_dumps,
    stored_logs,
    write,
    write_manifest,
)
from train.lab.table import rendered as rendered_table
from train.lab.table import tell, write_into


def main(argv: list[str]) -> int:
    """Run the plan. 0 when every chosen recording exists at the end, 1 otherwise."""
    options = _parser().parse_args(argv)
    chosen = [r for r in plan(load_faults()) if all(part in r.name for part in options.only.split(","))]
    if options.list:
        print("\n".join(f"{r.id} {r.fault.split:<9} {r.fault.label:<18} {r.name}" for r in chosen))
        return 0
    if options.table:
        write_into(options.out / "README.md", rendered_table(tell(chosen, options.out)))
        return 0
    if options.again:
        return _describe_again(chosen, options.out)
    end = time.monotonic() + 60 * options.minutes
    counts: Counter[str] = Counter()
    for recording in chosen:
        if time.monotonic() > end:
            break
        counts[_record(recording, options.out, options.raw)] += 1
    print(dict(counts))
    return 0 if counts.total() == len(chosen) and not counts["refused"] + counts["failed"] else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m train lab", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("data/lab"), help="folder of the recordings")
    parser.add_argument("--only", default="", help="parts of a recording's name, with commas between them")
    parser.add_argument("--jobs", type=int, default=1, choices=(1,), help="runs at a time; they share one network")
    parser.add_argument("--minutes", type=float, default=600, help="start no run after so many minutes")
    parser.add_argument("--again", action="store_true", help="describe existing recordings anew from their logs")
    parser.add_argument("--list", action="store_true", help="print the plan and run nothing")
    parser.add_argument("--table", action="store_true", help="write the table of what is recorded into README.md there")
    parser.add_argument("--raw", type=Path, default=None, help="keep logs of runs that show no incident here")
    return parser


def _record(recording: Recording, out: Path, raw: Path | None) -> str:
    """Make one recording unless it exists: `there`, `made`, `failed` (no such incident), `refused` (by the kernel)."""
    folder = out / recording.fault.split / recording.id
    if folder.exists():
        return "there"
    with tempfile.TemporaryDirectory(prefix="lab") as work:
        try:
            run = launch(recording, Path(work))
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"refused  {recording.id} {recording.name}: {error}", flush=True)
            return "refused"
        try:
            files = rendered(recording, run, Path(work))
            dumps = rendered_dumps(run, Path(work))
            incident = describe(recording, files, dumps)
        except (NoIncidentError, ValueError) as error:
            if raw is not None:
                _keep(run.files, raw / recording.name)
            print(f"failed   {recording.id} {recording.name}: {error} ({run.seconds:.0f} s)", flush=True)
            return "failed"
    folder.parent.mkdir(parents=True, exist_ok=True)
    write(recording, incident, {**files, **dumps}, folder)
    waiting = incident.get("waiting_ranks", [])
    print(
        f"made     {recording.id} {recording.name}: waiting {waiting}, {len(dumps)} dumps ({run.seconds:.0f} s)",
        flush=True,
    )
    return "made"


def _describe_again(recordings: Sequence[Recording], out: Path) -> int:
    """Write `incident.json` anew for what is there, after a change of the table or of the reading."""
    for recording in recordings:
        folder = out / recording.fault.split / recording.id
        if folder.exists():
            write_manifest(folder, describe(recording, stored_logs(folder), stored_dumps(folder)))
    return 0


def _keep(files: Mapping[str, bytes], folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
