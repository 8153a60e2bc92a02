"""A script that leaves the loop to a library's trainer: its bars, its dictionaries, its callbacks."""

from __future__ import annotations

import os

import torch
from hostio import Host
from outset import conditions, join, limit, share, steps, toil
from torch.utils.data import Dataset
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

RANK = int(os.environ["RANK"])
Row = dict[str, torch.Tensor]


class Texts(Dataset[Row]):
    """Rows of random tokens."""

    def __init__(self, count: int, length: int) -> None:
        self.count, self.length = count, length

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Row:
        ids = torch.randint(0, 64, (self.length,))
        return {"input_ids": ids, "labels": ids}


class Collator:
    """Stacks rows; this is where the input of a rank is slow or broken."""

    def __init__(self, host: Host) -> None:
        self.host, self.calls = host, 0

    def __call__(self, rows: list[Row]) -> Row:
        """The batch of some rows."""
        self.calls += 1
        self.host.at("read", self.calls)
        return {key: torch.stack([row[key] for row in rows]) for key in rows[0]}


class Conditions(TrainerCallback):  # type: ignore[misc]
    """What the host does at the points that the trainer offers."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def on_step_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        """Before forward."""
        step = state.global_step + 1
        toil(int(6 * share(self.host, step)))
        self.host.at("prepare", step)
        if self.host.is_now("stop_here", step):
            control.should_training_stop = True

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        """After a checkpoint."""
        self.host.at("save", state.global_step)


def model() -> LlamaForCausalLM:
    """A small language model with random weights."""
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=64, max_position_embeddings=64, **sizes))


def main() -> None:
    """Train."""
    host = conditions(RANK, lambda text: print(text, flush=True))
    join(host)  # on a processor the library would leave the timeout at its default
    arguments = TrainingArguments(
        output_dir=os.path.join(os.environ["RUN_SCRATCH"], "sft"),
        max_steps=steps(40),
        per_device_train_batch_size=4,
        logging_steps=2,
        save_steps=16,
        save_total_limit=1,
        use_cpu=True,
        ddp_backend="gloo",
        ddp_timeout=limit().seconds,
        dataloader_drop_last=True,
        report_to=[],
    )
    trainer = Trainer(
        model=model(),
        args=arguments,
        train_dataset=Texts(4096, 24),
        data_collator=Collator(host),
        callbacks=[Conditions(host)],
    )
    trainer.train()
    host.at("close", host.first)


if __name__ == "__main__":
    main()
