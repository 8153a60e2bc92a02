"""`python -m train build`: fits the head on `data/` and writes the released bundle to `models/default`.

Same inputs, same bytes. `encoder.onnx` and `tokenizer.json` are taken as they lie there; `python -m train
encoder` makes them anew. The corpus must have been written by `python -m train corpus`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from fsdpclassify.bundle import write
from fsdpclassify.catalogue import CATALOGUE_FILE
from fsdpclassify.causes import CAUSES_FILE
from fsdpclassify.encoder import Encoder
from fsdpclassify.familiar import WORDS_FILE, vocabulary, words_bytes
from fsdpclassify.head import HEAD_FILE
from fsdpclassify.training import recipe
from fsdpclassify.training.archive import FROZEN_FILE, TRAINING_FILE, VALIDATION_FILE, pack, pack_wordings
from fsdpclassify.training.assemble import Provenance, carried_over, head_bytes, manifest_of
from fsdpclassify.training.export import PARITY, parity
from fsdpclassify.training.weights import balanced
from train import dataset
from train.card import CARD, PRIORS, card_bytes
from train.causes import catalogue_bytes, causes_graph, load_inventory
from train.material import material
from train.priors import thresholds_by_prior

NAME, VERSION = "default", "0.3.0"
_FROZEN = ("test_seen", "test_unseen_lines")


def main(argv: list[str]) -> int:
    """Build the bundle and print where it lies."""
    parser = argparse.ArgumentParser(prog="python -m train build", description=__doc__)
    parser.add_argument("--out", type=Path, default=dataset.BUNDLE)
    options = parser.parse_args(argv)
    data = material()
    folds = recipe.out_of_fold(data)
    trained = recipe.calibrated(data, recipe.fitted(data, data.real), folds.raw, data.real)
    folder = assemble(data, trained, options.out)
    sys.stdout.write(f"{folder}\n")
    return 0


def assemble(data: recipe.Material, trained: recipe.Trained, out: Path, *, shipped: bool = True) -> Path:
    """Write a bundle for a trained head; `shipped` adds the training examples, frozen tests and the card."""
    inventory = load_inventory()
    encoder = Encoder(dataset.BUNDLE)
    files = carried_over(dataset.BUNDLE)
    files[HEAD_FILE] = head_bytes(trained.head, encoder.dimension)
    files[CAUSES_FILE] = causes_graph(inventory, encoder.encode) if shipped else _cached_causes(encoder)
    files[CATALOGUE_FILE] = catalogue_bytes(inventory)
    files[WORDS_FILE] = words_bytes(known_words(data))
    provenance = Provenance(
        name=NAME,
        version=VERSION,
        data_sha256=dataset.tree_hash(dataset.DATA),
        code_sha256=dataset.tree_hash(dataset.ROOT / "train") if shipped else "fold",
        training=tuple(i.example.sha256 for i in data.real),
        metrics={"parity": PARITY} | ({PRIORS: _by_prior(data, trained)} if shipped else {}),
    )
    manifest = manifest_of(provenance, trained.head.labels, recipe.prior(data), trained.thresholds)
    if shipped:
        real = [i.example for i in data.real]
        simulated = [i.example for i in data.simulated]
        files[TRAINING_FILE] = pack([*simulated, *real], balanced(simulated, real), pack_wordings(data.wordings))
        frozen = [e for split in _FROZEN for e in dataset.examples(split) if e.found]
        files[FROZEN_FILE] = pack(frozen, [1.0] * len(frozen))
        checked = [i.example for i in data.validation]
        files[VALIDATION_FILE] = pack(checked, [1.0] * len(checked))
        files[CARD] = card_bytes(manifest, files)
    _check_parity(data, trained, files)
    return write(out, manifest, files)


def _by_prior(data: recipe.Material, trained: recipe.Trained) -> dict[str, dict[str, dict[str, float]]]:
    public = [i.example.label for i in data.real if not i.example.repository.startswith("lab/")]
    return thresholds_by_prior(trained.calibration, trained.head.labels, public)


def known_words(data: recipe.Material) -> frozenset[str]:
    """The words of made incidents and of the inventory; real ones add none, so that folds share one vocabulary."""
    made = (text for item in data.simulated for text in item.example.texts)
    return vocabulary([*data.wordings.texts, *made])


_causes: dict[int, bytes] = {}


def _cached_causes(encoder: Encoder) -> bytes:
    """Folds share one cause graph: it is fitted on the inventory alone, which holds no public incident."""
    if 0 not in _causes:
        _causes[0] = causes_graph(load_inventory(), encoder.encode)
    return _causes[0]


def _check_parity(data: recipe.Material, trained: recipe.Trained, files: dict[str, bytes]) -> None:
    """Refuse to write a graph that differs from the estimators by more than `PARITY` on any of 1,000 windows."""
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / HEAD_FILE).write_bytes(files[HEAD_FILE])
        items = [*data.real, *data.validation, *data.simulated][:1000]
        worst = parity(trained.head, Path(scratch), items)
    if worst > PARITY:
        message = f"the exported head differs from the fitted one by {worst:.2e}, more than {PARITY:.0e}"
        raise SystemExit(message)
