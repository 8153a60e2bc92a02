"""The released bundle is made by `train build` from `data/` alone, and the same inputs give the same bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fsdpclassify import bundle
from fsdpclassify.catalogue import load_catalogue
from fsdpclassify.causes import CAUSES_FILE, CauseScorer
from fsdpclassify.classifier import Classifier
from fsdpclassify.encoder import Encoder
from fsdpclassify.familiar import load_words, words_of
from fsdpclassify.labelled import content_sha256, incident_folders, load
from fsdpclassify.training import archive, recipe
from fsdpclassify.training.fit import LABELS, NOTHING, Wordings, encode_all, fit_lines
from train import build, causes, dataset
from train.card import card_bytes

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def material() -> recipe.Material:
    """A part of what the release was fitted on, as the bundle itself carries it: no corpus is needed."""
    encoder = Encoder(dataset.BUNDLE)
    manifest = bundle.verify(dataset.BUNDLE)
    every, _ = archive.read(dataset.BUNDLE, archive.TRAINING_FILE)
    simulated = encode_all([e for e in every if e.sha256 not in manifest.training][::16], encoder.encode)
    real = encode_all([e for e in every if e.sha256 in manifest.training][::8], encoder.encode)
    validation = encode_all(archive.read(dataset.BUNDLE, archive.VALIDATION_FILE)[0][::6], encoder.encode)
    none = Wordings(texts=(), vectors=encoder.encode([]), labels=())
    lines = fit_lines(simulated, [1.0] * len(simulated))
    return recipe.Material(
        simulated=tuple(simulated), validation=tuple(validation), real=tuple(real), wordings=none, lines=lines
    )


@pytest.fixture(scope="module")
def trained(material: recipe.Material) -> recipe.Trained:
    folds = recipe.out_of_fold(material)
    return recipe.calibrated(material, recipe.fitted(material, material.real), folds.raw, material.real)


@pytest.fixture(autouse=True, scope="module")
def shipped_causes() -> None:
    """The cause graph is tested by itself; here it need not be fitted again."""
    build._causes[0] = (dataset.BUNDLE / CAUSES_FILE).read_bytes()


def test_the_same_inputs_give_the_same_bytes(
    material: recipe.Material, trained: recipe.Trained, tmp_path: Path
) -> None:
    one, two = (build.assemble(material, trained, tmp_path / name, shipped=False) for name in ("one", "two"))
    assert {p.name: p.read_bytes() for p in one.iterdir()} == {p.name: p.read_bytes() for p in two.iterdir()}


def test_what_is_assembled_is_a_bundle_that_answers(
    material: recipe.Material, trained: recipe.Trained, tmp_path: Path
) -> None:
    folder = build.assemble(material, trained, tmp_path / "x", shipped=False)
    manifest = bundle.verify(folder)
    assert manifest.labels == LABELS
    assert set(manifest.training) == {i.example.sha256 for i in material.real}
    assert manifest.data_sha256 == dataset.tree_hash(dataset.DATA)
    found = Classifier.load(folder).classify(dataset.DATA / "incidents" / "inc-027" / "logs")
    assert len(found.incidents) == 1


def test_a_bundle_knows_the_words_of_made_incidents_and_none_that_only_real_ones_hold(
    material: recipe.Material, trained: recipe.Trained, tmp_path: Path
) -> None:
    folder = build.assemble(material, trained, tmp_path / "x", shipped=False)
    known = load_words(folder) or frozenset()
    assert {"checkpoint", "rank", "timeout"} <= known
    made = {word for i in material.simulated for text in i.example.texts for word in words_of(text)}
    assert known <= made


def test_thresholds_of_other_mixes_speak_of_every_label_and_the_shipped_mix_gives_the_shipped_ones(
    material: recipe.Material, trained: recipe.Trained
) -> None:
    found = build._by_prior(material, trained)
    assert set(found) == {"shipped", "uniform", "measured"}
    for mode in ("balanced", "high-precision"):
        assert found["shipped"][mode] == trained.thresholds[mode]
        assert all(set(mix[mode]) == set(LABELS) for mix in found.values())
    assert all(sum(mix["prior"].values()) == pytest.approx(1.0, abs=1e-3) for mix in found.values())


def test_a_graph_that_differs_from_its_estimators_is_not_written(
    material: recipe.Material, trained: recipe.Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "PARITY", 1e-12)
    with pytest.raises(SystemExit, match="the exported head differs"):
        build.assemble(material, trained, tmp_path / "x", shipped=False)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_corpus_is_named_with_its_command(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="python -m train corpus"):
        dataset.examples("train", tmp_path)


def test_a_tree_s_hash_knows_names_and_contents_and_no_place(tmp_path: Path) -> None:
    def tree(name: str, files: dict[str, str]) -> str:
        for path, text in files.items():
            target = tmp_path / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        return dataset.tree_hash(tmp_path / name)

    first = tree("a", {"x": "1", "d/y": "2"})
    assert tree("b", {"d/y": "2", "x": "1"}) == first
    assert len({first, tree("c", {"x": "2", "d/y": "2"}), tree("e", {"z": "1", "d/y": "2"})}) == 3


def test_the_cause_graph_scores_the_catalogue_s_causes_in_its_order(tmp_path: Path) -> None:
    inventory, encoder = causes.load_inventory(), Encoder(dataset.BUNDLE)
    (tmp_path / CAUSES_FILE).write_bytes((dataset.BUNDLE / CAUSES_FILE).read_bytes())
    (tmp_path / "catalogue.json").write_bytes(causes.catalogue_bytes(inventory))
    catalogue = load_catalogue(tmp_path)
    scores = CauseScorer(tmp_path).score(encoder.encode(["Got completion from peer with status=<n>"]))
    assert scores.shape == (1, len(catalogue.causes))
    assert catalogue.causes[int(scores[0].argmax())].label == "fabric_congestion"


def test_the_inventory_s_wordings_speak_for_labels_that_exist() -> None:
    texts, labels = causes.wording_texts(causes.load_inventory(), "train")
    assert len(texts) == len(labels) > 1000
    assert set(labels) == {*LABELS, NOTHING}


def test_the_released_bundle_is_in_step_with_the_taxonomy() -> None:
    released = (dataset.BUNDLE / "catalogue.json").read_bytes()
    assert released == causes.catalogue_bytes(causes.load_inventory()), "data/ changed: python -m train build"


def _hashes(*parts: str) -> set[str]:
    """The content hashes of every labelled incident below these folders of `data/`."""
    roots = [dataset.DATA / part for part in parts if (dataset.DATA / part).is_dir()]
    return {content_sha256(load(folder)) for root in roots for folder in incident_folders(root)}


def test_the_released_bundle_learnt_only_from_incidents_that_are_here_and_not_held_out() -> None:
    learnt = set(bundle.read_manifest(dataset.BUNDLE).training)
    assert learnt <= _hashes("incidents", "lab/lab_train")
    assert not learnt & _hashes("lab/lab_val", "lab/lab_test")


def test_no_frozen_test_was_trained_on() -> None:
    names = (archive.TRAINING_FILE, archive.VALIDATION_FILE, archive.FROZEN_FILE)
    seen = [{e.sha256 for e in archive.read(dataset.BUNDLE, name)[0]} for name in names]
    assert not seen[0] & seen[1]
    assert not seen[0] & seen[2]
    assert not seen[1] & seen[2]


def test_the_card_names_every_label() -> None:
    manifest = bundle.read_manifest(dataset.BUNDLE)
    files = {p.name: p.read_bytes() for p in dataset.BUNDLE.iterdir()}
    card = card_bytes(manifest, files).decode()
    assert all(label in card for label in manifest.labels)
    assert json.loads((dataset.BUNDLE / "manifest.json").read_text())["files"]["README.md"]
