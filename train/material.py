"""What a release is fitted on."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fsdpclassify.encoder import Encoder
from fsdpclassify.training.fit import Encoded, Wordings, encode_all, fit_lines
from fsdpclassify.training.recipe import Material
from fsdpclassify.training.remembered import RememberedLines
from train.causes import load_inventory, wording_texts
from train.dataset import BUNDLE, PUBLIC, WRITTEN, examples

#: A composed incident's lines count this much more than a simulated one's: each is worded once.
_WRITTEN_LINES = 2.0


def material(without: Collection[str] = ()) -> Material:
    """Everything a release learns from; the test splits are not read here.

    The line level is fitted on simulated and composed incidents and the inventory alone: no line of a public
    incident enters it, so one line level serves every fold. `without` names authors (`written/a`) left out.
    """
    encoder = Encoder(BUNDLE)
    texts, labels = wording_texts(load_inventory(), "train")
    wordings = Wordings(texts=tuple(texts), vectors=encoder.encode(texts), labels=tuple(labels))
    composed = [e for e in examples(WRITTEN) if e.repository not in without]
    made = _found(encode_all([*examples("train"), *composed], encoder.encode))
    return Material(
        simulated=made,
        validation=_found(encode_all([*examples("val"), *examples("lab_val")], encoder.encode)),
        real=_found(encode_all([*examples(PUBLIC), *examples("lab_train")], encoder.encode)),
        wordings=wordings,
        lines=RememberedLines.of(fit_lines(made, [_line_weight(i) for i in made], wordings)),
    )


def _line_weight(item: Encoded) -> float:
    return _WRITTEN_LINES if item.example.repository.startswith(WRITTEN) else 1.0


def _found(items: Sequence[Encoded]) -> tuple[Encoded, ...]:
    return tuple(i for i in items if i.example.found)
