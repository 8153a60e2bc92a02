"""The Python interface: load a bundle once, then classify or score logs, from any thread."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

from fsdpclassify.bundle import locate, manifest_sha256, verify
from fsdpclassify.catalogue import load_catalogue
from fsdpclassify.causes import CauseScorer
from fsdpclassify.decision import MODES
from fsdpclassify.diagnosis import Model, diagnose, score
from fsdpclassify.encoder import Encoder
from fsdpclassify.errors import SourceError, UsageError
from fsdpclassify.head import Head
from fsdpclassify.masking import mask_report, mask_text
from fsdpclassify.reading import Findings, find, first_fatal_error
from fsdpclassify.records import FatalError, Incident, InputRow, InputStatus, ModelInfo, Report
from fsdpclassify.sources import Source, collect, from_text
from fsdpclassify.version import __version__

_REASONS = 3
Input = str | bytes | os.PathLike[str] | Iterable[os.PathLike[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What the inputs hold before any model: `incidents` with their ledgers and events."""

    inputs: tuple[InputRow, ...]
    incidents: tuple[Incident, ...]
    first_fatal_error: FatalError | None


class Classifier:
    """A loaded bundle. Thread-safe and picklable (a copy loads the same folder again).

    `str` and `bytes` are log text; `os.PathLike` or an iterable of them are paths; nothing is guessed.
    """

    def __init__(self, model: Model, info: ModelInfo) -> None:
        self._model = model
        self.info = info

    @classmethod
    def load(cls, path: os.PathLike[str] | str | None = None) -> Classifier:
        """Load and check a bundle: the argument, else FSDPCLASSIFY_MODEL, else ours. Raises `BundleError`."""
        folder = locate(path)
        manifest = verify(folder)
        model = Model(
            manifest=manifest,
            encoder=Encoder(folder),
            head=Head(folder),
            causes=CauseScorer(folder),
            catalogue=load_catalogue(folder),
        )
        return cls(model, ModelInfo(name=manifest.name, version=manifest.version, sha256=manifest_sha256(folder)))

    @property
    def labels(self) -> tuple[str, ...]:
        """The bundle's labels in the order of its outputs."""
        return self._model.manifest.labels

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
        if mode not in MODES:
            message = f"unknown mode {mode!r}; one of {', '.join(MODES)}"
            raise UsageError(message)
        started = time.perf_counter()
        # Identities get their placeholders once for the whole report; secrets go before lines are cut.
        hide = partial(mask_text, level="none" if mask == "none" else "secrets")
        findings = find(sources, hung=hung)
        paths = [row.path for row in findings.inputs]
        diagnoses = tuple(
            diagnose(self._model, incident, findings.kinds, paths, mode=mode, mask=hide)
            for incident in findings.incidents
        )
        report = Report(
            tool_version=__version__,
            model=self.info,
            inputs=findings.inputs,
            incidents=diagnoses,
            first_fatal_error=first_fatal_error(findings),
            elapsed_ms=round((time.perf_counter() - started) * 1000),
        )
        return mask_report(report, mask)

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
        return score(self._model, findings.incidents[-1], findings.kinds).probabilities

    def inspect(self, x: Input, *, hung: bool = False) -> Inspection:
        """The ledger and events, without the model."""
        return inspect_sources(_sources(x, None), hung=hung)


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
