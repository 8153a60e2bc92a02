from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fsdpclassify.classifier import Classifier
from fsdpclassify.labelled import LabelledIncident, load
from train import sanity
from train.inventory import Family, Inventory

TIMEOUT = (
    "[rank{0}]:[E512 21:10:07.118820344 ProcessGroupNCCL.cpp:689] [Rank {0}] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=7, OpType=_ALLGATHER_BASE, NumelIn=4096, NumelOut=16384, Timeout(ms)=600000) ran for"
    " 600013 milliseconds before timing out."
)
LINES = [
    *(f"[rank{r}]: step 3 loss 2.{r}" for r in range(4)),
    "[rank2]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "[rank0]: something else",
    *(TIMEOUT.format(r) for r in (0, 1, 3)),
]


@pytest.fixture
def incident(tmp_path: Path) -> LabelledIncident:
    (tmp_path / "logs" / "deep").mkdir(parents=True)
    (tmp_path / "logs" / "deep" / "train.log").write_text("\n".join(LINES) + "\n")
    (tmp_path / "logs" / "note.txt").write_text("untouched\n")
    content = {"schema_version": 1, "id": "x", "label": "rank_failure", "decisive_lines": ["deep/train.log:5"]}
    (tmp_path / "incident.json").write_text(json.dumps(content))
    return load(tmp_path)


def test_an_edit_takes_lines_out_of_a_copy_or_puts_others_behind_them(incident: LabelledIncident) -> None:
    with sanity.edited(incident.logs, {("deep/train.log", 5): ()}) as logs:
        assert (logs / "deep" / "train.log").read_text().splitlines() == LINES[:4] + LINES[5:]
        assert (logs / "note.txt").read_text() == "untouched\n"
    with sanity.edited(incident.logs, {("deep/train.log", 2): ("new",)}, keep=True) as logs:
        assert (logs / "deep" / "train.log").read_text().splitlines() == [*LINES[:2], "new", *LINES[2:]]
    assert (incident.logs / "deep" / "train.log").read_text().splitlines() == LINES


@pytest.mark.model
def test_the_line_that_shows_the_cause_is_missed_more_than_another(incident: LabelledIncident) -> None:
    (found,) = sanity.deleted(Classifier.load(), incident)
    assert found.control is not None
    assert found.without < found.control
    assert found.without < found.whole


@pytest.mark.model
def test_an_incident_without_decisive_lines_is_left_out(incident: LabelledIncident) -> None:
    path = incident.folder / "incident.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"decisive_lines": []}))
    assert sanity.deleted(Classifier.load(), load(incident.folder)) == []


def _family(label: str, channel: str = "rank", role: str = "decoy") -> Family:
    return Family(
        id=f"{label}-{channel}-{role}", emitter="x", role=role, channel=channel, template="no route to host",
        provenance="known", source="x", label=label,
    )  # fmt: skip


@pytest.mark.model
def test_a_decoy_is_of_another_label_and_stands_behind_the_prefix_of_its_neighbour(
    incident: LabelledIncident, monkeypatch: pytest.MonkeyPatch
) -> None:
    families = (
        _family("rank_failure"), _family("desync", "system"), _family("straggler", role="noise"),
        _family("fabric_congestion"),
    )  # fmt: skip
    inventory = Inventory(labels=(), causes=(), families=families)
    texts: list[str] = []
    real = Classifier.classify

    def spy(self: Classifier, x: Path, *, hung: bool = False) -> object:
        texts.append((x / "deep" / "train.log").read_text())
        return real(self, x, hung=hung)

    monkeypatch.setattr(Classifier, "classify", spy)
    (found,) = sanity.decoyed(Classifier.load(), incident, inventory)
    assert (found.label, found.lure) == ("rank_failure", "fabric_congestion")
    (new,) = set(texts[1].splitlines()) - set(LINES)
    assert new.startswith("[rank")
    assert new.endswith("]: no route to host")


def test_shares_are_of_what_could_be_compared() -> None:
    found = [
        sanity.Deleted(id="a", whole=0.9, without=0.1, control=0.9),
        sanity.Deleted(id="b", whole=0.5, without=0.5, control=None),
    ]
    text = sanity.render_deletions(found)
    assert "p(label) falls in 1 of 2 (0.500" in text
    assert "mean drop +0.400" in text
    assert "p(label) falls in 0 of 1 (0.000" in text
    assert "missed more than the others in 1 of 1" in text


def test_a_changed_verdict_is_told_by_what_it_became() -> None:
    def one(before: str, after: str) -> sanity.Decoyed:
        return sanity.Decoyed(id="a", label="desync", lure="straggler", before=before, after=after)

    pairs = [("desync", "desync"), ("desync", "straggler"), ("desync", "undetermined"), ("undetermined", "desync")]
    text = sanity.render_decoys([one(*pair) for pair in pairs])
    counts = [line.split("  ")[-1].split(" of ")[0].strip() for line in text.splitlines()[1:]]
    assert counts == ["3", "1", "1", "1"]


@pytest.mark.model
def test_jargon_doubles_the_window_and_is_put_into_what_was_answered_rightly_only(
    incident: LabelledIncident, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []
    real = Classifier.classify

    def spy(self: Classifier, x: Path, *, hung: bool = False) -> object:
        texts.append((x / "deep" / "train.log").read_text())
        return real(self, x, hung=hung)

    monkeypatch.setattr(Classifier, "classify", spy)
    (found,) = sanity.jargoned(Classifier.load(), incident)
    assert (found.label, found.before) == ("rank_failure", "rank_failure")
    new = set(texts[1].splitlines()) - set(texts[0].splitlines())
    assert new
    assert all(any(word in line for word in ("halyard", "quaymaster", "mirepoix", "tollgate", "dimmerd", "berthlog"))
               for line in new)  # fmt: skip
    assert sanity.jargoned(Classifier.load(), replace(incident, label="desync")) == []


def test_what_jargon_withholds_is_told_apart() -> None:
    def one(after: str, why: str) -> sanity.Decoyed:
        return sanity.Decoyed(id="a", label="desync", lure=why, before="desync", after=after)

    text = sanity.render_jargon(
        [one("desync", ""), one("undetermined", "out_of_scope"), one("undetermined", "low_confidence")]
    )
    counts = [line.split("  ")[-1].split(" of ")[0].split()[-1] for line in text.splitlines()[1:]]
    assert counts == ["1", "1"]
