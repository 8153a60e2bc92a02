"""Healthy lines in the dialect of an incident: its launcher's prefixes, its kind of stamp, its trainer's step lines."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from fsdpclassify.parsing import read_lines
from fsdpclassify.records import Line, RawLine

Voice = Callable[[int, str], str]

#: Where the launcher's prefix ends: what torch itself prints in front of its own messages is no trainer's.
_INNER = re.compile(r"\[rank\d+\]:|\[[EWIFV]\d* |[EWIF]\d{4} \d\d:|\[\d+\] NCCL|[\w.-]+:\d+:\d+ \[")
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?")
_CLOCK = re.compile(r"(?<!\d)\d\d:\d\d:\d\d(?:[.,]\d+)?")
_PACE_S = 0.5


def _hf(step: int, stamp: str) -> str:
    if step % 3:
        loss, epoch = 2 + step % 7 / 10, step % 9
        return f"{{'loss': {loss}, 'grad_norm': 1.{step % 10}, 'learning_rate': 2e-05, 'epoch': 0.{epoch}}}"
    done, spent = step * 100 // 60_000, f"{step // 3600:02d}:{step // 60 % 60:02d}"
    return f" {done:2d}%|{'█' * (done // 10):<10}| {step}/60000 [{spent}<9:59:00, 1.0s/it]"


def _megatron(step: int, stamp: str) -> str:
    digit = step % 10
    return (
        f" [{stamp}] iteration {step:8d}/  600000 | consumed samples: {step * 64:12d} "
        f"| elapsed time per iteration (ms): 10{digit}.4 | learning rate: 2.9E-04 | global batch size:    64 "
        f"| lm loss: 2.1{digit}E+00 | loss scale: 1.0 |"
    )


def _deepspeed(step: int, stamp: str) -> str:
    return (
        f"[{stamp},017] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0, lr=[2e-05], mom=[(0.9, 0.95)]"
    )


def _titan(step: int, stamp: str) -> str:
    return (
        f"[titan] {stamp},123 - root - INFO - step: {step:2d}  loss:  4.{step % 10}123  grad_norm:  0.4321  "
        f"memory: 61.22GiB(77.12%)  tps: 7,1{step % 10}3  tflops: 381.2  mfu: 38.1%"
    )


def _verl(step: int, stamp: str) -> str:
    return (
        f"step:{step} - actor/pg_loss:0.00{step % 10} - actor/grad_norm:0.2{step % 10} - timing_s/step:41.{step % 10}"
    )


def _serving(step: int, stamp: str) -> str:
    return f'INFO:     10.0.0.{step % 9}:5{step % 10}001 - "POST /v1/completions HTTP/1.1" 200 OK'


def _plain(step: int, stamp: str) -> str:
    return f"{stamp} INFO trainer: step {step} loss 2.{step % 10} lr 1.9e-04 time 0.5{step % 10}"


def _bare(step: int, stamp: str) -> str:
    return f"step {step} loss 2.{step % 10} lr 1.9e-04"


_VOICES: tuple[tuple[str, Voice], ...] = (
    ("inference", _serving), ("titan", _titan), ("verl", _verl), ("Megatron", _megatron), ("DeepSpeed", _deepspeed),
    ("HF", _hf), ("accelerate", _hf), ("Accelerate", _hf), ("TRL", _hf),
)  # fmt: skip


def healthy_front(folder: Path, file: Path, count: int) -> bytes:
    """`count` lines that the run of `folder` could have printed into `file` before what stands there."""
    raws = [RawLine(source=0, number=n, text=t) for n, t in enumerate(_frames(file), 1)]
    lines, _ = read_lines(raws)
    framework = json.loads((folder / "incident.json").read_text()).get("framework") or ""
    voice = next((v for name, v in _VOICES if name in framework), None)
    first = next((line.time for line in lines if line.stamped and line.time is not None), None)
    voice = voice or (_bare if first is None else _plain)
    prefixes = sorted({found for line in lines if (found := _prefix(line)).strip()}) or [""]
    made = _made(voice, prefixes, first, count, random.Random(0))
    return "".join(f"{text}\n" for text in made).encode()


def _frames(file: Path) -> list[str]:
    return file.read_bytes().decode("utf-8", "replace").replace("\r", "\n").split("\n")


def _prefix(line: Line) -> str:
    """What the launcher put in front of the line: the part that a healthy line of the same process has as well."""
    whole = line.text[: len(line.text) - len(line.body)] if line.text.endswith(line.body) else ""
    inner = _INNER.search(whole)
    return whole[: inner.start()] if inner else whole


def _made(voice: Voice, prefixes: list[str], first: float | None, count: int, rng: random.Random) -> Iterator[str]:
    begin = (86_400.0 * 20_000 if first is None else first) - (count + 20) * _PACE_S
    for step in range(1, count + 1):
        moment = datetime.fromtimestamp(begin + step * _PACE_S, tz=UTC)
        stamp = f"{moment:%Y-%m-%d %H:%M:%S}"
        prefix = _ISO.sub(lambda m: f"{stamp[:10]}{m[0][10]}{stamp[11:]}{m[0][19:]}", rng.choice(prefixes))  # noqa: B023
        prefix = prefix if _ISO.search(prefix) else _CLOCK.sub(stamp[11:], prefix)
        yield prefix + voice(step, stamp)
