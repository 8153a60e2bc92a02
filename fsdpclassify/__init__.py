"""Why did a distributed training run die of a collective timeout? Classifies its logs on this machine.

    import fsdpclassify as fc
    fc.score(pathlib.Path("logs"))            # {"straggler": 0.03, …} of the last incident
    clf = fc.Classifier.load()
    clf.classify(log_text).incidents[-1].verdict

Importing this package loads neither numpy nor onnxruntime; they come with the first classifier.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from fsdpclassify.version import __version__

if TYPE_CHECKING:
    from fsdpclassify.classifier import Classifier, Input
    from fsdpclassify.records import Report

__all__ = ["Classifier", "Report", "__version__", "classify", "score"]

_lock = threading.Lock()
_default: list[Classifier] = []


def __getattr__(name: str) -> object:
    """Load the public classes on first use."""
    if name == "Classifier":
        from fsdpclassify.classifier import Classifier

        return Classifier
    if name == "Report":
        from fsdpclassify.records import Report

        return Report
    raise AttributeError(f"module 'fsdpclassify' has no attribute {name!r}")


def _shared() -> Classifier:
    with _lock:
        if not _default:
            from fsdpclassify.classifier import Classifier

            _default.append(Classifier.load())
        return _default[0]


def score(x: Input, *, hung: bool = False) -> dict[str, float]:
    """Label probabilities of the last incident in `x` with the default bundle; `{}` when there is none.

    `str` and `bytes` are log text, `os.PathLike` or an iterable of them are paths.
    """
    return _shared().score(x, hung=hung)


def classify(x: Input, *, hung: bool = False, mode: str = "balanced") -> Report:
    """The whole report for `x` with the default bundle."""
    return _shared().classify(x, hung=hung, mode=mode)
