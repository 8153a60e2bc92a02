"""How the devices of a node are joined: `nvidia-smi topo -m`, and what lspci says of links and access control."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fsdpclassify.parsing.blocks import Table
from fsdpclassify.parsing.signs import Sign, host_event, signs_rule
from fsdpclassify.records import Event, Line

_HEADER = re.compile(r"^GPU0\s{1,40}(?:GPU1|CPU Affinity)")
_ROW = re.compile(r"^GPU(?P<gpu>\d{1,3})\s")
#: From near to far; all of these cross the host's bridge or more, and what crosses it may be refused there.
_FAR = {
    "PHB": "through a PCIe host bridge",
    "NODE": "between PCIe host bridges of one processor",
    "SYS": "across the link between processors",
}
_ORDER = tuple(_FAR)
_ROWS = 80


def read_matrix(lines: Sequence[Line]) -> Iterable[Event]:
    """An event for each GPU that no short way joins to some GPU listed before it, with the longest such way."""
    for line in lines[1:]:
        match = _ROW.match(line.body)
        if match is None:
            continue
        gpu = int(match["gpu"])
        cells = line.body[match.end() :].split()[:gpu]
        far = [(_ORDER.index(cell), other, cell) for other, cell in enumerate(cells) if cell in _FAR]
        if far:
            _, other, cell = max(far, key=lambda item: (item[0], -item[1]))
            detail = f"GPU {other} and GPU {gpu} are joined only {_FAR[cell]} ({cell}): no NVLink, no common switch"
            yield host_event(line, name="topology", detail=detail)


MATRIX = Table(name="gpu_matrix", read=read_matrix, most=_ROWS)

_BUS = (
    Sign(
        name="topology",
        pattern=r"ACSCtl:[^\n]{0,60} ReqRedir\+",
        meaning="PCIe access control sends copies between devices through the host: they may be slow or never arrive",
    ),
    Sign(
        name="pcie_width",
        pattern=r"LnkSta:[^\n]{0,40} Width x\d{1,2} \(downgraded\)",
        meaning="a PCIe link is narrower than it could be: copies over it are slow",
    ),
    Sign(
        name="topology",
        pattern=r'Missing "iommu=pt" from kernel command line',
        meaning="the IOMMU translates what devices send to each other: copies between GPUs may never arrive",
    ),
)

RULES = (
    MATRIX.rule(anchor=r"GPU0\s+(?:GPU\d|CPU Aff)", pattern=_HEADER),
    signs_rule("pcie_setup", r"ACSCtl:|LnkSta:|Missing .iommu=pt", _BUS),
)
