"""The Python interface: load a bundle once, then classify or score logs, from any thread."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from fsdpclassify.background import Background
from fsdpclassify.decision import MODES
from fsdpclassify.errors import SourceError, UsageError
from fsdpclassify.reading import Findings, find, first_fatal_error
from fsdpclassify.records import Diagnosis, FatalError, Incident, InputRow, InputStatus, ModelInfo, Report
from fsdpclassify.sources import Source, collect, from_text
from fsdpclassify.version import __version__

# The modules of the model are imported where it is loaded: in a thread, while logs are read.
if TYPE_CHECKING:
    from fsdpclassify.diagnosis import Model
    from fsdpclassify.manifest import Manifest

_REASONS = 3
Input = str | bytes | os.PathLike[str] | Iterable[os.PathLike[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What the inputs hold before any model: `incidents` with their ledgers and events."""

    inputs: tuple[InputRow, ...]
    incidents: tuple[Incident, ...]
    first_fatal_error: FatalError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What is known of a bundle once its files were checked."""

    manifest: Manifest
    info: ModelInfo


class Classifier:
    """A loaded bundle. Thread-safe and picklable (a copy loads the same folder again).

    `str` and `bytes` are log text; `os.PathLike` or an iterable of them are paths; nothing is guessed.
    """

    def __init__(self, checked: Callable[[], Checked], model: Callable[[], Model]) -> None:
        self._checked = checked
        self._loaded = model

    @classmethod
    def load(cls, path: os.PathLike[str] | str | None = None, *, wait: bool = True) -> Classifier:
        """Load and check a bundle: the argument, else FSDPCLASSIFY_MODEL, else ours. Raises `BundleError`.

        Without `wait` that goes on in threads while logs are read; what is wrong with the bundle is then raised by
        the first call that asks for its name or its answer.
        """
        from fsdpclassify.bundle import locate

        folder = locate(path)
        checked = Background(partial(_check, folder))
        model = Background(lambda: _load(folder, checked().manifest))
        if wait:
            model()
        return cls(checked, model)

    def __getstate__(self) -> tuple[Checked, Model]:
        """The model travels, the threads that loaded it do not."""
        return self._checked(), self._model

    def __setstate__(self, state: tuple[Checked, Model]) -> None:
        """Take over a model that was loaded when it arrived."""
        checked, model = state
        self._checked, self._loaded = lambda: checked, lambda: model

    @property
    def _model(self) -> Model:
        return self._loaded()

    @property
    def info(self) -> ModelInfo:
        """By what name reports call the bundle."""
        return self._checked().info

    @property
    def labels(self) -> tuple[str, ...]:
        """The bundle's labels in the order of its outputs."""
        return self._checked().manifest.labels

    def classify(
        self,
        x: Input,
        *,
        hung: bool = False,
        mode: str = "balanced",
        mask: str = "secrets",
        max_bytes: int | None = None,
    ) -> Report:
        """Classify log text or paths; `hung` states that the run hangs, so that the end of the log is the detection."""
        return self.classify_sources(_sources(x, max_bytes), hung=hung, mode=mode, mask=mask)

    def classify_paths(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        stdin: BinaryIO | None = None,
        hung: bool = False,
        mode: str = "balanced",
        mask: str = "secrets",
        max_bytes: int | None = None,
    ) -> Report:
        """Classify files, folders and `-`; plain strings are paths here."""
        return self.classify_sources(collect(paths, stdin=stdin, max_bytes=max_bytes), hung=hung, mode=mode, mask=mask)

    def classify_sources(
        self, sources: Sequence[Source], *, hung: bool = False, mode: str = "balanced", mask: str = "secrets"
    ) -> Report:
        """Classify sources that were collected before. Raises `UsageError` for an unknown mode."""
        return self.classify_modes(sources, (mode,), hung=hung, mask=mask)[mode]

    def classify_modes(
        self, sources: Sequence[Source], modes: Sequence[str], *, hung: bool = False, mask: str = "secrets"
    ) -> dict[str, Report]:
        """A report for each mode; the sources are read once."""
        if unknown := [mode for mode in modes if mode not in MODES]:
            message = f"unknown mode {unknown[0]!r}; one of {', '.join(MODES)}"
            raise UsageError(message)
        started = time.perf_counter()
        findings = find(sources, hung=hung)
        return {mode: self._report(findings, mode, mask, started) for mode in modes}

    def _report(self, findings: Findings, mode: str, mask: str, started: float) -> Report:
        from fsdpclassify.masking import mask_report, mask_text

        # Identities get their placeholders once for the whole report; secrets go before lines are cut.
        hide = partial(mask_text, level="none" if mask == "none" else "secrets")
        paths = [row.path for row in findings.inputs]
        diagnoses = self._diagnoses(findings, paths, mode, hide) if findings.incidents else ()
        report = Report(
            tool_version=__version__,
            model=self.info,
            inputs=findings.inputs,
            incidents=diagnoses,
            first_fatal_error=first_fatal_error(findings),
            elapsed_ms=round((time.perf_counter() - started) * 1000),
        )
        return mask_report(report, mask)

    def _diagnoses(
        self, findings: Findings, paths: Sequence[str], mode: str, mask: Callable[[str], str]
    ) -> tuple[Diagnosis, ...]:
        model = self._model
        from fsdpclassify.diagnosis import diagnose

        return tuple(
            diagnose(model, incident, findings.kinds, paths, mode=mode, mask=mask) for incident in findings.incidents
        )

    def score(self, x: Input, *, hung: bool = False) -> dict[str, float]:
        """Probabilities of the last incident by label; `{}` when there is none.

        Raises `SourceError` when nothing could be read: to a caller that acts on scores, a wrong path must not
        look like a healthy log.
        """
        return self._score(find(_sources(x, None), hung=hung))

    def score_paths(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        stdin: BinaryIO | None = None,
        hung: bool = False,
        max_bytes: int | None = None,
    ) -> dict[str, float]:
        """The same for files, folders and `-`."""
        return self._score(find(collect(paths, stdin=stdin, max_bytes=max_bytes), hung=hung))

    def _score(self, findings: Findings) -> dict[str, float]:
        if findings.inputs and all(row.status is InputStatus.UNREADABLE for row in findings.inputs):
            reasons = "; ".join(f"{row.path}: {row.message}" for row in findings.inputs[:_REASONS])
            raise SourceError(f"nothing could be read: {reasons}")
        if not findings.incidents:
            return {}
        model = self._model
        from fsdpclassify.diagnosis import score

        return score(model, findings.incidents[-1], findings.kinds).probabilities

    def inspect(self, x: Input, *, hung: bool = False) -> Inspection:
        """The ledger and events, without the model."""
        return inspect_sources(_sources(x, None), hung=hung)


