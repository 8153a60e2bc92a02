"""Further loads and ends of a process, for the scripts of the fresh split. Each may speak in the script's voice."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import queue
import resource
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from loads import _join_group

Profile = Mapping[str, Any]
Note = Callable[[str], None]
_BLOCK = 1 << 20


def freeze(profile: Profile, note: Note) -> None:
    """Be frozen by the control group for `seconds`, as when a machine is moved to another host."""
    group = os.environ["RUN_CGROUP"]
    states = f"sleep 0.5; echo FROZEN > {group}/freezer.state; sleep {profile['seconds']}"
    subprocess.Popen(["sh", "-c", f"{states}; echo THAWED > {group}/freezer.state"], start_new_session=True)
    _join_group()
    time.sleep(1.0)


def sum_index(profile: Profile, note: Note) -> None:
    """One long call into native code that keeps the interpreter's lock: no thread of this process runs meanwhile."""
    end = time.monotonic() + float(profile["seconds"])
    while time.monotonic() < end:
        sum(range(1_200_000_000))


def open_debugger(profile: Profile, note: Note) -> None:
    """A breakpoint that somebody left in: the debugger waits for input that does not come."""
    batch = {"rows": 24, "dtype": "float32"}
    breakpoint()
    del batch


def ask_scorer(profile: Profile, note: Note) -> None:
    """Ask a server that answers 503 until `seconds` are over, waiting longer after each answer."""
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_refuse, args=(server,), daemon=True).start()
    end, pause = time.monotonic() + float(profile["seconds"]), 1.0
    while time.monotonic() < end:
        with socket.create_connection(server.getsockname()) as asked:
            asked.sendall(b"POST /score HTTP/1.0\r\n\r\n")
            status = asked.recv(64).split()[1].decode()
        note(f"reward server answered {status}, next try in {pause:.0f} s")
        time.sleep(pause)
        pause = min(2 * pause, 16.0)


def _refuse(server: socket.socket) -> None:
    while True:
        peer, _ = server.accept()
        peer.recv(4096)
        peer.sendall(b"HTTP/1.0 503 Service Unavailable\r\n\r\n")
        peer.close()


def build_extension(profile: Profile, note: Note) -> None:
    """Build a native extension from source, once for each of `kernels`."""
    os.environ["TORCH_EXTENSIONS_DIR"] = os.path.join(os.environ["RUN_SCRATCH"], "extensions")
    os.environ["MAX_JOBS"] = "1"
    from torch.utils.cpp_extension import load_inline

    for name in profile["kernels"]:
        code = f"torch::Tensor {name}(torch::Tensor x) {{ return x.tanh() * x; }}"
        load_inline(name=name, cpp_sources=code, functions=[name], verbose=True)


def swap_in_parts(profile: Profile, note: Note) -> None:
    """Read `parts` files of 4 MB past the page cache from storage that the group's limit makes slow."""
    path = os.path.join(os.environ["RUN_SCRATCH"], "partition.bin")
    with open(path, "wb") as out:
        out.write(b"\1" * (4 * _BLOCK))
        out.flush()
        os.fsync(out.fileno())
    _join_group()
    block = mmap.mmap(-1, _BLOCK)
    for part in range(int(profile["parts"])):
        begin = time.monotonic()
        with open(path, "rb", buffering=0, opener=lambda p, flags: os.open(p, flags | os.O_DIRECT)) as file:
            while file.readinto(block):
                pass
        if profile.get("told"):
            note(f"swap-in of partition {part}/{profile['parts']} from nvme took {time.monotonic() - begin:.1f} s")


def write_past_cache(profile: Profile, note: Note) -> None:
    """Write `megabytes` to slow storage and tell after each eighth how far it is."""
    _join_group()
    path = os.path.join(os.environ["RUN_SCRATCH"], "written.bin")
    out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
    block, total = mmap.mmap(-1, _BLOCK), int(profile["megabytes"])
    for done in range(1, total + 1):
        os.write(out, block)
        if "told" in profile and done % max(1, total // 8) == 0:
            note(str(profile["told"]).format(done=done, total=total))
    os.close(out)


def wait_for_buffers(profile: Profile, note: Note) -> None:
    """Ask for more host buffers than the pool has; a thread that writes to slow storage gives them back."""
    pool = threading.BoundedSemaphore(2)
    for _ in range(2):
        pool.acquire()
    threading.Thread(target=write_past_cache, args=({"megabytes": profile["megabytes"]}, note), daemon=True).start()
    while not pool.acquire(timeout=3.0):
        note("pinned buffer pool is empty (2 of 2 in flight to host), waiting")


def host_adam(profile: Profile, note: Note) -> None:
    """Adam in host memory over states of `millions` numbers, until `seconds` are over."""
    import numpy as np

    count = int(profile["millions"]) * 1_000_000
    grad, first, second = (np.full(count, 0.1, dtype=np.float32) for _ in range(3))
    end = time.monotonic() + float(profile["seconds"])
    while time.monotonic() < end:
        first += 0.1 * (grad - first)
        second += 0.001 * (grad * grad - second)
        grad -= 0.001 * first / (np.sqrt(second) + 1e-8)


def vanish(profile: Profile, note: Note) -> None:
    """End at once with code 0, past every handler."""
    os._exit(0)


def free_twice(profile: Profile, note: Note) -> None:
    """Give the C library a pointer that it did not hand out: it aborts."""
    ctypes.CDLL(None).free(ctypes.c_void_p(8 + id(profile)))


def touch_truncated(profile: Profile, note: Note) -> None:
    """Read a mapped file behind the end that it has now."""
    path = os.path.join(os.environ["RUN_SCRATCH"], "cache.bin")
    with open(path, "w+b") as file:
        file.truncate(8 * _BLOCK)
        mapped = mmap.mmap(file.fileno(), 8 * _BLOCK)
        file.truncate(0)
        note(str(profile.get("told", ""))) if profile.get("told") else None
        mapped[4 * _BLOCK]


def open_everything(profile: Profile, note: Note) -> None:
    """Open shard files until the process may open no more."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    kept = []
    for number in range(400):
        kept.append(open(os.path.join(os.environ["RUN_SCRATCH"], f"shard-{number:05d}.idx"), "w"))


def parse_line(profile: Profile, note: Note) -> None:
    """Parse a line of data that was cut off."""
    json.loads('{"text": "An unfinished', strict=True)


def remount(profile: Profile, note: Note) -> None:
    """Save to a file system that has turned read-only."""
    import torch

    target = os.environ["RUN_SMALL"]
    subprocess.run(["mount", "-o", "remount,ro", target], check=True)
    torch.save({"state": torch.zeros(8)}, os.path.join(target, "step.pt"))


def lose_feeder(profile: Profile, note: Note) -> None:
    """Wait for a thread that feeds batches and has died of an exception of its own."""
    batches: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_feed, args=(batches, bool(profile.get("told"))), name="prefetch", daemon=True).start()
    batches.get()


def _feed(batches: queue.Queue[bytes], told: bool) -> None:
    try:
        batches.put({"rows": b""}["columns"])
    except KeyError:
        if told:
            raise


_ALL = (
    *(freeze, sum_index, open_debugger, ask_scorer, build_extension, swap_in_parts, write_past_cache),
    *(wait_for_buffers, host_adam, vanish, free_twice, touch_truncated, open_everything, parse_line, remount),
    lose_feeder,
)
STRAINS: dict[str, Callable[[Profile, Note], None]] = {strain.__name__: strain for strain in _ALL}
