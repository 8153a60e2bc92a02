"""How the scripts of the fresh split begin: process group, watchdog thread, and the conditions of this rank."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import torch
import torch.distributed as dist
from actions import ACTIONS
from hostio import Host
from strains import STRAINS
from traces import keep_facts, watch

#: Matrices of the work of one row: a row costs about a millisecond of one processor.
_WIDTH = 160


def limit() -> timedelta:
    """The timeout of collectives in this run."""
    return timedelta(seconds=float(os.environ["RUN_TIMEOUT"]))


def conditions(rank: int, note: Callable[[str], None]) -> Host:
    """The conditions of `rank`; `note` prints as the script prints."""
    for name, strain in STRAINS.items():
        ACTIONS[name] = partial(strain, note=note)
    torch.manual_seed(int(os.environ.get("RUN_SEED", "0")))
    return Host(rank, note)


def join(host: Host) -> None:
    """Make the default group (gloo) and start what watches it."""
    host.at("arrive", host.first)
    dist.init_process_group("gloo", timeout=limit())
    keep_facts(host.rank)
    watch(host.rank, limit().total_seconds())
    host.at("start", host.first)


def toil(rows: int) -> None:
    """The arithmetic of `rows` rows, done for real."""
    x = torch.ones(_WIDTH, _WIDTH)
    for _ in range(rows):
        for _ in range(3):
            x = torch.tanh(x @ x)


def share(host: Host, step: int) -> float:
    """By how much the work of this rank exceeds a fair share in `step`: 1 where the split is even.

    Under `lopsided` it doubles every `every` steps from 1 up to `most`.
    """
    if not host.mine or host.profile.get("do") != "lopsided":
        return 1.0
    return float(min(2 ** (step / float(host.profile["every"])), host.profile["most"]))


def steps(usual: int) -> int:
    """How many steps the run has."""
    return int(os.environ.get("RUN_STEPS", str(usual)))
