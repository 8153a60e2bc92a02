"""Two network namespaces as two nodes, joined by a pair of virtual links, and what can go wrong between them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

NODES = ("fsdplab0", "fsdplab1")
ADDRESSES = ("10.77.0.1", "10.77.0.2")
LINK = "eth0"
#: A second link that leads nowhere: the other end has the same address range but is not connected.
STRAY = "eth1"

_NFT = "add table inet lab; add chain inet lab in {{ type filter hook input priority 0; }}; add rule inet lab in {rule}"
_OUT = _NFT.replace("hook input", "hook output").replace(" in ", " out ")
#: Name -> commands of the second node (a tuple of argument lists).
TROUBLES: Mapping[str, Sequence[Sequence[str]]] = {
    "rate": (("tc", "qdisc", "add", "dev", LINK, "root", "tbf", "rate", "6kbit", "burst", "2kb", "latency", "60s"),),
    "drop": (("nft", _NFT.format(rule=f'iifname "{LINK}" tcp dport != 29600 tcp sport != 29600 drop')),),
    "reset": (("ss", "-K", "dst", ADDRESSES[0], "and", "dport", "!=", "29600", "and", "sport", "!=", "29600"),),
    "down": (("ip", "link", "set", LINK, "down"),),
    "loss": (("nft", _NFT.format(rule=f'iifname "{LINK}" meta l4proto tcp numgen random mod 100 < 97 drop')),),
    "one_way": (("nft", _OUT.format(rule=f'oifname "{LINK}" tcp dport != 29600 tcp sport != 29600 drop')),),
    "neighbour": (
        ("ip", "neigh", "replace", ADDRESSES[0], "lladdr", "02:00:00:00:00:99", "dev", LINK, "nud", "permanent"),
    ),
    "unroute": (("ip", "route", "add", "blackhole", ADDRESSES[0]),),
    "police": (("nft", _NFT.format(rule=f'iifname "{LINK}" limit rate over 2 kbytes/second burst 2 kbytes drop')),),
    "slow": (("tc", "qdisc", "add", "dev", LINK, "root", "tbf", "rate", "900kbit", "burst", "4kb", "latency", "60s"),),
    "narrowing": (
        ("tc", "qdisc", "add", "dev", LINK, "root", "tbf", "rate", "900kbit", "burst", "4kb", "latency", "60s"),
        ("sleep", "6"),
        ("tc", "qdisc", "change", "dev", LINK, "root", "tbf", "rate", "300kbit", "burst", "4kb", "latency", "60s"),
        ("sleep", "8"),
        ("tc", "qdisc", "change", "dev", LINK, "root", "tbf", "rate", "6kbit", "burst", "2kb", "latency", "60s"),
    ),
    "flapping": (
        ("ip", "link", "set", LINK, "down"),
        ("sleep", "2"),
        ("ip", "link", "set", LINK, "up"),
        ("sleep", "3"),
        ("ip", "link", "set", LINK, "down"),
    ),
    "half_path": (("nft", _NFT.format(rule=f'iifname "{LINK}" tcp dport != 29600 tcp dport and 2 == 2 drop')),),
    "lost_address": (("ip", "addr", "flush", "dev", LINK),),
    "closed_ports": (
        ("nft", _NFT.format(rule=f'iifname "{LINK}" tcp dport != 29600 tcp flags & (syn|ack) == syn drop')),
        ("nft", _OUT.format(rule=f'oifname "{LINK}" tcp dport != 29600 tcp flags & (syn|ack) == syn drop')),
    ),
    "rejected": (("nft", _NFT.format(rule=f'iifname "{LINK}" tcp dport != 29600 tcp sport != 29600 reject')),),
    "short_queue": (
        ("tc", "qdisc", "add", "dev", LINK, "root", "tbf", "rate", "8kbit", "burst", "2kb", "limit", "6kb"),
    ),
    "mtu": (("nft", _NFT.format(rule=f'iifname "{LINK}" meta length > 1000 drop')),),
}


@contextmanager
def two_nodes() -> Iterator[Sequence[str]]:
    """Make both namespaces; removed at the end. CalledProcessError where the kernel refuses."""
    _remove()
    try:
        for node in NODES:
            _run("ip", "netns", "add", node)
        _run("ip", "link", "add", "lab0", "type", "veth", "peer", "name", "lab1")
        for i, node in enumerate(NODES):
            _run("ip", "link", "set", f"lab{i}", "netns", node)
            _inside(node, "ip", "link", "set", f"lab{i}", "name", LINK)
            _inside(node, "ip", "addr", "add", f"{ADDRESSES[i]}/24", "dev", LINK)
            _inside(node, "ip", "link", "set", LINK, "up")
            _inside(node, "ip", "link", "set", "lo", "up")
            _inside(node, "ip", "link", "add", STRAY, "type", "veth", "peer", "name", "stray1")
            _inside(node, "ip", "addr", "add", f"172.30.{i}.5/24", "dev", STRAY)
            _inside(node, "ip", "link", "set", STRAY, "up")
            _inside(node, "ip", "link", "set", "stray1", "up")
        yield NODES
    finally:
        _remove()


def trouble(name: str) -> None:
    """Bring `name` of `TROUBLES` over the second node."""
    for command in TROUBLES[name]:
        _inside(NODES[1], *command)


def _inside(node: str, *command: str) -> None:
    _run("ip", "netns", "exec", node, *command)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _remove() -> None:
    for node in NODES:
        subprocess.run(["ip", "netns", "del", node], check=False, capture_output=True)
