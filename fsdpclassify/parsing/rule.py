"""What a dialect file exports: rules that turn a line into events."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fsdpclassify.records import Event, EventKind, Line

Build = Callable[["re.Match[str]", Line], Iterable[Event]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`anchor` is a regular expression without groups or look-arounds that every match contains.

    It gates the slower `pattern`, and the same anchors are scanned for over the raw bytes of large
    inputs. `joins` lets a match go on into the next two lines, for logs wrapped at a terminal width.
    `once` keeps only the first match of each rank in a file: that such a line exists is all it says.
    `prefixes` searches the line with its prefixes, whose process names say what kind of job it is.
    An anchor holds no fixed digit but 0, so that lines which differ in their numbers share their gates.
    """

    name: str
    anchor: str
    pattern: re.Pattern[str]
    build: Build
    detection: bool = False
    joins: bool = False
    once: bool = False
    prefixes: bool = False


def simple(kind: EventKind, **constant: str) -> Build:
    """A builder for rules whose whole message is that they matched; named groups become fields."""

    def build(match: re.Match[str], line: Line) -> Iterable[Event]:
        yield event(kind, line, **{**constant, **{k: v for k, v in match.groupdict().items() if v is not None}})

    return build


#: More digits than any rank, counter, size or step has.
_DIGITS = 20
_INTS = {
    "rank", "seq", "numel_in", "numel_out", "group_rank", "enqueued", "completed",
    "peer", "code", "local_rank", "step", "total",
}  # fmt: skip
_MILLIS = {"timeout_ms": "timeout_s", "elapsed_ms": "elapsed_s", "value_ms": "value"}
_FLOATS = {"timeout_s", "elapsed_s", "value"}
#: What `Numel` prints when the size of a coalesced batch is unknown (2**64 - 1).
UNKNOWN_NUMEL = 18446744073709551615


def event(kind: EventKind, line: Line, **fields: str | int | float | tuple[int, ...] | None) -> Event:
    """Make an event from matched texts: integers, milliseconds and seconds are converted by field name."""
    values: dict[str, object] = {}
    for key, value in fields.items():
        if value is None:
            continue
        if isinstance(value, str) and key not in ("name", "detail", "op", "group") and len(value) > _DIGITS:
            continue  # no number of any program is that long: hostile or damaged text
        if key in _MILLIS:
            values[_MILLIS[key]] = float(value) / 1000.0  # type: ignore[arg-type]
        elif key in _INTS:
            values[key] = int(value)  # type: ignore[arg-type]
        elif key in _FLOATS:
            values[key] = float(value)  # type: ignore[arg-type]
        else:
            values[key] = value
    for key in ("numel_in", "numel_out"):
        if values.get(key) == UNKNOWN_NUMEL:
            values[key] = None
    values.setdefault("rank", line.rank)
    return Event(kind=kind, line=line, time=line.time, **values)  # type: ignore[arg-type]
