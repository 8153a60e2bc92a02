"""Writes the logs of the speed budgets: one interleaved 64-rank log, or a tree of per-rank files.

    python tests/benchmarks/make_log.py OUT --bytes 300000000 --match 0.02 --incident end
    python tests/benchmarks/make_log.py OUT --bytes 1000000000 --files 1024

Output depends on the arguments alone. `--match` is the share of lines that the pattern
`error|exception|timeout|failed` (case ignored) finds; `--incident` is `start` (at 10 %), `end` or
`none`. At least 30 % of the lines are step lines.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

STEP_SHARE = 0.4
RANKS = 64
LATE_RANK = 17
_EPOCH = datetime(2026, 3, 5, 1, 0, 0)
_BLOCK_LINES = 20_000

_MATCHING = (
    "WARNING storage: read of shard-{a:05d}.tar failed, attempt {b} of 5",
    "INFO http: 504 gateway timeout from metrics sink, kept {a} points",
    "DEBUG NCCL_IB_TIMEOUT=22 TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=600 chunk {a}",
    "WARNING tokenizer: exception while normalising document {a}, skipped",
    "INFO eval: error rate 0.{a:05d} on split {b}",
)
_QUIET = (
    "INFO data: shard-{a:05d}.tar opened, {b} workers, prefetch 4",
    "INFO memory: allocated {b}.{a:05d} GiB reserved 61.40 GiB",
    "DEBUG fsdp: unshard layers.{b} param_numel={a} reshard_after_forward=True",
    "INFO checkpoint: async copy of step {a} has {b} parts left",
)


def main() -> None:
    """Read the arguments and write the log or the tree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--bytes", type=int, default=300_000_000, dest="size")
    parser.add_argument("--match", type=float, default=0.02)
    parser.add_argument("--incident", choices=("start", "end", "none"), default="end")
    parser.add_argument("--files", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.files:
        write_tree(args.out, args.files, args.size, args.match, args.incident, args.seed)
    else:
        write_log(args.out, args.size, args.match, args.incident, args.seed)


def write_log(out: Path, size: int, match: float, incident: str, seed: int) -> None:
    """One file of about `size` bytes to which all ranks write in turn."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("wb") as file:
        _fill(file, list(range(RANKS)), size, match, incident, random.Random(seed))


def write_tree(out: Path, files: int, size: int, match: float, incident: str, seed: int) -> None:
    """`files` files `rank<k>.log` in `out` of about `size` bytes in all."""
    out.mkdir(parents=True, exist_ok=True)
    for rank in range(files):
        with (out / f"rank{rank}.log").open("wb") as file:
            _fill(file, [rank], size // files, match, incident, random.Random(seed + rank))


def _fill(file: BinaryIO, ranks: list[int], size: int, match: float, incident: str, rng: random.Random) -> None:
    lines = _lines(ranks, match, rng)
    at = {"start": size // 10, "end": size, "none": -1}[incident]
    written, told = 0, incident == "none"
    while written < size:
        block = b"".join(next(lines) for _ in range(min(_BLOCK_LINES, 1 + (size - written) // 200)))
        written += file.write(block)
        if not told and written >= at:
            told = True
            for line in _incident(ranks):
                written += file.write(line)


def _lines(ranks: list[int], match: float, rng: random.Random) -> Iterator[bytes]:
    """Endless log lines; bodies are drawn from prepared pools, for a gigabyte must not take an hour."""
    step, pools = 0, _pools(match, rng)
    while True:
        stamp = (_EPOCH + timedelta(seconds=step * 0.9)).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
        for rank in ranks:
            head = f"{stamp} [rank{rank}]: ".encode()
            for kind in rng.choice(pools):
                yield head + (kind or _step_line(step, rng)) + b"\n"
        step += 1


def _pools(match: float, rng: random.Random) -> list[list[bytes]]:
    """Short runs of bodies; an empty body stands for a step line."""
    return [[_body(match, rng) for _ in range(4)] for _ in range(2_000)]


def _body(match: float, rng: random.Random) -> bytes:
    draw = rng.random()
    if draw < STEP_SHARE:
        return b""
    texts = _MATCHING if draw < STEP_SHARE + match else _QUIET
    return rng.choice(texts).format(a=rng.randrange(100_000), b=rng.randrange(64)).encode()


def _step_line(step: int, rng: random.Random) -> bytes:
    loss, ms = 2 + 8 / (step + 4), 800 + rng.randrange(200)
    return (
        f"INFO train: step {step} loss {loss:.5f} grad_norm 0.{ms} lr 3.0e-04 "
        f"step_time_ms {ms} tokens_per_s {16_384_000 // ms} mem 61.4GiB"
    ).encode()


def _incident(ranks: list[int]) -> Iterator[bytes]:
    for rank in ranks:
        if rank == LATE_RANK:
            continue
        head = f"[rank{rank}]:[E305 04:11:09.{778120334 + rank} ProcessGroupNCCL.cpp:632] "
        group = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}] "
        work = (
            "WorkNCCL(SeqNum=23413, OpType=_ALLGATHER_BASE, NumelIn=3145728, NumelOut=201326592, "
            "Timeout(ms)=600000) ran for 600041 milliseconds before timing out."
        )
        yield f"{head}[Rank {rank}] Watchdog caught collective operation timeout: {work}\n".encode()
        status = "PG status: last enqueued work: 23415, last completed work: 23412"
        yield f"{head}{group} failure detected by watchdog at work sequence id: 23413 {status}\n".encode()
    for rank in ranks:
        if rank != LATE_RANK:
            yield f"[rank{rank}]: torch.distributed.DistBackendError: taking the process down\n".encode()


if __name__ == "__main__":
    main()
