"""Limits around a process: control groups (version 1) and small file systems. Needs root; says so when refused."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


@contextmanager
def cpu_group(share: float) -> Iterator[Path]:
    """A group that gets `share` of one processor. OSError where the kernel refuses."""
    with _group("cpu", {"cpu.cfs_period_us": "1000000", "cpu.cfs_quota_us": str(int(share * 1_000_000))}) as path:
        yield path


@contextmanager
def memory_group(size: int) -> Iterator[Path]:
    """A group that may hold `size` bytes; the kernel ends what takes more."""
    with _group("memory", {"memory.limit_in_bytes": str(size)}) as path:
        yield path


@contextmanager
def storage_group(folder: Path, speed: int) -> Iterator[Path]:
    """A group that reads and writes `speed` bytes a second at most on the device that holds `folder`."""
    device = folder.stat().st_dev
    limit = f"{os.major(device)}:{os.minor(device)} {speed}"
    names = ("blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device")
    with _group("blkio", dict.fromkeys(names, limit)) as path:
        yield path


@contextmanager
def freezer_group() -> Iterator[Path]:
    """A group whose processes can be frozen and thawed."""
    with _group("freezer", {"freezer.state": "THAWED"}) as path:
        yield path
        (path / "freezer.state").write_text("THAWED")


@contextmanager
def _group(kind: str, settings: dict[str, str]) -> Iterator[Path]:
    path = _ROOT / kind / "fsdplab"
    path.mkdir(exist_ok=True)
    try:
        for name, value in settings.items():
            (path / name).write_text(value)
        yield path
    finally:
        # Fails while a dying process is still in it; an empty group left behind does no harm.
        try:
            path.rmdir()
        except OSError:
            pass


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[Path]:
    """A memory file system of `size` at `path`."""
    path.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=False)
