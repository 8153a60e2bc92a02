"""Line vectors: the shipped encoder, and a tiny one made here, behave as the stage promises."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from fsdpclassify.encoder import MAX_TOKENS, Encoder
from fsdpclassify.errors import BundleError
from fsdpclassify.templating import SLOTS, template

DEFAULT = Path(__file__).resolve().parents[1] / "models" / "default"
LINES = [
    "Saving checkpoint to <path>",
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=<num>, OpType=ALLREDUCE, NumelIn=1)",
    "DataLoader worker (pid <num>) is killed by signal: Killed.",
    "NET/IB: Got completion from peer <ip> with status=12 opcode=<num> vendor err 129",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate <num> GiB.",
    "evaluation started",
]

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(DEFAULT)


def test_vectors_have_length_one_and_the_stated_shape(encoder: Encoder) -> None:
    vectors = encoder.encode(LINES)
    assert vectors.shape == (len(LINES), encoder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_no_lines_give_an_empty_matrix(encoder: Encoder) -> None:
    assert encoder.encode([]).shape == (0, encoder.dimension)


def test_a_line_without_known_tokens_is_zero_and_not_nan(encoder: Encoder) -> None:
    assert not encoder.encode(["", " "]).any()
    assert np.isfinite(encoder.encode(["\U0001f3d6 \u0000 \ue000"])).all()


def test_the_other_lines_of_a_batch_change_nothing() -> None:
    alone = np.concatenate([Encoder(DEFAULT).encode([line]) for line in LINES])
    crowd = [*LINES, "word " * 300, "x", *(f"filler number {i}" for i in range(600))]
    together = Encoder(DEFAULT).encode(crowd)[: len(LINES)]
    assert (alone == together).all()


def test_repeated_and_cached_lines_give_the_same_rows(encoder: Encoder) -> None:
    first = encoder.encode(LINES)
    again = encoder.encode([*reversed(LINES), *LINES])
    assert (again[: len(LINES)][::-1] == first).all()
    assert (again[len(LINES) :] == first).all()


def test_only_the_first_tokens_count(encoder: Encoder) -> None:
    head = "timeout " * MAX_TOKENS
    assert (encoder.encode([head]) == encoder.encode([head + "checkpoint " * 50])).all()


def test_threads_share_one_encoder() -> None:
    shared = Encoder(DEFAULT)
    expected = Encoder(DEFAULT).encode(LINES)
    with ThreadPoolExecutor(8) as pool:
        for vectors in pool.map(lambda _: shared.encode(LINES), range(64)):
            assert (vectors == expected).all()


def test_a_pickled_encoder_gives_the_same_vectors(encoder: Encoder) -> None:
    assert (pickle.loads(pickle.dumps(encoder)).encode(LINES) == encoder.encode(LINES)).all()


def test_every_slot_is_one_token() -> None:
    added = json.loads((DEFAULT / "tokenizer.json").read_text(encoding="utf-8"))["added_tokens"]
    assert set(SLOTS) <= {token["content"] for token in added}


def test_related_lines_are_nearer_than_unrelated_ones(encoder: Encoder) -> None:
    save, also, killed = encoder.encode(
        [
            template("rank 0: writing the checkpoint to /mnt/ckpt/step_40"),
            template("Saving checkpoint at step 40 ..."),
            template("Out of memory: Killed process 8834 (python3)"),
        ]
    )
    assert save @ also > save @ killed + 0.2


def test_the_files_are_small_enough_to_ship() -> None:
    assert sum((DEFAULT / name).stat().st_size for name in ("encoder.onnx", "tokenizer.json")) < 13_000_000


@pytest.mark.parametrize("damaged", ["encoder.onnx", "tokenizer.json"])
def test_a_damaged_bundle_is_refused(tmp_path: Path, damaged: str) -> None:
    for name in ("encoder.onnx", "tokenizer.json"):
        data = (DEFAULT / name).read_bytes()
        (tmp_path / name).write_bytes(data[:1000] if name == damaged else data)
    with pytest.raises(BundleError, match="cannot be loaded"):
        Encoder(tmp_path)
    with pytest.raises(BundleError, match="cannot be loaded"):
        Encoder(tmp_path / "none")


def test_importing_the_stage_loads_no_runtime() -> None:
    code = "import sys, fsdpclassify.encoder\nprint(sorted({'numpy', 'onnxruntime', 'tokenizers'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
