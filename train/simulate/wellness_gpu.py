"""Healthy answers of the tools for cards and ports: every link up, every counter at zero, every card alike."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from train.simulate.wellness_host import Answer, Table

_CARDS = (("NVIDIA H100 80GB HBM3", 81559, 700), ("NVIDIA A100-SXM4-80GB", 81920, 400), ("NVIDIA H200", 143771, 700))


def _ibstat(rng: Random) -> Answer:
    rate = rng.choice((200, 400))
    rows: list[str] = []
    for port in range(rng.choice((1, 2, 4, 8))):
        rows += [
            f"CA 'mlx5_{port}'",
            "\tCA type: MT4129",
            "\tNumber of ports: 1",
            f"\tFirmware version: 28.{rng.randrange(30, 44)}.{rng.randrange(1000, 3000)}",
            "\tPort 1:",
            "\t\tState: Active",
            "\t\tPhysical state: LinkUp",
            f"\t\tRate: {rate}",
            f"\t\tBase lid: {rng.randrange(2, 900)}",
            "\t\tLink layer: InfiniBand",
        ]
    return "ibstat", tuple(rows)


def _query(rng: Random) -> Answer:
    name, total, limit = rng.choice(_CARDS)
    held = int(total * rng.uniform(0.4, 0.93))
    asked = "index,name,temperature.gpu,utilization.gpu,memory.used,power.draw"
    head = "index, name, temperature.gpu, utilization.gpu [%], memory.used [MiB], power.draw [W]"
    rows = [
        f"{card}, {name}, {rng.randrange(38, 64)}, {rng.choice((99, 100, 100))} %, {held + rng.randrange(90)} MiB, "
        f"{limit * rng.uniform(0.4, 0.9):.2f} W"
        for card in range(rng.choice((4, 8)))
    ]
    return f"nvidia-smi --query-gpu={asked} --format=csv", (head, *rows)


def _table(rng: Random) -> Answer:
    name, total, limit = rng.choice(_CARDS)
    held = int(total * rng.uniform(0.4, 0.93))
    line = "+" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+"
    rows = [
        line,
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |",
        "|=========================================+========================+======================|",
    ]
    for card in range(rng.choice((4, 8))):
        bus = f"00000000:{26 + 17 * card:02X}:00.0"
        watts = int(limit * rng.uniform(0.4, 0.9))
        heat = rng.randrange(38, 64)
        rows += [
            f"|   {card}  {name:<24}       On |   {bus} Off |                    0 |",
            f"| N/A   {heat}C    P0             {watts:3d}W / {limit:3d}W |"
            f"  {held + rng.randrange(60)}MiB / {total:6d}MiB |    100%      Default |",
            line,
        ]
    return "nvidia-smi", tuple(rows)


def _counters(rng: Random) -> Answer:
    names = (
        "SymbolErrorCounter",
        "LinkErrorRecoveryCounter",
        "LinkDownedCounter",
        "PortRcvErrors",
        "PortXmitDiscards",
        "LocalLinkIntegrityErrors",
        "ExcessiveBufferOverrunErrors",
        "VL15Dropped",
        "PortXmitWait",
    )
    rows = [f"{name + ':':.<33}0" for name in names[: rng.randrange(5, len(names) + 1)]]
    lid = rng.randrange(2, 900)
    return f"perfquery {lid} 1", (f"# Port counters: Lid {lid} port 1 (CapMask: 0x5A00)", *rows)


def _topology(rng: Random) -> Answer:
    count, half, cores = *rng.choice(((4, 2), (8, 4))), rng.choice((32, 48, 56, 64))
    head = "\t" + "\t".join(f"GPU{i}" for i in range(count)) + "\tCPU Affinity\tNUMA Affinity"
    rows = [
        f"GPU{i}\t" + "\t".join(" X " if i == j else "NV18" for j in range(count)) + f"\t{i // half * cores}-"
        f"{(i // half + 1) * cores - 1}\t{i // half}"
        for i in range(count)
    ]
    return "nvidia-smi topo -m", (head, *rows)


def _nvlink(rng: Random) -> Answer:
    name, speed = rng.choice((("NVIDIA H100 80GB HBM3", "26.562"), ("NVIDIA A100-SXM4-80GB", "25")))
    rows: list[str] = []
    for card in range(rng.choice((1, 2, 4))):
        parts = [f"{rng.getrandbits(bits):0{bits // 4}x}" for bits in (32, 16, 16, 16, 48)]
        rows.append(f"GPU {card}: {name} (UUID: GPU-{'-'.join(parts)})")
        rows += [f"\t Link {link}: {speed} GB/s" for link in range(rng.choice((12, 18)))]
    return "nvidia-smi nvlink -s", tuple(rows)


TABLES: Mapping[str, Table] = {
    "ibstat": _ibstat,
    "gpu_query": _query,
    "nvidia-smi": _table,
    "perfquery": _counters,
    "topo": _topology,
    "nvlink": _nvlink,
}
