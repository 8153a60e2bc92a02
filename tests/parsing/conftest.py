from collections.abc import Callable

import pytest

from fsdpclassify.parsing import parse, read_lines
from fsdpclassify.records import Event, EventKind, Line, RawLine

Lines = Callable[..., list[Line]]
Events = Callable[..., list[Event]]


def raw_lines(*files: str) -> list[RawLine]:
    return [
        RawLine(source=source, number=number, text=frame, frame=at)
        for source, text in enumerate(files)
        for number, line in enumerate(text.split("\n"), 1)
        for at, frame in enumerate(line.split("\r"))
    ]


@pytest.fixture
def lines() -> Lines:
    def read(*files: str) -> list[Line]:
        return read_lines(raw_lines(*files))[0]

    return read


@pytest.fixture
def events() -> Events:
    """Events of one or more files, without the words that only tell training from serving."""

    def read(*files: str, every: bool = False) -> list[Event]:
        found = parse(read_lines(raw_lines(*files))[0])
        return [e for e in found if every or e.kind not in (EventKind.TRAINER, EventKind.SERVER)]

    return read
