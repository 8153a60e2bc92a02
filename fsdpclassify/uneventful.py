"""Lines of host tables that say that all is well: headers, and rows whose values are those of a healthy machine.

People put `vmstat`, `ibstat` or `free` beside a log to rule something out. What such a table is about (swap, links)
is not what it says, so a row that reports nothing is no line of the window. Formats: procps (vmstat, free), the
InfiniBand diagnostics (ibstat, perfquery), ethtool -S, nvidia-smi (topo -m, nvlink -s), pressure stall information,
and the kernel's notes of links that come up.
"""

from __future__ import annotations

import re

_NUMBER = r"\d[\d.,]*"
_HEADERS = (
    r"procs\s+-{3,}\s*memory\s*-{3,}.{0,120}"
    r"|r\s+b\s+swpd\s+free\s.{0,120}"
    r"|total\s+used\s+free\s+shared\s.{0,60}"
    r"|Filesystem\s+(?:Type\s+)?(?:1K-blocks|Size)\s.{0,80}"
    r"|avg-cpu:\s.{0,80}|Device\s+r/s\s.{0,200}"
    r"|# Port (?:extended )?counters: .{0,60}"
    r"|Legend:|(?:X|SYS|NODE|PHB|PXB|PIX|NV#)\s+= .{0,160}|(?:GPU\d+\s+){2,}.{0,160}"
)
_LINKS = (
    r"CA '[^']{1,20}'|CA type: .{0,40}|Number of ports: \d+|(?:Firmware|Hardware) version: .{0,40}|Port \d+:"
    r"|State: Active|Physical state: LinkUp|phys(?:ical)?[ _]state:?\s+(?:5: )?Link[ _]?Up|state:?\s+(?:4: )?ACTIVE"
    r"|Rate: \d+.{0,20}|rate:\s+\d+ Gb/sec.{0,30}|(?:Base lid|LMC|SM lid): \d+|Capability mask: 0x[0-9a-f]{1,16}"
    r"|(?:Port|Node|System image) GUID: 0x[0-9a-f]{1,16}|Link layer: (?:InfiniBand|Ethernet)"
    r"|link [\w/]{3,20} state ACTIVE physical_state LINK_UP.{0,60}"
    r"|Link \d+: \d+(?:\.\d+)? GB/s|GPU \d+: [^()]{1,60} \(UUID: [^()]{1,60}\)"
    r"|(?:GPU|NIC|mlx5_)\w{0,8}\s+(?:\S{1,6}\s+){0,16}NV\d+\s.{0,160}"
)
#: Counters of faults that are zero; a zero of anything else may be the very fault (`received: 0`).
_COUNTERS = (
    r"[\w./-]{0,60}(?:err|Err|ERR|drop|Drop|discard|Discard|symbol|Symbol|flap|down|Down|timeout|retr|Retr|crc|CRC"
    r"|pause|Recover|Wait|Overrun|overrun|cnp|ecn|oom_kill|corrupt)[\w./-]{0,40}\s*[:=.]{1,40}\s*0(?:\.0+)?"
    r"|(?:some|full) avg10=0\.00 avg60=0\.0\d avg300=0\.\d\d total=\d+"
)
_MEMORY = (
    r"Swap:\s+(?:\d\S*\s+)0(?:\.0)?[BKMG]?i?\s+\S+"
    rf"|(?:\d+\s+){{2}}0\s+(?:\d+\s+){{3}}0\s+0(?:\s+{_NUMBER}){{6,10}}"
)
_KERNEL = (
    r"(?:\[ *\d+\.\d+\] )?(?:\S{1,60} ){0,6}"
    r"(?:[Ll]ink (?:is )?[Uu]p(?:[ ,].{0,80})?|link becomes ready|NIC Link is Up.{0,80})"
    r"|(?:\[ *\d+\.\d+\] )?(?:\S{1,60} ){0,4}(?:AER: )?(?:Corrected error (?:received|message received).{0,80}"
    r"|PCIe Bus Error: severity=Corrected.{0,120})"
)
_UNEVENTFUL = re.compile(rf"\s*(?:{_HEADERS}|{_LINKS}|{_COUNTERS}|{_MEMORY}|{_KERNEL})\s*")
#: The row of `free` that says how much memory is left: total first, available last.
_LEFT = re.compile(r"\s*Mem:\s+(\d+(?:\.\d+)?)([BKMGTP]?)i?\s.{0,80}?\s(\d+(?:\.\d+)?)([BKMGTP]?)i?\s*")
_UNITS = {unit: 1024.0**power for power, unit in enumerate("BKMGTP")} | {"": 1024.0}
#: With less than this share of its memory available a machine is not at ease.
_AT_EASE = 0.15
_LONGEST = 240


def is_uneventful(body: str) -> bool:
    """Whether a line (without its prefix) is part of a host table and reports nothing amiss. Linear time."""
    if len(body) > _LONGEST:
        return False
    return _UNEVENTFUL.fullmatch(body) is not None or _has_memory_left(body)


def _has_memory_left(body: str) -> bool:
    found = _LEFT.fullmatch(body) if "Mem:" in body else None
    if not found:
        return False
    total, available = (float(found[i]) * _UNITS[found[i + 1]] for i in (1, 3))
    return available >= _AT_EASE * total
