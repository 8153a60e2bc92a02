"""The unit of a story: something one program prints at one moment, as one or more physical lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """`lines` come out together. `rank` is the printing rank, `node` the printing node.

    `role` says why it is in the story: chat, evidence, decoy, wait, status, stack, notify, after, launch.
    `prefix` says which prefixes the program itself puts before each line: `c10` (already in the text),
    `exc` (Python's uncaught exception hook), `user` (the script's logger), `raw` (none).
    `open` marks a progress bar: no newline follows, so the next line is glued to it.
    Records of one `tie` say something only together: a report keeps all of them or none.
    A `file` with a dot in it is a file of its own; otherwise it names the side file of a tool or a system.
    `origin` names the wording (a family of the inventory, or a text of the simulator's own that splits share out),
    `said` is the first line it gave, without what stands around it; `speaks` is the label that a decoy seems to
    speak for. The names are never printed.
    """

    time: float
    lines: tuple[str, ...]
    role: str
    rank: int | None = None
    node: int = 0
    channel: str = "rank"
    prefix: str = "raw"
    open: bool = False
    strength: int = 0
    file: str = ""
    tie: str = ""
    origin: str = ""
    said: str = ""
    speaks: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """What the corpus remembers of an incident beside its truth.

    `origins`: wordings printed; `decoys`: labels that decoys speak for; `lines`: what families of
    the inventory read like, digits as 0.
    """

    origins: tuple[str, ...]
    decoys: tuple[str, ...]
    lines: tuple[str, ...]


def notes_of(records: Iterable[Record], label: str) -> Notes:
    """The notes on the records that a report kept; a look-alike of the incident's own label is no decoy."""
    kept = list(records)
    spoken = {record.speaks for record in kept if record.speaks and record.role not in {"evidence", "wait"}}
    origins = {record.origin for record in kept if record.origin}
    lines = {re.sub(r"\d+", "0", record.said) for record in kept if record.said}
    return Notes(origins=tuple(sorted(origins)), decoys=tuple(sorted(spoken - {label})), lines=tuple(sorted(lines)))


@dataclass(slots=True, kw_only=True)
class Story:
    """Everything that the run printed, and what is true about it. Grows while causes act on the world."""

    records: list[Record] = field(default_factory=list)
    label: str = "undetermined"
    cause: str | None = None
    initiating: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    initiating_nodes: tuple[str, ...] = ()
    onset: float = 0.0
    detection: float = 0.0
    collective: str | None = None
    alt_label: str | None = None
    hung: bool = False
    keep_whole: bool = False

    def add(self, record: Record) -> None:
        """Append one record (order does not matter; rendering sorts by time)."""
        self.records.append(record)
