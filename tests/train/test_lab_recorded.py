"""The fault lab: the recordings that are shipped."""

from __future__ import annotations

import json
import re
from collections import Counter

from tests.train.lab_making import RECORDED, ROOT, planned
from train.lab.store import stored_dumps
from train.lab.table import tell


def test_recordings_are_loadable_small_and_name_no_machine() -> None:
    from fsdpclassify.labelled import load_all

    assert len(load_all([ROOT / "data" / "lab"])) == len(RECORDED)
    assert sum(p.stat().st_size for p in (ROOT / "data" / "lab").rglob("*") if p.is_file()) < 40_000_000
    for folder in RECORDED:
        for path in (p for p in (folder / "logs").rglob("*") if p.is_file()):
            content = path.read_bytes()
            assert not re.search(rb"/tmp/|/root/|/work/|RUN_PROFILE|transcribed", content), path


def test_decisive_lines_of_recordings_exist() -> None:
    for folder in RECORDED:
        for place in json.loads((folder / "incident.json").read_text()).get("decisive_lines", []):
            name, _, number = place.rpartition(":")
            assert int(number) <= (folder / "logs" / name).read_bytes().count(b"\n") + 1, folder.name


def test_recorded_dumps_are_dumps_of_ranks_of_their_run() -> None:
    from fsdpclassify.recorder.dumps import read_dump
    from fsdpclassify.recorder.loading import load

    with_dumps = [folder for folder in RECORDED if stored_dumps(folder)]
    assert len(with_dumps) >= 40
    for folder in with_dumps:
        for name, content in stored_dumps(folder).items():
            assert re.fullmatch(r"traces/(?:comm_lib_trace_rank_[0-7]\.json|nccl_trace_rank_[0-7])", name), folder.name
            assert read_dump(load(content if isinstance(content, bytes) else content.encode())).works, folder.name


def test_what_is_recorded_reaches_the_numbers_that_the_lab_is_for() -> None:
    there = [r for r in planned() if (ROOT / "data/lab" / r.fault.split / r.id).is_dir()]
    assert len(there) == len(RECORDED)
    seeds = Counter((r.fault.name, r.wrapper) for r in there if not r.transcribed)
    wrappers = Counter(name for name, _ in seeds)
    assert sum(count >= 2 for count in seeds.values()) >= 25
    assert sum(count == 3 for count in wrappers.values()) >= 10
    assert {2, 8} <= {r.world for r in there}


def test_the_readme_has_a_row_for_everything_recorded() -> None:
    text = (ROOT / "data/lab/README.md").read_text()
    for recording in planned():
        if (ROOT / "data/lab" / recording.fault.split / recording.id).is_dir():
            split = recording.fault.split.removeprefix("lab_")
            row = rf"^\| {recording.fault.name} \({split}\) \| {recording.fault.label} \| {recording.wrapper} \|"
            assert re.search(row, text, re.MULTILINE), recording.name


def test_the_test_split_is_described_but_not_read() -> None:
    of_test = [r for r in planned() if r.fault.split == "lab_test"]
    told = tell(of_test, ROOT / "data" / "lab")
    assert told
    assert all(t.found is None and t.verdict == "-" for t in told)
