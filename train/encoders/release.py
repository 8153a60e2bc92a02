"""Build the encoder of the bundle: rows of tokens and of pairs of neighbours, taught what the inventory's lines mean.

Output: `encoder.onnx` and `tokenizer.json` in the bundle's folder. Needs the extra `encoder`, and no network.

A line is short, so a sum of vectors keeps most of what a transformer says about it at a fiftieth of the time, and
`python -m train encoders` shows that it loses nothing in verdicts. Rows begin where MiniLM puts tokens
(`train.encoders.distil`) and are moved until causes and labels of the training families can be told from the sums
(`train.encoders.tables.taught`). They are int8 with an integer factor each: every partial sum is then an integer
below 2**24, exact in float32 in any order, so neither padding nor the other lines of a batch can change a vector.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path

from fsdpclassify.encoder import ENCODER_FILE, TOKENIZER_FILE
from train import dataset
from train.encoders import candidates, tables


def main(argv: Sequence[str] | None = None) -> int:
    """Write the encoder into `--out`; the same weights and inventory give the same bytes."""
    parser = argparse.ArgumentParser(prog="python -m train encoder", description=__doc__)
    parser.add_argument("--out", type=Path, default=dataset.BUNDLE)
    parser.add_argument("--data", type=Path, default=dataset.DATA)
    options = parser.parse_args(argv)
    candidates.write_graph(tables.chosen(options.data), options.out)
    for name in (ENCODER_FILE, TOKENIZER_FILE):
        data = (options.out / name).read_bytes()
        print(f"{hashlib.sha256(data).hexdigest()}  {options.out / name}  {len(data):,} bytes")
    return 0
