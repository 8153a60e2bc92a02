"""From a first sample and from what reading ended with to a row of `inputs`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fsdpclassify.records import InputKind, InputRow, InputStatus
from fsdpclassify.sources.kinds import is_binary, is_flight_recorder, recognise

DUMP_MESSAGE = "a flight-recorder dump, which is not asked for here"
#: A dump of 2,000 calls with their stacks takes about 2 MB, one of 20,000 about 20 MB.
MAX_DUMP_BYTES = 64 * 1024 * 1024


class DumpReader(Protocol):
    """What takes the dumps among the inputs; called from the thread that reads an input, once for each."""

    def take(self, index: int, path: str, hint: int | None, data: bytes) -> tuple[InputStatus, str | None]:
        """Read the dump `data` of input `index`, named `path`; `hint` is the rank that a path rule gave.

        Returns the status of its row and a message; never raises for the sake of `data`.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a text is not parted into lines."""

    kind: InputKind | None
    status: InputStatus
    message: str


def refusal(sample: bytes) -> Refusal | None:
    """Whether the text that begins with `sample` is no log text."""
    if is_flight_recorder(sample):
        kind = InputKind.FLIGHT_RECORDER
        return Refusal(kind=kind, status=InputStatus.UNREADABLE, message=DUMP_MESSAGE)
    if is_binary(sample):
        return Refusal(kind=None, status=InputStatus.BINARY, message="it is not text")
    return None


def refused_row(path: str, why: Refusal, size: int) -> InputRow:
    """The row of an input that was recognised as something other than log text."""
    return InputRow(path=path, kind=why.kind, bytes=size, lines=0, status=why.status, message=why.message)


def dump_row(path: str, size: int, status: InputStatus, message: str | None, damage: str | None) -> InputRow:
    """The row of a flight-recorder dump; `damage` says what ended its bytes early, and explains why it is cut."""
    if damage is not None:
        status, message = InputStatus.TRUNCATED, f"{damage}; {message}" if message else damage
    return InputRow(path=path, kind=InputKind.FLIGHT_RECORDER, bytes=size, lines=0, status=status, message=message)


def text_row(path: str, sample: bytes, size: int, lines: int, damage: str | None) -> InputRow:
    """The row of an input that was read; `damage` says what ended the reading early, if anything did."""
    if not size:
        status = InputStatus.EMPTY if damage is None else InputStatus.UNREADABLE
        message = damage or "it is empty"
        return InputRow(path=path, kind=None, bytes=0, lines=0, status=status, message=message)
    text = sample.replace(b"\x00", b"")
    if not text and size <= len(sample):
        why = Refusal(kind=None, status=InputStatus.BINARY, message="it holds only NUL bytes")
        return refused_row(path, why, size)
    status = InputStatus.OK if damage is None else InputStatus.TRUNCATED
    return InputRow(path=path, kind=recognise(text), bytes=size, lines=lines, status=status, message=damage)


def note_row(path: str, what: str, size: int) -> InputRow:
    """The row of a note, a script or a configuration beside other inputs: it was recognised, and is no evidence."""
    message = f"it is {what} and no log: nothing in it counts as printed (to read it as a log, name it alone)"
    return InputRow(path=path, kind=None, bytes=size, lines=0, status=InputStatus.OK, message=message)


def failed_row(path: str, status: InputStatus, message: str) -> InputRow:
    """The row of an input of which nothing was read."""
    return InputRow(path=path, kind=None, bytes=0, lines=0, status=status, message=message)
