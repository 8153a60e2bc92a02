"""torch 2.14's second backend (`nccl2`, torchcomms): it prints no `WorkNCCL` lines (log-formats §1.15)."""

from __future__ import annotations

import re

from fsdpclassify.parsing.rule import Rule, simple
from fsdpclassify.records import EventKind

RULES = (
    Rule(
        name="torchcomms_error",
        anchor=r"nccl hit async error",
        pattern=re.compile(
            r"(?:Aborting process on rank (?P<rank>\d{1,6}) due to error - )?nccl hit async error: (?P<detail>.{3,120})"
        ),
        build=simple(EventKind.NCCL_ERROR, name="nccl2"),
        detection=True,
    ),
    Rule(
        name="torchcomms_finalize",
        anchor=r"Work timed out during finalize",
        pattern=re.compile(r"Work timed out during finalize"),
        build=simple(EventKind.TIMEOUT, name="nccl2"),
        detection=True,
    ),
    Rule(
        name="torchcomms_operation",
        anchor=r"Operation timed out after ",
        pattern=re.compile(
            r"(?:TorchComm\w{0,20}\.(?:cpp|hpp):\d{1,6}\] |\[rank=(?P<rank>\d{1,6})\]\[name=[^\]]{1,80}\] )"
            r"(?:[^\n]{0,160}? )?Operation timed out after (?P<elapsed_ms>\d{1,12}) ?ms"
        ),
        build=simple(EventKind.TIMEOUT, name="nccl2"),
        # No detection to scan large inputs for: every HTTP client has these words.
        prefixes=True,
    ),
)
