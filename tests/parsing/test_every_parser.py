"""What every parser module must stand: texts that its own patterns match, cut and mixed with arbitrary bytes."""

from __future__ import annotations

import importlib
import io
import pkgutil
import re
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fsdpclassify.parsing as parsing
from fsdpclassify.parsing import RULES
from fsdpclassify.parsing.rule import Rule
from fsdpclassify.reading import find
from fsdpclassify.sources import Source, collect, from_text

MODULES = {
    info.name: tuple(rules)
    for info in pkgutil.iter_modules(parsing.__path__)
    if (rules := getattr(importlib.import_module(f"fsdpclassify.parsing.{info.name}"), "RULES", ()))
}
Seen = list[tuple[object, ...]]
RUNS = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def _writable(rule: Rule) -> re.Pattern[str]:
    """The rule's pattern, in words from which texts can be made where it looks back at what it has read."""
    if rule.name != "step":
        return rule.pattern
    return re.compile(r"(?:global[_ ])?(?:step|iteration|iter)['\"]?\s{0,4}[:=# ]\s{0,10}\d{1,9}", re.IGNORECASE)


def matching(rules: Iterable[Rule]) -> st.SearchStrategy[str]:
    """Lines that hold a match of one of the patterns, whole or cut, behind some prefix."""
    texts = st.one_of([st.from_regex(_writable(rule)) for rule in rules])
    prefixes = st.sampled_from(["", "[rank3]: ", "2026-03-05T04:11:20Z ", "[default1]:", "(Worker pid=7) ", "node3: "])
    return st.builds(lambda prefix, text, end: prefix + text[:end], prefixes, texts, st.integers(4, 400))


def logs(rules: Iterable[Rule]) -> st.SearchStrategy[bytes]:
    """A few such lines as bytes, with junk in between."""
    junk = st.binary(max_size=8).map(lambda data: b"some words and " + bytes(b if b > 31 else 46 for b in data))
    line = matching(rules).map(lambda text: _one_line(text).encode("utf-8", "replace"))
    return st.lists(st.one_of(line, line, junk), min_size=1, max_size=5).map(
        lambda lines: b"\n".join([b"begin", *lines, b""])
    )


def _one_line(text: str) -> str:
    """Without what ends lines or, in such numbers, makes a file a binary one."""
    return "".join(char if char.isprintable() else " " for char in text)


def seen(sources: list[Source], source: int = 0) -> Seen:
    """Everything that the events of one source say, the line's text included."""
    found = find(sources)
    shown = [e for e in found.events if e.line.source == source]
    return [
        (
            e.kind,
            e.line.number,
            e.line.text,
            e.rank,
            e.time,
            e.op,
            e.seq,
            e.group,
            e.step,
            e.total,
            e.value,
            e.code,
            e.name,
            e.detail,
        )
        for e in shown
    ]


class Dripping(io.RawIOBase):
    """Gives as many bytes a read as it is told."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self.data, self.sizes = data, sizes

    def read(self, size: int = -1) -> bytes:
        step = min(size, self.sizes.pop() if self.sizes else size)
        part, self.data = self.data[:step], self.data[step:]
        return part


def dripped(data: bytes, sizes: list[int]) -> list[Source]:
    return collect(["-"], stdin=Dripping(data, sizes))  # type: ignore[arg-type]


def test_all_modules_are_in_use() -> None:
    assert {rule.name for rules in MODULES.values() for rule in rules} == {rule.name for rule in RULES}


def test_names_of_rules_are_unique() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("module", MODULES)
def test_bytes_around_a_match_never_raise_and_chunks_line_ends_and_files_change_nothing(module: str) -> None:
    @RUNS
    @given(logs(MODULES[module]), st.lists(st.integers(1, 40), max_size=30))
    def check(data: bytes, sizes: list[int]) -> None:
        expected = seen(from_text([data]))
        assert seen(dripped(data, sizes)) == expected, "chunk borders"
        assert seen(from_text([data.replace(b"\n", b"\r\n")])) == expected, "line ends"
        assert seen(from_text([b"nothing of note\n", data]), source=1) == expected, "another file before it"

    check()


@pytest.mark.parametrize("module", MODULES)
def test_frames_of_a_rewritten_line_are_read_like_lines(module: str) -> None:
    @RUNS
    @given(matching(MODULES[module]).map(_one_line))
    def check(text: str) -> None:
        alone = [row[2:] for row in seen(from_text([f"{text}\nstep 4 of it\n"]))]
        framed = [row[2:] for row in seen(from_text([f"{text}\rstep 4 of it\n"]))]
        assert framed == alone

    check()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_anchor_stands_in_every_match(rule: Rule) -> None:
    """Large inputs are scanned for anchors alone: a match without its anchor would be lost there."""
    gate = re.compile(rule.anchor)

    @RUNS
    @given(st.from_regex(_writable(rule)))
    def check(text: str) -> None:
        match = rule.pattern.search(text)
        assert match is None or gate.search(match.string), text

    check()
