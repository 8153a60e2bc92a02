"""What can happen to a process at a point of its loop, by the name that `RUN_PROFILE` gives it."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from loads import LOADS

Profile = Mapping[str, Any]
_KINDS = {"ValueError": ValueError, "RuntimeError": RuntimeError, "KeyError": KeyError, "OSError": OSError}


def wait(profile: Profile) -> None:
    """Take `seconds`."""
    time.sleep(float(profile["seconds"]))


def trickle(profile: Profile) -> None:
    """Write to a file at the pace of a device that lets 1 MB through every `pace` seconds."""
    end = time.monotonic() + float(profile["seconds"])
    with open(os.path.join(os.environ["RUN_SCRATCH"], "swap.bin"), "wb") as out:
        while time.monotonic() < end:
            out.write(b"\0" * (1 << 20))
            out.flush()
            os.fsync(out.fileno())
            time.sleep(float(profile.get("pace", 0.5)))
            out.seek(0)


def open_shard(profile: Profile) -> None:
    """Open a pipe that nobody writes to: a mount that does not answer."""
    path = os.path.join(os.environ["RUN_SCRATCH"], "shard.pipe")
    if not os.path.exists(path):
        os.mkfifo(path)
    with open(path, "rb") as pipe:
        pipe.read(1)


def collect(profile: Profile) -> None:
    """Let the collector walk many objects, again and again, for `seconds`."""
    ring: list[Any] = [[] for _ in range(400_000)]
    for item in ring:
        item.append(ring)
    end = time.monotonic() + float(profile["seconds"])
    while time.monotonic() < end:
        gc.collect()


def check(profile: Profile) -> None:
    """Raise what a reader or a check of the script raises."""
    raise _KINDS[str(profile["error"])](str(profile["message"]))


def leave(profile: Profile) -> None:
    """End the process as a script does that has decided so."""
    sys.exit(int(profile["code"]))


def end(profile: Profile) -> None:
    """Receive a signal."""
    os.kill(os.getpid(), getattr(signal, str(profile["signal"])))


def stack_rows(profile: Profile) -> None:
    """Ask for more memory than there is."""
    import resource

    import torch

    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), used + (64 << 20)))
    torch.empty(1 << 30).fill_(1.0)


def cache_rows(profile: Profile) -> None:
    """Take memory until the limit of the group is reached and the kernel ends the process."""
    with open(os.path.join(os.environ["RUN_CGROUP"], "cgroup.procs"), "w") as group:
        group.write(str(os.getpid()))
    kept = []
    while True:
        kept.append(bytearray(os.urandom(1 << 20)) * 16)


def starve(profile: Profile) -> None:
    """Go on under the processor limit of the group, with work that takes a blink without it."""
    with open(os.path.join(os.environ["RUN_CGROUP"], "cgroup.procs"), "w") as group:
        group.write(str(os.getpid()))
    end = time.process_time() + 0.06
    while time.process_time() < end:
        pass


def save_state(profile: Profile) -> None:
    """Write a checkpoint to a file system that is too small for it."""
    import torch

    torch.save({"state": torch.zeros(4 << 20)}, os.path.join(os.environ["RUN_SMALL"], "model.pt"))


def read_items(profile: Profile) -> None:
    """Read through a loader whose worker is killed."""
    import torch
    from torch.utils.data import DataLoader

    class Items(torch.utils.data.Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 64

        def __getitem__(self, index: int) -> torch.Tensor:
            if index == 24:
                os.kill(os.getpid(), signal.SIGKILL)
            return torch.zeros(4)

    for _ in DataLoader(Items(), batch_size=4, num_workers=1):
        pass


def nothing(profile: Profile) -> None:
    """Kinds that act elsewhere in the loop."""


_ALL = (
    *(wait, trickle, open_shard, collect, check, leave, end),
    *(stack_rows, cache_rows, starve, save_state, read_items, nothing),
)
ACTIONS: dict[str, Callable[[Profile], None]] = {action.__name__: action for action in _ALL} | LOADS
