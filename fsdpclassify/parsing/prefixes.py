"""Prefixes off: raw frames become `Line`s that know who printed them and when.

The order matters: parts are joined (container records, hard wraps) before glued messages are parted and
prefixes peeled; ranks and clocks are settled last, over the whole input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from fsdpclassify.making import maker
from fsdpclassify.parsing.boot import with_boot_clock
from fsdpclassify.parsing.clock import find_stamp, settle
from fsdpclassify.parsing.containers import join_partial, unpack_json
from fsdpclassify.parsing.gluing import unglue
from fsdpclassify.parsing.labels import Labels, labels_of, take_label
from fsdpclassify.parsing.parts import with_parts
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
    labels = labels_of(tamed)
    peeled = [p for raw in unwrap(join_partial(tamed), opens_line) for p in _read_one(raw, shapes, labels)]
    ranks = Ranks.of(peeled)
    sources = [p.raw.source for p in peeled]
    times, dated = settle([p.stamp for p in peeled], sources)
    times = with_boot_clock(peeled, times)
    lines = []
    last: dict[int, float] = {}
    for item, source, time in zip(peeled, sources, times, strict=True):
        if time is not None:
            last[source] = time
        lines.append(_to_line(item, last.get(source), ranks))
    return with_parts(lines), dated


#: No number of any program is that long; Python refuses to convert thousands of digits.
_ENDLESS = re.compile(r"\d{60,}")
_ENDLESS_LINE = 60
#: What every 20th character of such a line holds: looking there first is many times faster.
_ENDLESS_SIGN = re.compile(r"\d{3}")


def _tamed(raw: RawLine) -> RawLine:
    """The line with hostile runs of digits cut to a length that every number fits into."""
    text = raw.text
    if len(text) < _ENDLESS_LINE or not _ENDLESS_SIGN.search(text[::20]) or not _ENDLESS.search(text):
        return raw
    return replace(raw, text=_ENDLESS.sub(lambda m: m[0][:18], raw.text))


def _read_one(raw: RawLine, shapes: Shapes, labels: Labels) -> Iterable[Peeled]:
    label = labels.get(raw.source)
    if label is not None:  # a shape does not know which file it is from
        return list(_split_and_peel(raw, label))
    known = shapes.recall(raw)
    if known is not None:
        return (known,)
    found = list(_split_and_peel(raw))
    if len(found) == 1 and found[0].text == raw.text:
        shapes.learn(found[0])
    return found


def _split_and_peel(raw: RawLine, label: re.Pattern[str] | None = None) -> Iterator[Peeled]:
    inner = unpack_json(raw.text)
    if inner is not None:
        raw = replace(raw, text=inner)
    labelled = label.match(raw.text) if label is not None else None
    front = labelled[0] if labelled else ""
    said = ""
    for piece in unglue(raw.text[len(front) :], prefixes_end):
        item = Peeled(raw=raw, text=piece, body=piece, node=raw.hint_node, front=said)
        said = (said + front + piece)[-_FRONT:]
        if labelled is not None:
            take_label(item, labelled)
        peel(item)
        item.text, front = front + piece, ""
        item.stamp = find_stamp(piece)
        item.said = said_rank(item)
        yield item


#: Of what stands in front of a glued message so much is kept: a bar, or the words of another rank.
_FRONT = 240
_line = maker(Line)


def _to_line(item: Peeled, time: float | None, ranks: Ranks) -> Line:
    return _line(
        source=item.raw.source,
        number=item.raw.number,
        text=item.text,
        body=item.body.strip(),
        rank=ranks.of_line(item),
        node=item.node,
        pid=item.pid,
        time=time,
        stamped=item.stamp is not None,
        unprefixed=item.plain,
        front=item.front,
    )
