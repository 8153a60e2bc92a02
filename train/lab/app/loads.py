"""Real loads of a host: throttled storage, memory-mapped weights, long sequences, compiling, a lock, a slow server."""

from __future__ import annotations

import mmap
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

Profile = Mapping[str, Any]
_BLOCK = 1 << 20


def _join_group() -> None:
    """Come under the limits that the run has for this process."""
    if group := os.environ.get("RUN_CGROUP"):
        with open(os.path.join(group, "cgroup.procs"), "w") as procs:
            procs.write(str(os.getpid()))


def page_out(profile: Profile) -> None:
    """Write `megabytes` past the page cache to a device that the group's limit makes slow."""
    _join_group()
    path = os.path.join(os.environ["RUN_SCRATCH"], "states.bin")
    out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
    block = mmap.mmap(-1, _BLOCK)  # aligned, as writing past the cache asks for
    for _ in range(int(profile["megabytes"])):
        os.write(out, block)
    os.close(out)


def map_in(profile: Profile) -> None:
    """Touch all pages of a memory-mapped weight file of `megabytes`, none of which is in memory."""
    import torch

    count = int(profile["megabytes"]) * _BLOCK // 4
    path = os.path.join(os.environ["RUN_SCRATCH"], "weights.bin")
    torch.zeros(count).numpy().tofile(path)
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    _join_group()
    torch.from_file(path, size=count).sum()


def attend(profile: Profile) -> None:
    """Attention over a sequence of `length`, layer after layer, until `seconds` are over."""
    import torch

    x = torch.randn(1, 2, int(profile["length"]), 32)
    end = time.monotonic() + float(profile["seconds"])
    while time.monotonic() < end:
        x = torch.nn.functional.scaled_dot_product_attention(x, x, x)


def compile_shapes(profile: Profile) -> None:
    """Compile a function anew for one shape after another until `seconds` are over."""
    import torch

    def head(x: torch.Tensor) -> torch.Tensor:
        for _ in range(12):
            x = torch.nn.functional.gelu(x @ x.T @ x).softmax(-1)
        return x

    end = time.monotonic() + float(profile["seconds"])
    width = 16
    while time.monotonic() < end:
        torch.compile(head, dynamic=False)(torch.randn(width, width))
        width += 8


def wait_for_lock(profile: Profile) -> None:
    """Ask for the lock of a cache that another process holds for `seconds`."""
    import fcntl

    path = os.path.join(os.environ["RUN_SCRATCH"], "cache.lock")
    subprocess.Popen(["flock", path, "sleep", str(profile["seconds"])], start_new_session=True)
    time.sleep(0.5)
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def download(profile: Profile) -> None:
    """Fetch an object from a server that sends a few bytes a second."""
    import urllib.request

    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_drip, args=(server, float(profile["seconds"])), daemon=True).start()
    with urllib.request.urlopen(f"http://127.0.0.1:{server.getsockname()[1]}/shard") as answer:
        answer.read()


def _drip(server: socket.socket, seconds: float) -> None:
    """Serve one request: 4 bytes each half second, for `seconds`."""
    peer, _ = server.accept()
    peer.recv(4096)
    peer.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    for _ in range(int(2 * seconds)):
        peer.sendall(b"\0" * 4)
        time.sleep(0.5)
    peer.close()


LOADS: dict[str, Callable[[Profile], None]] = {
    load.__name__: load for load in (page_out, map_in, attend, compile_shapes, wait_for_lock, download)
}
