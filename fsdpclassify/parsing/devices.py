"""What nvidia-smi, DCGM and exporters say in words about single GPUs: throttling, memory errors, narrow links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fsdpclassify.parsing.blocks import Table
from fsdpclassify.parsing.rule import Rule
from fsdpclassify.parsing.signs import host_event
from fsdpclassify.parsing.xid import meaning_of_xid
from fsdpclassify.records import Event, Line

#: Bits of the mask of clock event reasons that make a GPU slower than its peers. Power capping (0x4) is normal at
#: full load, and idle clocks (0x1) are no fault.
SLOWING = 0x08 | 0x20 | 0x40 | 0x80
SLOWED = "the GPU was slowed down by heat, power or its board"

_SAID = re.compile(
    r"Detected XID (?P<xid>\d{1,4}) for GPU (?P<g0>\d{1,3})"
    r"|GPU (?P<g1>\d{1,3}) had uncorrectable memory errors"
    r"|(?:Detected clocks event due to thermal violation in|There were thermal violations totaling [\d.]{1,20}"
    r" seconds for) GPU (?P<g2>\d{1,3})"
    r"|GPU (?P<g3>\d{1,3}) is running at PCI link"
    r"|GPU (?P<g4>\d{1,3})'s NvLink link \d{1,3} is currently down"
    r"|(?P<lost>Unable to determine the device handle for GPU)"
)
_WORDS = (
    ("g1", "ecc", "GPU memory has errors that cannot be corrected and its rows could not be replaced"),
    ("g2", "thermal", "the GPU was slowed down by heat"),
    ("g3", "pcie_width", "the GPU's PCIe link is narrower or slower than it should be: its copies are slow"),
    ("g4", "nvlink", "an NVLink of this GPU is down"),
)


def _said(match: re.Match[str], line: Line) -> Iterable[Event]:
    if match["lost"]:
        yield host_event(line, name="gpu", detail="the GPU answers no more")
    if match["xid"]:
        known = meaning_of_xid(int(match["xid"]))
        detail = f"Xid {match['xid']}: {known.meaning}"
        yield host_event(line, name=known.name, detail=detail, code=int(match["xid"]), local_rank=int(match["g0"]))
    for group, name, detail in _WORDS:
        if match[group]:
            yield host_event(line, name=name, detail=detail, local_rank=int(match[group]))


_FIELD = re.compile(
    r"DCGM_FI_DEV_(?P<field>XID_ERRORS|CLOCKS?_(?:THROTTLE|EVENT)_REASONS|CLOCKS_EVENT_REASONS)"
    r'\{[^}\n]{0,400}?gpu="(?P<gpu>\d{1,3})"[^}\n]{0,800}\} (?P<value>\d{1,15})\b'
)


def _field(match: re.Match[str], line: Line) -> Iterable[Event]:
    """One sample of an exporter: the last Xid (0 for none) or the mask of what holds the clocks down."""
    value, gpu = int(match["value"]), int(match["gpu"])
    if match["field"] == "XID_ERRORS":
        if value:
            known = meaning_of_xid(value)
            detail = f"Xid {value}: {known.meaning}"
            yield host_event(line, name=known.name, detail=detail, code=value, local_rank=gpu)
    elif value & SLOWING:
        yield host_event(line, name="thermal", detail=SLOWED, local_rank=gpu)


_DEVICE = re.compile(r"^GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]")
_STATE = re.compile(
    r"^(?:(?P<hot>HW Slowdown|HW Thermal Slowdown|HW Power Brake Slowdown|SW Thermal Slowdown) +: Active\b"
    r"|(?P<ecc>(?:DRAM|SRAM) Uncorrectable(?: \w{1,12})?|Remapping Failure Occurred) +: (?:[1-9]\d{0,12}|Yes)\b)"
)
#: Headings have no colon; counts under `Aggregate` are those of the GPU's whole life.
_SECTION, _SPAN = re.compile(r"^[A-Z][\w /]{2,60}$"), re.compile(r"^Aggregate$")
_UNCORRECTED = "errors of GPU memory that cannot be corrected were counted"
_REPORT_LINES = 4000


def read_report(lines: Sequence[Line]) -> Iterable[Event]:
    """Events of `nvidia-smi -q`: one for each GPU and kind of trouble, with the number of the GPU in the report."""
    gpu, lifetime, told = -1, False, set[tuple[int, str]]()
    for line in lines:
        gpu += _DEVICE.match(line.body) is not None
        lifetime = _SPAN.match(line.body) is not None if _SECTION.match(line.body) else lifetime
        match = None if lifetime else _STATE.match(line.body)
        name = None if match is None else "thermal" if match["hot"] else "ecc"
        if name is None or (gpu, name) in told:
            continue
        told.add((gpu, name))
        detail = SLOWED if name == "thermal" else _UNCORRECTED
        yield host_event(line, name=name, detail=detail, local_rank=gpu if gpu >= 0 else None)


REPORT = Table(name="gpu_report", read=read_report, most=_REPORT_LINES)

RULES = (
    Rule(
        name="gpu_said",
        anchor=(
            r"Detected XID |had uncorrectable memory|thermal violation|is running at PCI link|is currently down"
            r"|Unable to determine the device"
        ),
        pattern=_SAID,
        build=_said,
    ),
    Rule(name="gpu_field", anchor=r"DCGM_FI_DEV_(?:XID|CLOCK)", pattern=_FIELD, build=_field),
    REPORT.rule(anchor=r"=NVSMI LOG=", pattern=re.compile(r"=NVSMI LOG=")),
)
