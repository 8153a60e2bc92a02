"""Lines that differ in their digits alone are peeled alike: what was cut once is only read off again.

A large log repeats few shapes many times. Every prefix rule treats all digits the same, so for a shape
that was peeled before it is known where its body begins and which run of digits is which number.
Shapes for which that cannot be told for sure (a glued line, a JSON record, a stamp that is not the
first number of its line) are peeled afresh every time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recipe:
    """Where in a line of one shape its body, its stamp and its numbers stand; flags are the shape's own."""

    body: int
    stamp: Span | None
    numbers: tuple[Span | None, ...]
    node: Span | None
    brackets: int
    c10: bool
    cpp: bool
    headed: bool
    plain: bool


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
        ranks = [None if span is None else int(text[span[0] : span[1]]) for span in recipe.numbers]
        node = raw.hint_node if recipe.node is None else text[recipe.node[0] : recipe.node[1]]
        return Peeled(
            raw, text, text[recipe.body :], ranks[0], ranks[1], recipe.brackets, ranks[2], ranks[3], ranks[4], node,
            ranks[5], ranks[6], self._stamp(text, recipe.stamp), recipe.c10, recipe.cpp, recipe.headed, recipe.plain,
        )  # fmt: skip

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

    def _stamp(self, text: str, span: Span | None) -> Stamp | None:
        if span is None:
            return None
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
        numbers=tuple(span or None for span in spans),
        node=node if node[1] else None,
        brackets=item.brackets,
        c10=item.c10,
        cpp=item.cpp,
        headed=item.headed,
        plain=item.plain,
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
