"""What one source has become while a call of `read` goes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fsdpclassify.records import InputRow, RawLine
from fsdpclassify.sources.interface import Gap

if TYPE_CHECKING:
    from fsdpclassify.sources.scanning import Scan


@dataclass(slots=True, kw_only=True)
class Result:
    """What became of one source; `scan` is left where its regions are still to be read.

    `place` is where in the text the last detection lies, as a share of the length. Per-rank files
    grow alike, so in the file of the rank that all wait for, which shows none, that place is read.
    """

    row: InputRow
    lines: list[RawLine] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    scan: Scan | None = None
    place: float | None = None
