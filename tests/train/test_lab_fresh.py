"""The fault lab: the split that was made last stays out of everything that learns, tunes or is looked at."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from fsdpclassify.bundle import read_manifest
from fsdpclassify.labelled import content_sha256, incident_folders, load
from fsdpclassify.training import archive
from tests.train.lab_making import RECORDED, ROOT, planned
from train import dataset, evaluate, material, splits
from train.lab.faults import FRESH, SCRIPTS, SPLITS
from train.lab.store import stored_dumps
from train.lab.table import tell

FOLDERS = [folder for folder in RECORDED if folder.parent.name == FRESH]
MANIFESTS = [json.loads((folder / "incident.json").read_text()) for folder in FOLDERS]


def _hashes() -> set[str]:
    return {content_sha256(load(folder)) for folder in incident_folders(dataset.folder_of(FRESH))}


def test_training_never_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Silent:
        def __init__(self, bundle: Path) -> None:
            self.encode = list

    monkeypatch.setattr(material, "Encoder", Silent)
    monkeypatch.setattr(material, "examples", lambda split: asked.append(split) or [])
    monkeypatch.setattr(material, "wording_texts", lambda inventory, owner: ([], []))
    monkeypatch.setattr(material, "fit_lines", lambda made, weights, wordings: None)
    monkeypatch.setattr(material.RememberedLines, "of", lambda scorer: scorer)
    material.material()
    assert {"train", "lab_train", "lab_val", dataset.PUBLIC} <= set(asked)
    assert FRESH not in asked


def test_no_module_that_fits_or_tunes_names_it() -> None:
    names = (
        "material.py",
        "build.py",
        "ablate.py",
        "encoder.py",
        "leaks.py",
        "realism.py",
        "baselines.py",
        "causes.py",
    )
    files = [ROOT / "train" / name for name in names if (ROOT / "train" / name).is_file()]
    for folder in ("train/simulate", "train/encoders", "fsdpclassify"):
        files += (ROOT / folder).rglob("*.py")
    assert len(files) > 50
    assert [p.name for p in files if re.search(rf"{FRESH}|\bdataset\.LAB\b|import .*\bLAB\b", p.read_text())] == []


def test_the_released_bundle_holds_nothing_of_it() -> None:
    hashes = _hashes()
    assert len(hashes) == len(FOLDERS)
    assert not hashes & set(read_manifest(dataset.BUNDLE).training)
    for name in (archive.TRAINING_FILE, archive.VALIDATION_FILE, archive.FROZEN_FILE):
        assert not hashes & {e.sha256 for e in archive.read(dataset.BUNDLE, name)[0]}, name


def test_it_can_be_scored_by_name() -> None:
    assert FRESH in evaluate.SPLITS
    assert dataset.folder_of(FRESH) == ROOT / "data" / "lab" / FRESH


def test_it_shares_neither_faults_nor_scripts_nor_logs_with_another_split() -> None:
    assert SPLITS[-1] == FRESH
    others = {script for split, scripts in SCRIPTS.items() if split != FRESH for script in scripts}
    assert not others & set(SCRIPTS[FRESH])
    fresh = {r.fault.name for r in planned() if r.fault.split == FRESH}
    assert not fresh & {r.fault.name for r in planned() if r.fault.split != FRESH}
    assert not _hashes() & {content_sha256(load(f)) for f in RECORDED if f not in FOLDERS}


def test_its_folder_can_be_frozen_without_the_corpus(tmp_path: Path) -> None:
    path = tmp_path / "splits.json"
    known = splits.frozen()
    path.write_text(json.dumps({**known, "folders": {}}))
    splits.freeze_folders(path)
    assert splits.frozen(path) == known
    assert known["folders"][FRESH]["incidents"] == len(FOLDERS)


def test_every_cause_has_enough_recordings() -> None:
    counts = Counter(m["label"] for m in MANIFESTS)
    assert counts.total() >= 40
    assert all(counts[label] >= 5 for label in ("straggler", "offload_latency", "uneven_sharding", "desync"))
    assert counts["rank_failure"] >= 5
    assert counts["fabric_congestion"] >= 4
    assert counts["no_timeout"] >= 3
    assert counts["other"] >= 3


def test_it_is_of_many_makes() -> None:
    there = [r for r in planned() if (ROOT / "data/lab" / r.fault.split / r.id).is_dir() and r.fault.split == FRESH]
    assert len(there) == len(FOLDERS)
    assert len({r.fault.name for r in there if r.fault.label not in ("other", "no_timeout")}) >= 22
    assert {r.launcher for r in there} == {"torchrun", "srun", "files", "spawn"}
    assert {r.wrapper for r in there} == {"fsdp1", "fsdp2", "ddp"}
    assert {r.script for r in there} == set(SCRIPTS[FRESH])
    assert {2, 8} <= {r.world for r in there}
    assert {8.0, 30.0} <= {r.timeout_s for r in there}


def test_some_dumps_are_pickles_and_some_logs_do_not_tell() -> None:
    dumps = [stored_dumps(folder) for folder in FOLDERS]
    assert sum(bool(d) for d in dumps) >= len(FOLDERS) // 3
    assert sum(any(isinstance(content, bytes) for content in d.values()) for d in dumps) >= 5
    unsure = [m for m in MANIFESTS if m["determinable_from_log"] != "yes"]
    assert len(unsure) >= len(FOLDERS) // 4


def test_its_recordings_are_described_but_not_read() -> None:
    told = tell([r for r in planned() if r.fault.split == FRESH], ROOT / "data" / "lab")
    assert told
    assert all(t.found is None and t.verdict == "-" for t in told)
