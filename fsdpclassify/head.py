"""The head: line vectors, line facts and the ledger vector become label probabilities and line evidence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsdpclassify.errors import BundleError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HEAD_FILE = "head.onnx"
INPUTS = ("lines", "line_facts", "ledger")
OUTPUTS = ("probabilities", "line_evidence")


class Head:
    """Runs `head.onnx` of a bundle folder on one thread; safe to share between threads, and to pickle."""

    def __init__(self, bundle_dir: Path | str) -> None:
        self._dir = Path(bundle_dir)
        self._session = load_session(self._dir / HEAD_FILE)

    def __getstate__(self) -> Path:
        """Only the folder travels."""
        return self._dir

    def __setstate__(self, state: Path) -> None:
        """Load again from the same folder."""
        self._dir = state
        self._session = load_session(state / HEAD_FILE)

    def run(
        self, vectors: NDArray[np.float32], facts: NDArray[np.float32], ledger: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """`vectors [n, d]`, `facts [n, k]`, `ledger [m]` -> `probabilities [c]`, `line_evidence [n, c]`; n may be 0."""
        out = self._session.run(list(OUTPUTS), {"lines": vectors, "line_facts": facts, "ledger": ledger})
        return out[0], out[1]


def load_session(path: Path) -> Any:  # noqa: ANN401 - onnxruntime has no usable types
    """An inference session on one thread. Raises `BundleError` when the graph cannot be loaded."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        message = f"{path}: the graph cannot be loaded ({type(error).__name__}); install the bundle again"
        raise BundleError(message) from error


def facts_array(rows: Sequence[Sequence[float]], width: int) -> NDArray[np.float32]:
    """`rows` as float32 `[n, width]`, also for no rows."""
    import numpy as np

    return np.asarray(rows, dtype=np.float32).reshape(len(rows), width)
