"""`retrain`: the shipped training examples and the user's own labelled incidents become a new bundle.

Needs the extra `train`; no torch. The encoder is kept; both levels of the head are refitted, recalibrated,
exported and compared with the estimators. A bundle that does worse on the frozen tests is not written.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fsdpclassify.bundle import locate, verify, write
from fsdpclassify.catalogue import CATALOGUE_FILE
from fsdpclassify.causes import CAUSES_FILE
from fsdpclassify.decision import UNDETERMINED
from fsdpclassify.encoder import ENCODER_FILE, TOKENIZER_FILE, Encoder
from fsdpclassify.errors import FsdpClassifyError, LabelledIncidentError
from fsdpclassify.head import HEAD_FILE, Head
from fsdpclassify.manifest import Manifest
from fsdpclassify.training import archive, recipe
from fsdpclassify.training.assemble import Provenance, carried_over, head_bytes, manifest_of
from fsdpclassify.training.examples import Example, read_examples
from fsdpclassify.training.export import PARITY, parity
from fsdpclassify.training.fit import Encoded, FittedHead, Wordings, encode_all, fit_lines
from fsdpclassify.training.novel import with_presumed_evidence
from fsdpclassify.training.weights import balanced

#: A wording that this share of its incidents give one label speaks for it; a mislabelled one does not silence it.
_CLEAR = 0.75
NO_TIMEOUT = "no_timeout"
#: What stands for the source repository of a user's own incidents; each is held out by itself.
_OWN = "own/"
#: A loss of macro-F1 on the frozen tests up to this size is noise.
_TOLERANCE = 0.01
_KEPT = (ENCODER_FILE, TOKENIZER_FILE, CAUSES_FILE, CATALOGUE_FILE, archive.FROZEN_FILE, archive.VALIDATION_FILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrainResult:
    """Whether the new bundle was written, and the figures as text."""

    accepted: bool
    summary: str


def retrain(folders: Sequence[Path], output: Path, *, base: Path | None = None, force: bool = False) -> RetrainResult:
    """Refit the head of `base` (default: the shipped bundle) with the labelled incidents below `folders`.

    Raises `LabelledIncidentError` for a folder that does not follow the documented form or in which no
    incident can be learnt from, `BundleError` for a base without training examples.
    """
    root = locate(base)
    manifest = verify(root)
    given = [example for folder in folders for example in read_examples(folder)]
    usable = _usable(given, manifest)
    data = _material(root, manifest, usable)
    trained = _trained(data)
    before = _figures(Head(root), manifest.labels, _frozen(root, data), usable, Encoder(root))
    with tempfile.TemporaryDirectory() as scratch:
        files = {HEAD_FILE: head_bytes(trained.head, Encoder(root).dimension)}
        _check_parity(trained.head, files[HEAD_FILE], Path(scratch), data)
        after = _figures(Head(Path(scratch)), trained.head.labels, _frozen(root, data), usable, Encoder(root))
    accepted = force or after.macro_f1 >= before.macro_f1 - _TOLERANCE
    if accepted:
        _write(root, manifest, output, data, trained, files)
    return RetrainResult(accepted=accepted, summary=_summary(given, usable, before, after, accepted, output))


def _usable(given: Sequence[Example], manifest: Manifest) -> list[Example]:
    """The incidents that the package sees and whose label names a class of a model, old or new."""
    usable = [e for e in given if e.found and e.label != NO_TIMEOUT]
    if not usable:
        message = (
            "none of the labelled incidents holds an incident to learn from: see `fsdpclassify inspect FOLDER/logs`"
        )
        raise LabelledIncidentError(message)
    return usable


def _labels(manifest: Manifest, examples: Sequence[Example]) -> tuple[str, ...]:
    """The bundle's labels that some example still carries, then those that only the new incidents carry."""
    carried = {e.label for e in examples}
    new = sorted({e.label for e in examples if _is_own(e)} - set(manifest.labels) - {UNDETERMINED, NO_TIMEOUT})
    return (*(name for name in manifest.labels if name in carried), *new)


def _is_own(example: Example) -> bool:
    return example.repository.startswith(_OWN)


def _examples(root: Path, usable: Sequence[Example]) -> tuple[list[Example], list[Example]]:
    """What the bundle shipped with, and own incidents: those of earlier runs and those given now.

    An incident that is given again may carry a corrected label: the one learnt before goes.
    """
    given = {e.sha256 for e in usable}
    old = [e for e in archive.read(root, archive.TRAINING_FILE)[0] if e.sha256 not in given]
    own = [e for e in old if _is_own(e)] + [replace(e, repository=f"{_OWN}{e.id}") for e in usable]
    return [e for e in old if not _is_own(e)], own


