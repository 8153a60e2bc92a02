"""What a release is fitted on."""

from __future__ import annotations

from collections.abc import Sequence

from fsdpclassify.encoder import Encoder
from fsdpclassify.training.fit import Encoded, Wordings, encode_all, fit_lines
from fsdpclassify.training.recipe import Material
from train.causes import load_inventory, wording_texts
from train.dataset import BUNDLE, PUBLIC, examples


def material() -> Material:
    """Everything a release learns from; the test splits are not read here.

    The line level is fitted on simulated incidents and the inventory alone: no public wording enters it,
    so one line level serves every fold.
    """
    encoder = Encoder(BUNDLE)
    texts, labels = wording_texts(load_inventory(), "train")
    wordings = Wordings(texts=tuple(texts), vectors=encoder.encode(texts), labels=tuple(labels))
    simulated = _found(encode_all(examples("train"), encoder.encode))
    return Material(
        simulated=simulated,
        validation=_found(encode_all([*examples("val"), *examples("lab_val")], encoder.encode)),
        real=_found(encode_all([*examples(PUBLIC), *examples("lab_train")], encoder.encode)),
        wordings=wordings,
        lines=fit_lines(simulated, [1.0] * len(simulated), wordings),
    )


def _found(items: Sequence[Encoded]) -> tuple[Encoded, ...]:
    return tuple(i for i in items if i.example.found)
