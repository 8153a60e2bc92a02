"""Network ports and their counters: ibstat, ibv_devinfo, perfquery, ethtool, sysfs files, partition keys.

Counters run since the boot: one number says that something once happened, not that it happened now. Only
the difference between two readings of one file speaks for the run; a lone total is told as such.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fsdpclassify.parsing.blocks import Table
from fsdpclassify.parsing.signs import Sign, host_event, signs_rule
from fsdpclassify.records import Event, Line

_ADAPTER = re.compile(r"^(?:CA '|hca_id:\s{0,9})(?P<name>[\w-]{1,40})")
_STATE = re.compile(r"^(?:State: |state:\s{1,9})(?P<state>Down|Initializing|Armed|PORT_DOWN|PORT_INIT)\b")
_RATE = re.compile(r"^Rate: (?P<rate>\d{1,5})\b")
_PORTS = 400


def read_adapters(lines: Sequence[Line]) -> Iterable[Event]:
    """Events of ibstat: ports that are not up, and ports slower than most of the same host."""
    rates: list[tuple[Line, int, str]] = []
    name = "?"
    for line in lines:
        name = match["name"] if (match := _ADAPTER.match(line.body)) else name
        if (match := _STATE.match(line.body)) is not None:
            yield host_event(line, name="port", detail=f"the port of {name} is not up ({match['state']})")
        if (match := _RATE.match(line.body)) is not None:
            rates.append((line, int(match["rate"]), name))
    yield from _slower(rates)


def _slower(rates: Sequence[tuple[Line, int, str]]) -> Iterable[Event]:
    """Ports whose rate lies below the highest that at least half of the ports have."""
    ordered = sorted((rate for _, rate, _ in rates), reverse=True)
    usual = ordered[(len(ordered) - 1) // 2] if len(ordered) > 2 else 0
    for line, rate, name in rates:
        if 0 < rate < usual:
            yield host_event(line, name="port", detail=f"{name} runs at {rate} Gb/s, most of its siblings at {usual}")


_COUNTERS = {
    "LinkDownedCounter": "the link went down",
    "LinkErrorRecoveryCounter": "the link had to be trained anew",
    "SymbolErrorCounter": "bits arrived damaged",
    "PortRcvErrors": "packets arrived damaged",
    "LocalLinkIntegrityErrors": "the link lost its integrity",
    "ExcessiveBufferOverrunErrors": "buffers of the port overran",
    "PortXmitDiscards": "the port dropped packets that it should have sent",
    "local_ack_timeout_err": "peers did not acknowledge in time",
    "rnr_nak_retry_err": "peers were not ready to receive",
    "packet_seq_err": "packets were lost or out of order",
    "out_of_sequence": "packets were lost or out of order",
    "rx_discards_phy": "the port dropped packets that arrived",
    "rx_out_of_buffer": "the host had no buffers for packets that arrived",
    "link_down_events_phy": "the link went down",
}
_NAMES = "|".join(_COUNTERS)
_COUNTER = re.compile(rf"(?:^|[\s\"/])(?P<name>{_NAMES})\"?[:= ][:. ]{{0,40}}(?P<value>\d{{1,18}})\b")
_HEADER = re.compile(r"# Port counters: |NIC statistics:|hw_counters/")
_READINGS = 4000


def read_counters(lines: Sequence[Line]) -> Iterable[Event]:
    """Events of counter dumps: what grew between the first and the last reading, or the totals of a single one."""
    first: dict[tuple[str, str, str], int] = {}
    last: dict[tuple[str, str, str], tuple[Line, int, int]] = {}
    port = ""
    for line in lines:
        port = line.body if _HEADER.search(line.body) and not _COUNTER.search(line.body) else port
        for match in _COUNTER.finditer(line.body):
            key, value = (port, line.body[: match.start("name")], match["name"]), int(match["value"])
            first.setdefault(key, value)
            last[key] = (line, value, last[key][2] + 1 if key in last else 1)
    for key, (line, value, readings) in last.items():
        name, grown = key[2], value - first[key]
        if readings > 1 and grown > 0:
            yield host_event(line, name="counter", detail=f"{_COUNTERS[name]}: {grown} times between two readings")
        elif readings == 1 and value > 0:
            yield host_event(line, name="counter", detail=f"{_COUNTERS[name]}: {value} times since the boot, or before")


ADAPTERS = Table(name="ib_adapters", read=read_adapters, most=_PORTS)
COUNTERS = Table(name="port_counters", read=read_counters, most=_READINGS)

_FABRIC = (
    Sign(
        name="link",
        pattern=r"Removed port with GUID:",
        meaning="the subnet manager lost a port: its node left the fabric",
    ),
    Sign(
        name="pause_storm",
        pattern=r"PFC storm detected on port",
        meaning="a switch port was paused for so long that its queue was given up",
    ),
)

RULES = (
    ADAPTERS.rule(anchor=r"^CA '|hca_id:", pattern=re.compile(r"^CA '|^hca_id:")),
    COUNTERS.rule(
        anchor=r"# Port counters: |NIC statistics:|hw_counters/",
        pattern=_HEADER,
    ),
    signs_rule("fabric", r"Removed port with GUID:|PFC storm detected", _FABRIC),
)
