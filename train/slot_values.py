"""What the slots of the line inventory print when the context does not say: plausible values, neutral names.

Every function draws from the given `random.Random` only. Durations are in seconds, moments in seconds since
the epoch (read as UTC, so that nothing depends on the machine).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import TypeVar

T = TypeVar("T", int, float)

_RANGE = re.compile(r"(-?\d+(?:\.\d+)?)(?:-(-?\d+(?:\.\d+)?))?")

#: Slots that stamp a moment, with their `strftime` form.
STAMPS = {"date": "%Y-%m-%d", "clock": "%H:%M:%S", "iso": "%Y-%m-%dT%H:%M:%S", "syslog": "%b %d %H:%M:%S"}

#: Duration slots: lowest and highest value in seconds, or as a share of the timeout when `share` is true.
DURATIONS = {
    "long": (0.3, 2.0, True),
    "medium": (10.0, 90.0, False),
    "short": (0.05, 5.0, False),
    "limit": (1.0, 1.0, True),
}

_MODULES = (
    "model.layers.{n}",
    "transformer.h.{n}.attn",
    "module.layers.{n}.mlp",
    "backbone.blocks.{n}",
    "encoder.layer.{n}.attention",
    "lm_head",
    "model.embed_tokens",
    "vision_tower.layers.{n}",
)
_PARAMS = (
    "model.layers.{n}.self_attn.q_proj.weight",
    "transformer.h.{n}.mlp.c_fc.weight",
    "module.layers.{n}.mlp.down_proj.weight",
    "lm_head.weight",
    "model.embed_tokens.weight",
    "backbone.blocks.{n}.norm1.bias",
)
_OPS = (
    "_ALLGATHER_BASE",
    "_REDUCE_SCATTER_BASE",
    "ALLREDUCE",
    "ALLGATHER",
    "BROADCAST",
    "COALESCED",
    "ALLTOALL_BASE",
)
_HOSTS = ("node{n:02d}", "gpu-{n:02d}", "worker-{n}", "trainer-{n}", "cn{n:04d}")
_FILES = (
    "train.py",
    "shard_{n:05d}.tar",
    "part-{n:04d}.parquet",
    "trainer.py",
    "data/loader.py",
    "train_{n:03d}.jsonl",
    "model-{n:05d}-of-00064.safetensors",
    "index_{n}.npy",
)
_PATHS = (
    "/data/run/ckpt/step_{n}",
    "/mnt/shared/exp/checkpoint-{n}",
    "/scratch/job/out/global_step{n}",
    "/workspace/output/epoch_{n}",
    "/data/corpus/shard-{n}",
    "/checkpoints/iter_{n:07d}",
)
_EXCEPTIONS = (
    "ValueError: expected {n} values",
    "KeyError: 'input_ids'",
    "IndexError: list index out of range",
    "OSError: [Errno 5] Input/output error",
    "RuntimeError: shape mismatch",
    "ConnectionError: connection aborted",
    "TimeoutError: timed out",
    "AssertionError",
)
_WORDS = ("train", "alpha", "default", "text", "main", "actor", "policy", "baseline", "stage1", "sample")
_DATASETS = (
    "web-corpus",
    "c4",
    "wikitext",
    "pile-subset",
    "alpaca",
    "code-mix",
    "news-v2",
    "math-sft",
    "images-1m",
)
_MODELS = (
    "llama-7b",
    "gpt-13b",
    "qwen-32b",
    "mixtral-8x7b",
    "t5-xl",
    "vit-h",
    "bert-large",
    "dense-70b",
    "moe-16b",
)
_SIZES = (1, 2, 4, 8, 128, 512, 1024, 2048, 4096, 8192, 11008, 32000)
_DTYPES = ("torch.bfloat16", "torch.float16", "torch.float32", "bfloat16", "float32", "torch.int64")


def _named(patterns: tuple[str, ...], high: int) -> Callable[[Random], str]:
    return lambda rng: rng.choice(patterns).format(n=rng.randrange(high))


def _number(low: int, high: int) -> Callable[[Random], str]:
    return lambda rng: str(rng.randint(low, high))


def _hex(rng: Random) -> str:
    return f"{rng.getrandbits(64):016x}"[: rng.choice((8, 12, 16))]


def _uuid(rng: Random) -> str:
    text = f"{rng.getrandbits(128):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _shape(rng: Random) -> str:
    sizes = [rng.choice(_SIZES) for _ in range(rng.randint(1, 3))]
    return f"[{', '.join(map(str, sizes))}]"


def _ip(rng: Random) -> str:
    return f"10.{rng.randrange(4)}.{rng.randrange(16)}.{rng.randint(2, 250)}"


#: Slots without an argument whose value the context may give.
PLAIN: dict[str, Callable[[Random], str]] = {
    "pct": lambda rng: str(rng.randint(1, 99)),
    "rank": _number(0, 63),
    "other_rank": _number(0, 63),
    "local_rank": _number(0, 7),
    "world": lambda rng: str(rng.choice((2, 4, 8, 16, 32, 64, 128, 256))),
    "gpu": _number(0, 7),
    "host": _named(_HOSTS, 64),
    "ip": _ip,
    "port": _number(20000, 60999),
    "pid": _number(900, 299999),
    "hex": _hex,
    "addr": lambda rng: f"0x{rng.getrandbits(47) | 1 << 46:012x}",
    "path": _named(_PATHS, 20000),
    "file": _named(_FILES, 1200),
    "module": _named(_MODULES, 80),
    "param": _named(_PARAMS, 80),
    "step": _number(1, 60000),
    "epoch": _number(0, 30),
    "loss": lambda rng: f"{rng.uniform(0.2, 9.9):.4f}",
    "lr": lambda rng: f"{rng.uniform(1, 9.9):.{rng.choice((1, 3))}f}e-{rng.randint(4, 6):02d}",
    "bytes": lambda rng: str(rng.randrange(1 << 16, 1 << rng.randint(18, 38))),
    "gib": lambda rng: f"{rng.uniform(0.2, 180):.{rng.choice((1, 2))}f}",
    "mib": lambda rng: f"{rng.uniform(2, 40000):.2f}",
    "shape": _shape,
    "dtype": lambda rng: rng.choice(_DTYPES),
    "op": lambda rng: rng.choice(_OPS),
    "dev": lambda rng: f"mlx5_{rng.randrange(12)}",
    "nic": lambda rng: rng.choice(("eth0", "ib0", "ens3", "bond0", "enp1s0f0", "eno1", "eth1")),
    "bdf": lambda rng: f"0000:{rng.randrange(1, 250):02x}:00.{rng.randrange(2)}",
    "uuid": _uuid,
    "uptime": lambda rng: f"{rng.randrange(900, 9000000)}.{rng.randrange(10**6):06d}",
    "exception": _named(_EXCEPTIONS, 512),
    "word": lambda rng: rng.choice(_WORDS),
    "user": lambda rng: rng.choice(("user", "ml", "trainer", "svc-train", "research")),
    "dataset": lambda rng: rng.choice(_DATASETS),
    "model": lambda rng: rng.choice(_MODELS),
    "url": lambda rng: f"https://storage.example/{rng.choice(_DATASETS)}/part-{rng.randrange(900):04d}",
    "count": _number(8, 5000),
}


def int_range(argument: str | None) -> tuple[int, int]:
    """`1-64` or `-5--1` as two integers (`7` alone is both); without one 1 to 9999. Raises `ValueError`."""
    low, high = _ends(argument or "1-9999")
    return _ordered(int(low), int(high))


def float_range(argument: str | None) -> tuple[float, float, int]:
    """`0.5-9.5` as two floats and the digits to print (at least one); without an argument 0.10 to 99.90."""
    low, high = _ends(argument or "0.10-99.90")
    digits = max(len(text.partition(".")[2]) for text in (low, high))
    return *_ordered(float(low), float(high)), max(digits, 1)


def _ends(argument: str) -> tuple[str, str]:
    found = _RANGE.fullmatch(argument)
    if not found:
        raise ValueError("a range is two numbers with a dash between")
    return found[1], found[2] or found[1]


def _ordered(low: T, high: T) -> tuple[T, T]:
    if low > high:
        raise ValueError("the range runs downwards")
    return low, high


def moment(rng: Random) -> float:
    """A moment in 2025 or 2026."""
    return 1735689600.0 + rng.randrange(60_000_000)


def stamp(name: str, time: float) -> str:
    """The moment in the form of one of `STAMPS`."""
    return datetime.fromtimestamp(time, UTC).strftime(STAMPS[name])


def seconds(name: str, timeout_s: float, rng: Random) -> float:
    """Draw a duration of one of `DURATIONS`."""
    low, high, share = DURATIONS[name]
    drawn = rng.uniform(low, high)
    return drawn * timeout_s if share else drawn


def duration(value: float, unit: str | None, rng: Random, *, whole: bool = False) -> str:
    """Print seconds in the unit `s` (default), `ms`, `min` or `hms`. Raises `ValueError`."""
    if unit == "hms":
        minutes, rest = divmod(int(value), 60)
        return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
    scale = {None: 1.0, "s": 1.0, "ms": 1000.0, "min": 1 / 60}.get(unit)
    if scale is None:
        raise ValueError("the unit is s, ms, min or hms")
    digits = 0 if whole else rng.choice((1, 1, 2, 3))
    return f"{value * scale:.{digits}f}"


def uneven(name: str, base: object, rng: Random) -> str:
    """An integer around `base` (default 10 to 2000): `fewer` below it, `more` at least twice as large."""
    middle = base if isinstance(base, int) and base > 0 else rng.randint(10, 2000)
    return str(middle if name == "fewer" else int(middle * rng.uniform(2.0, 9.0)))


def loads(name: str, count: int, rng: Random) -> str:
    """`count` integers as a list prints them: about equal (`evens`), or with one that is many times the others."""
    middle = 10 ** rng.uniform(1.5, 5.0)
    values = [int(middle * rng.uniform(0.75, 1.3)) + 1 for _ in range(count)]
    if name == "loads":
        values[rng.randrange(count)] = int(middle * rng.uniform(3.0, 60.0))
    return ", ".join(str(value) for value in values)
