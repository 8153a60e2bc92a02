"""The encoder stage: templates of lines become vectors. Input: texts; output: float32 `[n, d]`.

A line's vector never depends on the other lines of a batch, so vectors may be cached and compared
between runs. `onnxruntime` and `tokenizers` are loaded on first use, never at import.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsdpclassify.errors import BundleError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ENCODER_FILE = "encoder.onnx"
TOKENIZER_FILE = "tokenizer.json"
MAX_TOKENS = 128

_CACHED_TEXTS = 32768
_BATCH = 256


class Encoder:
    """Encodes texts with the bundle in a folder; safe to share between threads, and to pickle.

    Raises `BundleError` when the graph or the tokenizer cannot be loaded.
    """

    def __init__(self, bundle_dir: Path | str) -> None:
        self._dir = Path(bundle_dir)
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._cache: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._session, self._tokenizer, self.dimension = _load(self._dir)

    def __getstate__(self) -> Path:
        """Only the folder travels: sessions and locks do not."""
        return self._dir

    def __setstate__(self, state: Path) -> None:
        """Load again from the same folder."""
        self._dir = state
        self._reset()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors `[len(texts), dimension]`; a text without any known token gets zeros."""
        import numpy as np

        known: dict[str, NDArray[np.float32]] = {}
        with self._lock:
            for text in texts:
                if text not in known and (vector := self._cache.get(text)) is not None:
                    self._cache.move_to_end(text)
                    known[text] = vector
        unknown = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(unknown, self._compute(unknown), strict=True))
        self._remember({text: known[text] for text in unknown})
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return np.stack([known[text] for text in texts])

    def _remember(self, vectors: dict[str, NDArray[np.float32]]) -> None:
        with self._lock:
            self._cache.update(vectors)
            while len(self._cache) > _CACHED_TEXTS:
                self._cache.popitem(last=False)

    def _compute(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Vectors of distinct texts; batched by length, which saves padding and changes no result."""
        tokens = [found.ids for found in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]
        order = sorted(range(len(texts)), key=lambda i: len(tokens[i]))
        vectors: dict[int, NDArray[np.float32]] = {}
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            vectors.update(zip(batch, self._run([tokens[i] for i in batch]), strict=True))
        return [vectors[i] for i in range(len(texts))]

    def _run(self, tokens: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        import numpy as np

        shape = len(tokens), max(1, max(map(len, tokens)))
        ids, mask = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        for row, found in enumerate(tokens):
            ids[row, : len(found)] = found
            mask[row, : len(found)] = 1
        (vectors,) = self._session.run(["vectors"], {"input_ids": ids, "attention_mask": mask})
        result: NDArray[np.float32] = vectors
        return result


def _load(folder: Path) -> tuple[Any, Any, int]:
    """Return the session, the tokenizer and the width of the vectors."""
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    # One thread: lines are short, and a scheduler that scores many jobs brings its own threads.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(folder / ENCODER_FILE), options, providers=["CPUExecutionProvider"])
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        dimension = int(session.get_outputs()[0].shape[1])
    except Exception as error:  # both libraries raise bare Exception for a damaged file
        raise BundleError(
            f"{folder}: the encoder cannot be loaded ({error}); install the bundle again or name another with --model"
        ) from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return session, tokenizer, dimension
