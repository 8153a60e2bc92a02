"""How a run's script speaks: the head of a line, the form of a step line, the words around its phases."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random

from train.simulate import clock
from train.simulate.gloo.phrases import usable

_MAIN_HEADS = (
    "{comma} - {name} - INFO - {text}",
    "{comma} INFO {name}: {text}",
    "[{comma}][{name}][INFO] - {text}",
    "INFO:{name}:{text}",
    "{text}",
    "{text}",
    "[{plain}] {text}",
    "{hour} {text}",
)
_RANK_HEADS = (
    "[{plain}] [rank {rank}] {text}",
    "[rank {rank}] {text}",
    "rank {rank}: {text}",
    "{plain} rank={rank} {text}",
    "[Rank {rank}] {comma} {text}",
    "{comma} - {name} - rank {rank} - INFO - {text}",
    "({rank}) {hour} {text}",
    "ts={iso} level=info rank={rank} {text}",
    "json",
    "[{plain}] {text}",
)
_STEPS = (
    "step {step}/{total} loss {loss:.4f} lr {lr:.1e} step_time {t:.3f} s",
    "step {step} loss {loss:.4f} data {data:.3f}s step {t:.3f}s rows {rows}",
    "step={step} loss={loss:.4f} dt={ms:.1f}ms tok/s={rate:,.0f}",
    "{{'loss': {loss:.4f}, 'learning_rate': {lr:.6f}, 'epoch': {epoch:.2f}}}",
    "Epoch: [{whole}][{step:>4}/{total}]\tTime {t:6.3f} ({avg:6.3f})\tData {data:6.3f}\tLoss {loss:.4e}",
    "iter {step}: loss {loss:.4f}, time {ms:.2f}ms",
    "it {step} | loss {loss:.3f} | data {data:.2f}s fwd {fwd:.2f}s bwd {bwd:.2f}s | mem {mem} MB",
    "train step {step}: {rows} samples, {tokens} tokens, loss {loss:.3f}, {t:.2f}s",
    "[{step}/{total}] loss: {loss:.3f} ({rate:.0f} samples/s, data_time {data:.3f}, iter_time {t:.3f})",
    "epoch {whole} batch {step} loss {loss:.5f}",
    "bar",
)
_EVAL = (
    ("running evaluation at step {step}", "eval loss {loss:.4f}"),
    ("***** Running Evaluation *****", "{{'eval_loss': {loss:.4f}}}"),
    ("evaluating ...", "evaluation done, accuracy {loss:.3f}"),
    ("validation, step {step}", "validation score {loss:.4f}"),
    ("eval begin", "eval end: perplexity {loss:.2f}"),
)
_SAVE = (
    ("saving checkpoint step {step} to checkpoints/step_{step}", "checkpoint step {step} saved"),
    ("Saving model checkpoint to output/checkpoint-{step}", "Model weights saved in output/checkpoint-{step}"),
    ("save state at {step}", "state saved"),
    ("writing snapshot {step}", "snapshot {step} written (0.1s)"),
)
_HELLO = (
    "starting, world size {world}, wrapper {wrapper}",
    "hello from {rank} of {world}",
    "***** Running training *****",
    "init done: rank {rank}/{world} backend={backend}",
    "process group ready ({backend}, {world} ranks)",
    "seed set to 42",
)
_READY = (
    "model ready, {n} parameters",
    "model built",
    "train set: {n} samples",
    "  Total optimization steps = {total}",
)
#: Columns of the amount of work; most runs print none, and where all ranks have the same they tell nothing.
LOADS = ("rows", "tokens", "seq_len", "params", "mem_mb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """`everyone`: all ranks print steps and phases, else rank 0 alone. `stream`: stdout or stderr.

    `apart`: the time of a step does not hold that of its data, so others count what a slow loader costs them.
    """

    head: str
    step: str
    everyone: bool
    stream: str
    name: str
    eval_words: tuple[str, str]
    save_words: tuple[str, str]
    hello: str
    ready: str
    load: str
    apart: bool

    @property
    def ranked(self) -> bool:
        """Whether each line tells its rank."""
        return "{rank}" in self.head or self.head == "json"

    def wrap(self, rank: int, time: float, text: str) -> str:
        """A text as this script prints it."""
        if self.head == "json":
            row = {"ts": clock.iso(time), "level": "INFO", "rank": rank, "message": text}
            return json.dumps(row, ensure_ascii=False)
        return self.head.format(
            comma=clock.comma(time),
            plain=clock.plain(time),
            hour=clock.hour(time),
            iso=clock.iso(time),
            rank=rank,
            name=self.name,
            text=text,
        )


def pick_voice(rng: Random, train: bool, everyone: bool) -> Voice:
    """Draw a voice; some wordings are kept from training."""
    steps = usable(_STEPS[:-1] if everyone else _STEPS, train)
    words = [pair for pair in _EVAL if pair[0] in usable(tuple(pair[0] for pair in _EVAL), train)]
    return Voice(
        head=rng.choice(usable(_RANK_HEADS if everyone else _MAIN_HEADS, train)),
        step=rng.choice(steps),
        everyone=everyone,
        stream=rng.choice(("stdout", "stdout", "stderr")),
        name=rng.choice(("train", "pretrain", "trainer", "__main__", "loop", "engine")),
        eval_words=rng.choice(words),
        save_words=rng.choice(_SAVE),
        hello=rng.choice(_HELLO),
        ready=rng.choice(_READY),
        load=rng.choice(LOADS) if rng.random() < 0.2 else "",
        apart=rng.random() < 0.5,
    )


def step_text(voice: Voice, rng: Random, *, step: int, total: int, spent: float, data: float, load: float) -> str:
    """A step line: `spent` seconds in all, `data` of them for data, `load` times the usual amount of work."""
    work = max(0.001, spent - (0.0 if voice.apart else data))
    rows = max(1, round(24 * load))
    values = {
        "step": step,
        "total": total,
        "loss": max(0.01, 2.4 * 0.97**step * rng.uniform(0.9, 1.1)),
        "lr": 1e-3,
        "t": spent,
        "ms": spent * 1000,
        "avg": spent * rng.uniform(0.9, 1.0),
        "data": data,
        "fwd": work * 0.4,
        "bwd": work * 0.6,
        "rate": rows * 32 / spent,
        "rows": rows,
        "tokens": rows * 512,
        "mem": round(900 * (0.6 + 0.4 * load)),
        "epoch": step / total,
        "whole": step * 3 // total,
    }
    if voice.step == "bar":
        return _bar(step, total, spent)
    text = voice.step.format(**values)
    extra = {"tokens": rows * 512, "seq_len": 512 * rows // 24, "params": 16865 * rows // 24, "mem_mb": values["mem"]}
    return f"{text} {voice.load} {extra.get(voice.load, rows)}" if voice.load else text


def _bar(step: int, total: int, spent: float) -> str:
    cells = "█" * (10 * step // total)
    done, left = int(step * spent), int((total - step) * spent)
    pace = f"{1 / spent:5.2f}it/s" if spent < 1 else f"{spent:5.2f}s/it"
    return (
        f"{100 * step // total:3d}%|{cells:<10}| {step}/{total} "
        f"[{done // 60:02d}:{done % 60:02d}<{left // 60:02d}:{left % 60:02d}, {pace}]"
    )