def _material(root: Path, manifest: Manifest, usable: Sequence[Example]) -> recipe.Material:
    encoder = Encoder(root)
    ours, own = _examples(root, usable)
    validation, _ = archive.read(root, archive.VALIDATION_FILE)
    texts, names = archive.unpack_wordings((root / archive.TRAINING_FILE).read_bytes())
    wordings = Wordings(texts=tuple(texts), vectors=encoder.encode(texts), labels=tuple(names))
    real = [e for e in ours if e.sha256 in manifest.training]
    simulated = [e for e in ours if e.sha256 not in manifest.training]
    known = {t for e in ours for t in e.texts} | _common(own)
    taught = [with_presumed_evidence(e, known) for e in own]
    encoded = encode_all([*simulated, *taught], encoder.encode)
    weights = balanced(simulated, taught, _line_share(simulated, taught))
    return recipe.Material(
        simulated=tuple(encoded[: len(simulated)]),
        validation=tuple(encode_all(validation, encoder.encode)),
        real=tuple(encode_all([*real, *own], encoder.encode)),
        wordings=wordings,
        lines=fit_lines(encoded, weights, wordings, labels=_labels(manifest, [*ours, *own])),
    )


def _common(own: Sequence[Example]) -> set[str]:
    """Wordings that own incidents of several labels hold alike: a house's noise, which speaks for none of them."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for e in own:
        for text in set(e.texts):
            counts[text][e.label] += 1
    return {text for text, labels in counts.items() if max(labels.values()) < _CLEAR * labels.total()}


def _line_share(simulated: Sequence[Example], taught: Sequence[Example]) -> float:
    """Own wordings count up to ten times a simulated one, and never more than all of those together."""
    return min(0.5, 10.0 * len(taught) / max(len(simulated) + 10.0 * len(taught), 1.0))


def _trained(data: recipe.Material) -> recipe.Trained:
    folds = recipe.out_of_fold(data)
    return recipe.calibrated(data, recipe.fitted(data, data.real), folds.raw, data.real)


def _frozen(root: Path, data: recipe.Material) -> list[Encoded]:
    examples, _ = archive.read(root, archive.FROZEN_FILE)
    return encode_all(examples, Encoder(root).encode)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figures:
    macro_f1: float
    accuracy: float
    frozen: int
    own: int
    own_right: int


def _figures(
    head: Head, labels: Sequence[str], frozen: Sequence[Encoded], own: Sequence[Example], encoder: Encoder
) -> _Figures:
    """First labels of a head on the frozen tests (causes only) and on the given incidents."""
    causes = [i for i in frozen if i.example.label in labels and i.example.label != "other"]
    truth = np.array([labels.index(i.example.label) for i in causes])
    first = np.array([_first(head, i) for i in causes])
    mine = encode_all([e for e in own if e.label != UNDETERMINED], encoder.encode)
    right = sum(labels[_first(head, i)] == i.example.label for i in mine)
    return _Figures(
        macro_f1=_macro_f1(truth, first),
        accuracy=float((truth == first).mean()),
        frozen=len(causes),
        own=len(mine),
        own_right=right,
    )


def _first(head: Head, item: Encoded) -> int:
    return int(head.run(item.vectors, item.facts, item.ledger)[0].argmax())


def _macro_f1(truth: NDArray[np.int64], first: NDArray[np.int64]) -> float:
    scores = []
    for label in np.unique(truth):
        hit = float(((truth == label) & (first == label)).sum())
        scores.append(2 * hit / float((truth == label).sum() + (first == label).sum()))
    return float(np.mean(scores))


def _check_parity(head: FittedHead, graph: bytes, scratch: Path, data: recipe.Material) -> None:
    (scratch / HEAD_FILE).write_bytes(graph)
    worst = parity(head, scratch, [*data.real, *data.validation])
    if worst > PARITY:
        message = f"the exported head differs from the fitted one by {worst:.1e}; nothing was written"
        raise FsdpClassifyError(message)


def _write(
    root: Path,
    manifest: Manifest,
    output: Path,
    data: recipe.Material,
    trained: recipe.Trained,
    files: dict[str, bytes],
) -> None:
    simulated, real = [i.example for i in data.simulated], [i.example for i in data.real]
    everything = {**carried_over(root, _KEPT), **files}
    packed = archive.pack([*simulated, *real], balanced(simulated, real), archive.pack_wordings(data.wordings))
    everything[archive.TRAINING_FILE] = packed
    provenance = Provenance(
        name=output.name,
        version=f"{manifest.version}+retrained",
        data_sha256=manifest.data_sha256,
        code_sha256=manifest.code_sha256,
        training=tuple(e.sha256 for e in real),
        metrics={},
    )
    write(output, manifest_of(provenance, trained.head.labels, recipe.prior(data), trained.thresholds), everything)


def _summary(
    given: Sequence[Example], usable: Sequence[Example], before: _Figures, after: _Figures, accepted: bool, output: Path
) -> str:
    lines = [
        f"learnt from {len(usable)} of {len(given)} labelled incidents",
        *(
            f"  left out: {e.id} ({'no incident is seen in its logs' if not e.found else e.label})"
            for e in given
            if e not in usable
        ),
        "                                     before   after",
        f"frozen tests, macro-F1 ({before.frozen:>4} causes)   {before.macro_f1:7.3f} {after.macro_f1:7.3f}",
        f"frozen tests, accuracy               {before.accuracy:7.3f} {after.accuracy:7.3f}",
        f"these incidents, first label right   {before.own_right:>4}/{before.own:<3}{after.own_right:>4}/{after.own:<3}"
        " (after: learnt from them)",
        f"written to {output}"
        if accepted
        else f"not written: worse than before by more than {_TOLERANCE}; --force writes it all the same",
    ]
    return "\n".join(lines)
