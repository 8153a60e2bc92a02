"""The tables that nvidia-smi and rocm-smi print for people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fsdpclassify.parsing.blocks import Table
from fsdpclassify.parsing.utilisation import Sample, judged
from fsdpclassify.records import Event, Line

_ROWS = 400
_NAME = re.compile(r"^\|\s{1,5}(?P<gpu>\d{1,3})\s{1,4}\S")
_STATE = re.compile(r"^\|.{0,60}?(?P<memory>\d{1,7})MiB / {1,9}\d{1,7}MiB \|\s{0,9}(?P<util>\d{1,3})%")
_ROCM = re.compile(r"^(?P<gpu>\d{1,3})\s.{0,200}\s(?P<memory>\d{1,3})%\s{1,9}(?P<util>\d{1,3})%$")
#: So full is a GPU, in per cent, that beside it an empty one stands out.
_FULL_SHARE = 10.0


def read_nvidia(lines: Sequence[Line]) -> Iterable[Event]:
    """Events of nvidia-smi: two lines a GPU, the second with memory in MiB and utilisation."""
    gpu: int | None = None
    samples: list[Sample] = []
    for line in lines:
        if (match := _STATE.match(line.body)) is not None and gpu is not None:
            samples.append(Sample(line=line, gpu=gpu, util=float(match["util"]), memory=float(match["memory"])))
            gpu = None
        elif (match := _NAME.match(line.body)) is not None:
            gpu = int(match["gpu"])
    return judged(samples)


def read_rocm(lines: Sequence[Line]) -> Iterable[Event]:
    """Events of rocm-smi: a line a GPU, memory and utilisation in per cent last."""
    found = ((line, match) for line in lines if (match := _ROCM.match(line.body)) is not None)
    samples = [
        Sample(line=line, gpu=int(m["gpu"]), util=float(m["util"]), memory=float(m["memory"])) for line, m in found
    ]
    return judged(samples, full=_FULL_SHARE)


NVIDIA = Table(name="nvidia_table", read=read_nvidia, most=_ROWS)
ROCM = Table(name="rocm_table", read=read_rocm, most=_ROWS)

RULES = (
    NVIDIA.rule(anchor=r"NVIDIA-SMI \d", pattern=re.compile(r"^\| NVIDIA-SMI \d")),
    ROCM.rule(anchor=r"VRAM% +GPU%", pattern=re.compile(r"VRAM% {1,9}GPU%")),
)
