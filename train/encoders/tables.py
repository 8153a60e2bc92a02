"""Static candidates: tables of token vectors, distilled, contrasted or taught. Needs the extra `encoder`."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from train.encoders.distil import (
    Floats,
    Teacher,
    frequency_weights,
    principal_axes,
    regress,
    rescaled,
    token_ids,
    training_texts,
    unit,
    with_slots,
)
from train.encoders.graphs import Pool, exact, extended
from train.encoders.minilm import codes, pairs, seeded
from train.encoders.wordings import Lines, teaching
from train.inventory import load

_WIDTH, _EPOCHS = 256, 12
_BUCKETS = 16384
#: The length of the random signs with which pairs begin; rows of tokens have a mean length of one.
SIGNS = 0.3
#: How many teachings the released table is the mean of: each alone is as much its order of lines as what they say.
ROUNDS = 4
#: How sharply the layers on top tell unit vectors apart, and how fast they learn.
_SCALE, _TOP_RATE = 20.0, 5e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Static:
    """Pools that are joined, and the tokenizer (as JSON) whose ids choose their rows."""

    pools: tuple[Pool, ...]
    tokenizer: dict[str, Any]


class Tuned(Teacher):
    """A tuned model from a folder as the teacher of a table."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        from sentence_transformers import SentenceTransformer

        self._model = SentenceTransformer(str(folder), device="cpu")


def distilled(folder: Path | None, data: Path) -> Static:
    """As `train.encoders.distil` makes the released one, from the model in `folder` or MiniLM itself."""
    teacher = Tuned(folder) if folder else Teacher()
    texts = training_texts(data)
    sentences = teacher.sentences(texts)
    axes = principal_axes(sentences, _WIDTH)
    start = rescaled((teacher.tokens() @ axes) * frequency_weights(teacher.size())[:, None])
    tokenizer, table = with_slots(teacher.tokenizer, start)
    table = regress(table, token_ids(tokenizer, texts), unit(sentences @ axes), _EPOCHS)
    table[[token["id"] for token in tokenizer["added_tokens"] if token["special"]]] = 0
    return Static(pools=(Pool(table=table),), tokenizer=tokenizer)


def chosen(data: Path) -> Static:
    """What the comparison recommends: the distilled table and pairs with random signs, taught causes and labels."""
    return taught(distilled(None, data), teaching(load(data)), signs=SIGNS, rounds=ROUNDS)


