"""`retrain`: the shipped training examples and the user's own labelled incidents become a new bundle.

Needs the extra `train`; no torch. The encoder is kept; both levels of the head are refitted, recalibrated,
exported and compared with the estimators. A bundle that does worse on the frozen tests is not written.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fsdpclassify.bundle import locate, manifest_sha256, verify, write
from fsdpclassify.catalogue import CATALOGUE_FILE
from fsdpclassify.causes import CAUSES_FILE
from fsdpclassify.decision import UNDETERMINED
from fsdpclassify.encoder import ENCODER_FILE, TOKENIZER_FILE, Encoder
from fsdpclassify.errors import FsdpClassifyError, LabelledIncidentError, WorseModelError
from fsdpclassify.familiar import WORDS_FILE, load_words, words_bytes, words_of
from fsdpclassify.head import HEAD_FILE, Head
from fsdpclassify.manifest import Manifest
from fsdpclassify.training import archive, recipe
from fsdpclassify.training.assemble import Provenance, carried_over, head_bytes, manifest_of
from fsdpclassify.training.examples import Example, read_examples
from fsdpclassify.training.export import PARITY, parity
from fsdpclassify.training.figures import Figures, figures
from fsdpclassify.training.fit import FittedHead, Wordings, encode_all, fit_lines
from fsdpclassify.training.novel import daily, with_presumed_evidence
from fsdpclassify.training.own_card import CARD_FILE, card_bytes
from fsdpclassify.training.own_causes import extended, taught
from fsdpclassify.training.remembered import RememberedLines
from fsdpclassify.training.weights import balanced

NO_TIMEOUT = "no_timeout"
#: What stands for the source repository of a user's own incidents; each is held out by itself.
_OWN = "own/"
#: A loss of macro-F1 on the frozen tests up to this size is noise.
_TOLERANCE = 0.02
_KEPT = (ENCODER_FILE, TOKENIZER_FILE, archive.FROZEN_FILE, archive.VALIDATION_FILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrainResult:
    """The bundle that was written: figures of the base and of it, and both as text."""

    before: Figures
    after: Figures
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    """The bundle that a retrained one starts from."""

    root: Path
    manifest: Manifest
    encoder: Encoder


def retrain(folders: Sequence[Path], output: Path, *, base: Path | None = None, force: bool = False) -> RetrainResult:
    """Refit the head of `base` (default: the shipped bundle) with the labelled incidents below `folders`.

    Raises `LabelledIncidentError` for a folder that does not follow the documented form or in which no
    incident can be learnt from, `BundleError` for a base without training examples, and without `force`
    `WorseModelError`, whose message holds the figures, for a head that does worse on the frozen tests.
    """
    start = _base(base)
    given = [example for folder in folders for example in read_examples(folder)]
    usable = _usable(given)
    data = _material(start, usable)
    trained = _trained(data)
    head = head_bytes(trained.head, start.encoder.dimension)
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / HEAD_FILE).write_bytes(head)
        _check_parity(trained.head, Path(scratch), data)
        before, after = _compared(start, Head(Path(scratch)), trained.head.labels, usable)
    figured = _summary(given, usable, before, after)
    if not force and after.macro_f1 < before.macro_f1 - _TOLERANCE:
        told = f"not written: worse than before by more than {_TOLERANCE}; --force writes it all the same"
        raise WorseModelError(f"{figured}\n{told}")
    _write(start, output, data, trained, head, before, after)
    return RetrainResult(before=before, after=after, summary=f"{figured}\nwritten to {output}")


def _base(folder: Path | None) -> _Base:
    root = locate(folder)
    return _Base(root=root, manifest=verify(root), encoder=Encoder(root))


def _usable(given: Sequence[Example]) -> list[Example]:
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


def _material(base: _Base, usable: Sequence[Example]) -> recipe.Material:
    encode, manifest = base.encoder.encode, base.manifest
    ours, own = _examples(base.root, usable)
    validation, _ = archive.read(base.root, archive.VALIDATION_FILE)
    texts, names = archive.unpack_wordings((base.root / archive.TRAINING_FILE).read_bytes())
    wordings = Wordings(texts=tuple(texts), vectors=encode(texts), labels=tuple(names))
    real = [e for e in ours if e.sha256 in manifest.training]
    simulated = [e for e in ours if e.sha256 not in manifest.training]
    taught = _taught(ours, own)
    encoded = encode_all([*simulated, *taught], encode)
    weights = balanced(simulated, taught, _line_share(simulated, taught))
    lines = fit_lines(encoded, weights, wordings, labels=_labels(manifest, [*ours, *own]))
    return recipe.Material(
        simulated=tuple(encoded[: len(simulated)]),
        validation=tuple(encode_all(validation, encode)),
        real=tuple(encode_all([*real, *own], encode)),
        wordings=wordings,
        lines=RememberedLines.of(lines),
    )


def _taught(ours: Sequence[Example], own: Sequence[Example]) -> list[Example]:
    """Own incidents with the lines that carry their label."""
    known = {t for e in ours for t in e.texts} | daily(own)
    return [with_presumed_evidence(e, known) for e in own]


def _line_share(simulated: Sequence[Example], taught: Sequence[Example]) -> float:
    """Own wordings count up to ten times a simulated one, and never more than all of those together."""
    return min(0.5, 10.0 * len(taught) / max(len(simulated) + 10.0 * len(taught), 1.0))


def _trained(data: recipe.Material) -> recipe.Trained:
    """Calibrated on the shipped incidents: the line level has read the wordings of all own ones, so that even a fold
    that is blind to one of them would be too sure of it.
    """
    folds = recipe.out_of_fold(data)
    shipped = [i for i in data.real if not _is_own(i.example)]
    return recipe.calibrated(data, recipe.fitted(data, data.real), folds.raw, shipped)


def _compared(base: _Base, head: Head, labels: Sequence[str], usable: Sequence[Example]) -> tuple[Figures, Figures]:
    """The base's head and the new one on the same incidents."""
    frozen = encode_all(archive.read(base.root, archive.FROZEN_FILE)[0], base.encoder.encode)
    own = encode_all(usable, base.encoder.encode)
    before = figures(Head(base.root), base.manifest.labels, frozen, own)
    return before, figures(head, labels, frozen, own)