def _check(folder: Path) -> Checked:
    from fsdpclassify.bundle import manifest_sha256, verify

    manifest = verify(folder)
    info = ModelInfo(name=manifest.name, version=manifest.version, sha256=manifest_sha256(folder))
    return Checked(manifest=manifest, info=info)


def _load(folder: Path, manifest: Manifest) -> Model:
    # First of all: onnxruntime begins with a part of numpy, and another thread must not meet numpy half made.
    import numpy  # noqa: F401

    from fsdpclassify.catalogue import load_catalogue
    from fsdpclassify.causes import CauseScorer
    from fsdpclassify.diagnosis import Model
    from fsdpclassify.encoder import Encoder
    from fsdpclassify.familiar import load_words
    from fsdpclassify.head import Head

    return Model(
        manifest=manifest,
        encoder=Encoder(folder),
        head=Head(folder),
        causes=CauseScorer(folder),
        catalogue=load_catalogue(folder),
        words=load_words(folder),
    )


def inspect_sources(sources: Sequence[Source], *, hung: bool = False) -> Inspection:
    """What the sources hold; needs no bundle."""
    findings = find(sources, hung=hung)
    return Inspection(
        inputs=findings.inputs, incidents=findings.incidents, first_fatal_error=first_fatal_error(findings)
    )


def _sources(x: Input, max_bytes: int | None) -> list[Source]:
    if isinstance(x, (str, bytes)):
        return from_text([x])
    if isinstance(x, os.PathLike):
        return collect([x], max_bytes=max_bytes)
    paths = list(x)
    wrong = [type(p).__name__ for p in paths if not isinstance(p, os.PathLike)]
    if wrong:
        message = f"expected log text or paths, got an iterable with {wrong[0]}; wrap paths in pathlib.Path"
        raise TypeError(message)
    return collect(paths, max_bytes=max_bytes)
