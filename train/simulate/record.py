"""The unit of a story: something one program prints at one moment, as one or more physical lines."""

from __future__ import annotations

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
