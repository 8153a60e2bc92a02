"""Healthy answers of the host's own tools: memory, swap, disks, load, pressure, the kernel's log of a clean start.

A `Table` draws from a random source and gives the command and the lines that it printed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

Answer = tuple[str, tuple[str, ...]]
Table = Callable[[Random], Answer]


def _vmstat(rng: Random) -> Answer:
    free, cache = rng.randrange(2 * 10**8, 9 * 10**8), rng.randrange(10**7, 9 * 10**7)
    rows = [
        "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----",
        " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st",
    ]
    for _ in range(rng.randrange(2, 8)):
        user, system = rng.randrange(1, 45), rng.randrange(0, 6)
        rows.append(
            f"{rng.randrange(1, 30):2d}  0      0 {free + rng.randrange(9000)} {rng.randrange(2000, 90000)} {cache}"
            f"    0    0 {rng.randrange(0, 40):5d} {rng.randrange(0, 600):5d} {rng.randrange(2000, 60000)}"
            f" {rng.randrange(2000, 90000)} {user:2d} {system:2d} {100 - user - system:2d}  0  0"
        )
    return rng.choice(("vmstat 1 5", "vmstat 1", "vmstat -w 2")), tuple(rows)


def _free(rng: Random) -> Answer:
    total = rng.choice((503, 755, 1007, 2015))
    used, cache = int(total * rng.uniform(0.03, 0.2)), int(total * rng.uniform(0.02, 0.3))
    swap = rng.choice((0, 0, 7, 31))
    return rng.choice(("free -g", "free -h -g")), (
        "               total        used        free      shared  buff/cache   available",
        f"Mem:     {total:12d}{used:12d}{total - used - cache:12d}{rng.randrange(9):12d}{cache:12d}{total - used:12d}",
        f"Swap:    {swap:12d}{0:12d}{swap:12d}",
    )


def _dmesg(rng: Random) -> Answer:
    card = rng.choice(("mlx5_core 0000:18:00.0", "mlx5_core 0000:9a:00.0"))
    at = rng.uniform(2, 9)
    lines = [
        f"Linux version 5.{rng.randrange(4, 20)}.0-{rng.randrange(20, 190)}-generic",
        f"Memory: {rng.randrange(10**8, 2 * 10**9)}K/{2 * 10**9 + rng.randrange(9**8)}K available",
        f"{card} {rng.choice(('ens1f0np0', 'ibs3', 'eth2'))}: Link up",
        f"pcieport 0000:{rng.randrange(16, 99)}:01.0: AER: Corrected error received: 0000:{rng.randrange(16, 99)}:00.0",
        f"nvidia-nvlink: Nvlink Core is being initialized, major device number {rng.randrange(230, 250)}",
        "EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode",
        f"{card}: Port module event: module {rng.randrange(2)}, Cable plugged",
    ]
    rows = []
    for text in lines[: rng.randrange(4, len(lines) + 1)]:
        at += rng.uniform(0.01, 4)
        rows.append(f"[{at:12.6f}] {text}")
    return rng.choice(("dmesg | tail", "dmesg", "journalctl -k -b")), tuple(rows)


def _df(rng: Random) -> Answer:
    rows = ["Filesystem      Size  Used Avail Use% Mounted on"]
    for device, place in (("/dev/nvme0n1p2", "/"), ("tmpfs", "/dev/shm"), ("/dev/md0", "/scratch")):
        size = rng.choice((220, 440, 880, 1007))
        used = rng.randrange(1, size * 6 // 10)
        rows.append(f"{device:<15} {size:3d}G  {used:3d}G  {size - used:3d}G {used * 100 // size:3d}% {place}")
    return "df -h", tuple(rows[: rng.choice((2, 3, 4))])


def _iostat(rng: Random) -> Answer:
    user, system = rng.uniform(4, 50), rng.uniform(0.3, 5)
    idle = 100 - user - system
    rows = [
        "avg-cpu:  %user   %nice %system %iowait  %steal   %idle",
        f"          {user:6.2f}    0.00  {system:6.2f}    0.00    0.00  {idle:6.2f}",
        "",
        "Device            r/s     rkB/s   r_await     w/s     wkB/s   w_await  aqu-sz  %util",
    ]
    rows += [
        f"nvme{disk}n1       {rng.uniform(0, 90):8.2f} {rng.uniform(0, 9000):9.2f}     {rng.uniform(0.05, 0.6):.2f}"
        f" {rng.uniform(0, 60):7.2f} {rng.uniform(0, 3000):9.2f}      {rng.uniform(0.01, 0.6):.2f}"
        f"    0.0{rng.randrange(9)}   {rng.uniform(0.1, 9):.2f}"
        for disk in range(rng.randrange(1, 4))
    ]
    return "iostat -x 1 1", tuple(rows)


def _lscpu(rng: Random) -> Answer:
    cores = rng.choice((32, 48, 56, 64, 96))
    name = rng.choice(("AMD EPYC 7763 64-Core Processor", "Intel(R) Xeon(R) Platinum 8480C", "AMD EPYC 9654"))
    rows = (
        "Architecture:                       x86_64",
        f"CPU(s):                             {cores * 2}",
        f"On-line CPU(s) list:                0-{cores * 2 - 1}",
        f"Model name:                         {name}",
        f"Thread(s) per core:                 {rng.choice((1, 2))}",
        "Socket(s):                          2",
        "NUMA node(s):                       2",
        f"NUMA node0 CPU(s):                  0-{cores - 1}",
    )
    return "lscpu", rows[: rng.randrange(5, 9)]


def _pressure(rng: Random) -> Answer:
    kind = rng.choice(("memory", "io", "cpu"))
    total = rng.randrange(0, 90000)
    return f"cat /proc/pressure/{kind}", (
        f"some avg10=0.00 avg60=0.00 avg300=0.00 total={total}",
        f"full avg10=0.00 avg60=0.00 avg300=0.00 total={total // 3}",
    )


def _uptime(rng: Random) -> Answer:
    loads = ", ".join(f"{rng.uniform(4, 24):.2f}" for _ in range(3))
    clock = f"{rng.randrange(24):02d}:{rng.randrange(60):02d}:{rng.randrange(60):02d}"
    up = f"up {rng.randrange(2, 200)} days, {rng.randrange(1, 24)}:{rng.randrange(10, 60)}"
    return "uptime", (f" {clock} {up},  {rng.randrange(1, 4)} users,  load average: {loads}",)


TABLES: Mapping[str, Table] = {
    "vmstat": _vmstat,
    "free": _free,
    "dmesg": _dmesg,
    "df": _df,
    "iostat": _iostat,
    "lscpu": _lscpu,
    "pressure": _pressure,
    "uptime": _uptime,
}
