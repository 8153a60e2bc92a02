"""Running a candidate's graph, and what running it costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fsdpclassify.encoder import ENCODER_FILE, MAX_TOKENS, TOKENIZER_FILE
from train.encoders.distil import Floats

_BATCH = 256


class Runner:
    """A graph and its tokenizer on the CPU. `marks`: with the tokens that a transformer sets around a line.

    `batch` lines of similar length are run together; 1 makes every vector independent of other lines whatever
    the graph does.
    """

    def __init__(self, folder: Path, *, marks: bool = False, batch: int = _BATCH, threads: int = 1) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            str(folder / ENCODER_FILE), options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._marks, self._batch = marks, batch

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text."""
        return [e.ids for e in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=self._marks)]

    def encode(self, texts: Sequence[str]) -> Floats:
        """Unit vectors `[len(texts), d]` of at least one text."""
        tokens = self.tokens(texts)
        order = sorted(range(len(texts)), key=lambda i: len(tokens[i]))
        rows: dict[int, Floats] = {}
        for start in range(0, len(order), self._batch):
            part = order[start : start + self._batch]
            rows.update(zip(part, self._run([tokens[i] for i in part]), strict=True))
        return np.stack([rows[i] for i in range(len(texts))])

    def _run(self, tokens: Sequence[Sequence[int]]) -> Floats:
        shape = len(tokens), max(1, max(map(len, tokens)))
        ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, found in enumerate(tokens):
            ids[row, : len(found)] = found
            mask[row, : len(found)] = 1
        (vectors,) = self._session.run(["vectors"], {"input_ids": ids, "attention_mask": mask})
        return np.asarray(vectors, np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Bytes of graph and tokenizer; seconds to load and encode one line; seconds for 100 lines by threads."""

    bytes: int
    cold: float
    warm: dict[int, float]


def cost(folder: Path, lines: Sequence[str], open_runner: Callable[[int], Runner], repeats: int = 5) -> Cost:
    """Measure a candidate on `lines`; the least of several tries, since other work shares the machine."""
    return Cost(
        bytes=sum((folder / name).stat().st_size for name in (ENCODER_FILE, TOKENIZER_FILE)),
        cold=min(_timed(lambda: open_runner(1).encode(lines[:1])) for _ in range(repeats)),
        warm={threads: _warm(open_runner(threads), lines, repeats) for threads in (1, 2)},
    )


def _warm(runner: Runner, lines: Sequence[str], repeats: int) -> float:
    runner.encode(lines)
    return min(_timed(lambda: runner.encode(lines)) for _ in range(repeats))


def _timed(action: Callable[[], object]) -> float:
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def batch_difference(alone: Runner, together: Runner, lines: Sequence[str]) -> float:
    """The largest difference of any coordinate between lines encoded alone and in one batch with all others."""
    return float(np.abs(np.vstack([alone.encode([line]) for line in lines]) - together.encode(lines)).max())
