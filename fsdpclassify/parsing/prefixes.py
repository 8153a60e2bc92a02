"""Prefixes off: raw frames become `Line`s that know who printed them and when.

The order matters: parts are joined (container records, hard wraps) before glued messages are parted and
prefixes peeled; ranks and clocks are settled last, over the whole input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from fsdpclassify.parsing.clock import find_stamp, settle
from fsdpclassify.parsing.containers import join_partial, unpack_json
from fsdpclassify.parsing.gluing import unglue
from fsdpclassify.parsing.peeling import Peeled, opens_line, peel, prefixes_end
from fsdpclassify.parsing.ranks import Ranks, said_rank
from fsdpclassify.parsing.shapes import Shapes
from fsdpclassify.parsing.unwrapping import unwrap
from fsdpclassify.records import Line, RawLine


def read_lines(raws: Iterable[RawLine]) -> tuple[list[Line], bool]:
    """Peel the prefixes of `raws` (in file order) and settle which numbers are global ranks.

    Lines without a stamp take the time of the last stamp before them in their file. The second value
    says whether the times are on a real calendar (a year was printed somewhere).
    """
    shapes = Shapes()
    tamed = [_tamed(raw) for raw in raws]
    peeled = [p for raw in unwrap(join_partial(tamed), opens_line) for p in _read_one(raw, shapes)]
    ranks = Ranks.of(peeled)
    times, dated = settle([p.stamp for p in peeled], [p.source for p in peeled])
    lines = []
    last: dict[int, float] = {}
    for item, time in zip(peeled, times, strict=True):
        if time is not None:
            last[item.source] = time
        lines.append(_to_line(item, last.get(item.source), ranks))
    return lines, dated


#: No number of any program is that long; Python refuses to convert thousands of digits.
_ENDLESS = re.compile(r"\d{60,}")
_ENDLESS_LINE = 60


def _tamed(raw: RawLine) -> RawLine:
    """The line with hostile runs of digits cut to a length that every number fits into."""
    if len(raw.text) < _ENDLESS_LINE or not _ENDLESS.search(raw.text):
        return raw
    return replace(raw, text=_ENDLESS.sub(lambda m: m[0][:18], raw.text))


def _read_one(raw: RawLine, shapes: Shapes) -> Iterable[Peeled]:
    known = shapes.recall(raw)
    if known is not None:
        return (known,)
    found = list(_split_and_peel(raw))
    if len(found) == 1 and found[0].text == raw.text:
        shapes.learn(found[0])
    return found


def _split_and_peel(raw: RawLine) -> Iterator[Peeled]:
    inner = unpack_json(raw.text)
    if inner is not None:
        raw = replace(raw, text=inner)
    for piece in unglue(raw.text, prefixes_end):
        item = peel(Peeled(raw=raw, text=piece, body=piece, node=raw.hint_node))
        item.text = piece
        item.stamp = find_stamp(piece)
        item.said = said_rank(item)
        yield item


def _to_line(item: Peeled, time: float | None, ranks: Ranks) -> Line:
    return Line(
        source=item.source,
        number=item.raw.number,
        text=item.text,
        body=item.body.strip(),
        rank=ranks.of_line(item),
        node=item.node,
        pid=item.pid,
        time=time,
        stamped=item.stamp is not None,
        unprefixed=item.plain,
    )