def contrasted(start: Static, lines: Lines, *, scratch: bool = False, steps: int = 150, batch: int = 96) -> Static:
    """sentence-transformers' `StaticEmbedding` under its ranking loss, from the table or from small random rows."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    seeded(threads=1)
    table = start.pools[0].table
    if scratch:
        table = np.random.default_rng(0).normal(0, table.std(), table.shape).astype(np.float32)
    body = StaticEmbedding(Tokenizer.from_str(json.dumps(start.tokenizer)), embedding_weights=table)
    model = SentenceTransformer(modules=[body], device="cpu")
    loss = MultipleNegativesRankingLoss(model)
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3 if scratch else 1e-3)
    for pair in pairs(lines, steps, batch):
        sides = [_bags(token_ids(start.tokenizer, list(side))) for side in zip(*pair, strict=True)]
        value = loss([{"input_ids": ids, "offsets": offsets} for ids, offsets in sides], None)
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
    learned: Floats = body.embedding.weight.detach().numpy().copy()
    return Static(pools=(Pool(table=learned),), tokenizer=start.tokenizer)


def taught(
    start: Static,
    lines: Lines,
    *,
    buckets: int = _BUCKETS,
    epochs: int = 20,
    hold: float = 1.0,
    rate: float = 1e-3,
    signs: float = 0.0,
    rounds: int = 1,
) -> Static:
    """Rows of tokens (from the table) and of pairs, moved until causes and labels can be told from sums.

    Pairs begin with random signs of length `signs`, so that pairs which no line teaches tell lines apart too. `hold`
    weighs how much a sum must still point where it pointed at the start; tokens are left out at random, so that no
    single one carries a line. Rows that no line can choose stay as they were. With several `rounds` the result is the
    mean of tables that differ in the order of the lines and in what is left out.
    """
    table = start.pools[0].table
    tokens = [ids or [0] for ids in token_ids(start.tokenizer, lines.texts)]
    rows = np.vstack([table, _signs((buckets, table.shape[1])) * signs]).astype(np.float32)
    plans = [_plan(tokens, len(table), buckets, epochs, seed) for seed in range(rounds)]
    first = Pool(table=rows, buckets=buckets)
    learnt = [_learnt(first, tokens, lines, plan, hold, rate) for plan in plans]
    mean = np.mean(learnt, axis=0, dtype=np.float64).astype(np.float32)
    return Static(pools=(Pool(table=mean, buckets=buckets),), tokenizer=start.tokenizer)


def _learnt(first: Pool, tokens: list[list[int]], lines: Lines, plan: Plan, hold: float, rate: float) -> Floats:
    """The rows after one teaching; layers on top begin alike in each, so that the rows of several have a mean."""
    import torch

    seeded(threads=1)
    wanted = torch.from_numpy(exact([first], tokens))
    used = np.unique(np.concatenate([row for _, kept in plan for row in kept]))
    weights = torch.from_numpy(first.table[used]).requires_grad_(True)
    tops = _Tops(lines, first.table.shape[1])
    groups = [{"params": [weights], "lr": rate}, {"params": tops.parameters(), "lr": _TOP_RATE}]
    optimiser = torch.optim.Adam(groups)
    for chosen_lines, kept in plan:
        sums = _unit_sums(weights, [np.searchsorted(used, row).tolist() for row in kept])
        value = tops.loss(sums, chosen_lines) + hold * (1 - (sums * wanted[chosen_lines]).sum(dim=1)).mean()
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
    rows = first.table.copy()
    rows[used] = weights.detach().numpy()
    return rows


class _Tops:
    """Two layers on top of unit vectors `[n, width]`, thrown away after teaching: one for groups, one for labels."""

    def __init__(self, lines: Lines, width: int) -> None:
        import torch

        self._targets = [torch.from_numpy(codes(names)) for names in (lines.groups, lines.labels)]
        self._layers = [torch.nn.Linear(width, int(target.max()) + 1) for target in self._targets]

    def parameters(self) -> list[Any]:
        """What is learnt."""
        return [p for layer in self._layers for p in layer.parameters()]

    def loss(self, vectors: Any, chosen: list[int]) -> Any:  # noqa: ANN401
        """How badly the vectors of the chosen lines tell their groups and labels."""
        import torch

        entropy = torch.nn.functional.cross_entropy
        pairs_of = zip(self._layers, self._targets, strict=True)
        return torch.stack([entropy(_SCALE * layer(vectors), target[chosen]) for layer, target in pairs_of]).sum()


def _unit_sums(weights: Any, rows: Sequence[Sequence[int]]) -> Any:  # noqa: ANN401
    import torch

    ids, offsets = _bags(rows)
    return torch.nn.functional.normalize(torch.nn.functional.embedding_bag(ids, weights, offsets, mode="sum"), dim=1)


#: For every step the chosen lines and the rows that what is left of each chooses.
Plan = list[tuple[list[int], list[list[int]]]]


def _plan(tokens: list[list[int]], size: int, buckets: int, epochs: int, seed: int) -> Plan:
    rng = random.Random(seed)
    return [
        (chosen, [extended(_thinned(tokens[i], rng), size, buckets) for i in chosen])
        for _ in range(epochs)
        for chosen in _shuffled(len(tokens), rng)
    ]


def _signs(shape: tuple[int, int]) -> Floats:
    """Rows of random signs and length one."""
    return np.random.default_rng(0).choice(np.array([-1.0, 1.0], np.float32), shape) / np.float32(np.sqrt(shape[1]))


def _shuffled(size: int, rng: random.Random, batch: int = 256) -> list[list[int]]:
    """Every number below `size` once, in batches in random order."""
    order = list(range(size))
    rng.shuffle(order)
    return [order[begin : begin + batch] for begin in range(0, size, batch)]


def with_random_pairs(start: Static, width: int = 256) -> Static:
    """The table joined with a pool in which every token and every bucket of pairs has random signs: nothing is learnt,
    but lines that share rare words or pairs of words are near each other.
    """
    rng = np.random.default_rng(0)
    size = start.pools[0].vocabulary
    signs = rng.choice(np.array([-1.0, 1.0], np.float32), (size + _BUCKETS, width))
    signs[:size] *= frequency_weights(size)[:, None]
    signs[size:] *= 0.5
    silent = ~start.pools[0].table.any(axis=1)
    signs[:size][silent] = 0
    return joined(start, Static(pools=(Pool(table=signs, buckets=_BUCKETS),), tokenizer=start.tokenizer))


def joined(first: Static, second: Static) -> Static:
    """The pools of both side by side; both use the tokenizer of the first."""
    return Static(pools=(*first.pools, *second.pools), tokenizer=first.tokenizer)


def _thinned(ids: Sequence[int], rng: random.Random, share: float = 0.15) -> list[int]:
    kept = [i for i in ids if rng.random() >= share]
    return kept or list(ids)


def _bags(rows: Sequence[Sequence[int]]) -> tuple[Any, Any]:
    """All ids in one row, and where each line begins."""
    import torch

    lengths = [len(row) for row in rows]
    return torch.tensor([i for row in rows for i in row]), torch.tensor([0, *np.cumsum(lengths[:-1])])
