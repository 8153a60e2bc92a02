"""Lines that differ in their digits alone are peeled alike: what was cut once is only read off again.

A large log repeats few shapes many times. Every prefix rule treats all digits the same, so for a shape
that was peeled before it is known where its body begins and which run of digits is which number.
Shapes for which that cannot be told for sure (a glued line, a JSON record, a stamp that is not the
first number of its line) are peeled afresh every time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any

from fsdpclassify.parsing.clock import Stamp, find_stamp, full_date, holds_clock
from fsdpclassify.parsing.peeling import Peeled
from fsdpclassify.records import RawLine

Span = tuple[int, int]

_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_RUN = re.compile(r"\d+")
#: Longer lines are machine output, each of its own shape.
_LONGEST = 400
#: A shape is learnt when it comes again: one-off lines must not pay for it.
_SIGHTINGS = 3
_MOST = 20_000
#: How far into the body a message may name its own rank.
_SAID_REACH = 161
_NUMBERS = ("global_rank", "bracket", "tee", "task", "said", "pid", "device")
_FLAGS = ("brackets", "c10", "cpp", "headed", "plain")
_FIELDS = tuple(each.name for each in fields(Peeled))
_NODE, _STAMP = _FIELDS.index("node"), _FIELDS.index("stamp")
#: The first fields of a `Peeled` are a line's own: the line, its text, its body.
_OWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recipe:
    """Where in a line of one shape its body, its stamp and its numbers (field, start, end) stand.

    `shared` are the fields of a `Peeled` behind the line's own, as they are for all lines of the shape.
    """

    body: int
    stamp: Span | None
    numbers: tuple[tuple[int, int, int], ...]
    node: Span | None
    shared: tuple[Any, ...]


class Shapes:
    """Remembers the shapes of one input set; `recall` what `learn` was shown before."""

    def __init__(self) -> None:
        self._recipes: dict[bytes, _Recipe | int] = {}
        self._stamps: dict[str, Stamp | None] = {}
        self._shape = b""

    def recall(self, raw: RawLine) -> Peeled | None:
        """`raw` as peeling would leave it, or None if that has to be found out."""
        text = raw.text
        self._shape = text.encode("utf-8", "surrogatepass").translate(_DIGITS) if len(text) <= _LONGEST else b""
        recipe = self._recipes.get(self._shape)
        if recipe is None or isinstance(recipe, int):
            return None
        values = [raw, text, text[recipe.body :], *recipe.shared]
        for place, start, end in recipe.numbers:
            values[place] = int(text[start:end])
        values[_NODE] = raw.hint_node if recipe.node is None else text[recipe.node[0] : recipe.node[1]]
        if recipe.stamp is not None:
            values[_STAMP] = self._stamp(text, recipe.stamp)
        return Peeled(*values)

    def learn(self, item: Peeled) -> None:
        """`item` is what the whole of the line last asked for was peeled to."""
        if not self._shape or len(self._recipes) >= _MOST:
            return
        seen = self._recipes.get(self._shape, 0)
        if not isinstance(seen, int):
            return
        recipe = _recipe(item) if seen == _SIGHTINGS else None
        # A number that happens to stand twice in this line may stand once in the next.
        self._recipes[self._shape] = recipe or min(seen + 1, _SIGHTINGS)

    def _stamp(self, text: str, span: Span) -> Stamp | None:
        printed = text[: span[1]]
        if printed not in self._stamps:
            if len(self._stamps) >= _MOST:
                self._stamps.clear()
            self._stamps[printed] = find_stamp(text)
        return self._stamps[printed]


def _recipe(item: Peeled) -> _Recipe | None:
    """The recipe for lines like `item`; None if a number or the stamp could stand in two places."""
    text, body = item.text, len(item.text) - len(item.body)
    stamp = full_date(text)
    first = _RUN.search(text)
    if stamp is None and holds_clock(text):
        return None
    if stamp is not None and (first is None or first.start() != stamp[0]):
        return None
    runs = [match.span() for match in _RUN.finditer(text, 0, body + _SAID_REACH)]
    spans = [_place(runs, text, getattr(item, name)) for name in _NUMBERS]
    node = (0, 0) if item.node in (None, item.raw.hint_node) else _node(text[:body], item.node or "")
    if None in spans or node is None:
        return None
    return _Recipe(
        body=body,
        stamp=stamp,
        numbers=tuple((_FIELDS.index(name), *span) for name, span in zip(_NUMBERS, spans, strict=True) if span),
        node=node if node[1] else None,
        shared=tuple(getattr(item, name) if name in _FLAGS else None for name in _FIELDS[_OWN:]),
    )


def _place(runs: list[Span], text: str, number: int | None) -> Span | tuple[()] | None:
    """The one run of digits that is `number`; empty if there is no number, None if it cannot be told."""
    if number is None:
        return ()
    places = [span for span in runs if int(text[span[0] : span[1]]) == number]
    return places[0] if len(places) == 1 else None


def _node(prefix: str, node: str) -> Span | None:
    at = prefix.find(node)
    return (at, at + len(node)) if at >= 0 and prefix.find(node, at + 1) < 0 else None