def _check_parity(head: FittedHead, folder: Path, data: recipe.Material) -> None:
    worst = parity(head, folder, [*data.real, *data.validation])
    if worst > PARITY:
        message = f"the exported head differs from the fitted one by {worst:.1e}; nothing was written"
        raise FsdpClassifyError(message)


def _write(
    base: _Base,
    output: Path,
    data: recipe.Material,
    trained: recipe.Trained,
    head: bytes,
    before: Figures,
    after: Figures,
) -> None:
    simulated, real = [i.example for i in data.simulated], [i.example for i in data.real]
    provenance = Provenance(
        name=output.name,
        version=f"{base.manifest.version}+retrained",
        data_sha256=base.manifest.data_sha256,
        code_sha256=base.manifest.code_sha256,
        training=tuple(e.sha256 for e in real),
        metrics={"parity": PARITY, "frozen_macro_f1": {"before": before.macro_f1, "after": after.macro_f1}},
    )
    manifest = manifest_of(provenance, trained.head.labels, recipe.prior(data), trained.thresholds)
    own = [e for e in real if _is_own(e)]
    weights, wordings = balanced(simulated, real), archive.pack_wordings(data.wordings)
    files = {
        **carried_over(base.root, _KEPT),
        **_readable(base, data),
        **_words(base, own),
        HEAD_FILE: head,
        archive.TRAINING_FILE: archive.pack([*simulated, *real], weights, wordings),
        CARD_FILE: card_bytes(manifest, base.manifest, manifest_sha256(base.root), own, before, after),
    }
    write(output, manifest, files)


def _readable(base: _Base, data: recipe.Material) -> dict[str, bytes]:
    """The cause graph and its catalogue, with a column for what own incidents of each label say."""
    ours = [i.example for i in (*data.simulated, *data.real) if not _is_own(i.example)]
    own = _taught(ours, [i.example for i in data.real if _is_own(i.example)])
    lines = taught(own, [*data.wordings.texts, *{t for e in ours for t in e.texts}])
    shipped = [(base.root / name).read_bytes() for name in (CAUSES_FILE, CATALOGUE_FILE)]
    graph, catalogue = extended(shipped[0], shipped[1], lines, base.encoder.encode)
    return {CAUSES_FILE: graph, CATALOGUE_FILE: catalogue}


def _words(base: _Base, own: Sequence[Example]) -> dict[str, bytes]:
    """The base's words and those of own incidents, whose jargon is no longer unlike the training data."""
    known = load_words(base.root)
    if known is None:
        return {}
    return {WORDS_FILE: words_bytes(known.union(*(words_of(text) for e in own for text in e.texts)))}


def _summary(given: Sequence[Example], usable: Sequence[Example], before: Figures, after: Figures) -> str:
    lines = [
        f"learnt from {len(usable)} of {len(given)} labelled incidents",
        *(
            f"  left out: {e.id} ({'no incident is seen in its logs' if not e.found else e.label})"
            for e in given
            if e not in usable
        ),
        "                                     before   after",
        f"{f'frozen tests, macro-F1 ({before.frozen} causes)':<36} {before.macro_f1:7.3f} {after.macro_f1:7.3f}",
        f"frozen tests, accuracy               {before.accuracy:7.3f} {after.accuracy:7.3f}",
        f"these incidents, first label right   {before.own_right:>4}/{before.own:<3}{after.own_right:>4}/{after.own:<3}"
        " (after: learnt from them)",
    ]
    return "\n".join(lines)
