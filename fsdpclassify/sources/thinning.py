"""Which lines of a kept region are made: repetitions of what a printer said many times are left out.

Two kinds of places are thinned. Samples spread over a text are there for step times and for what is
rare. Far before a detection the last lines of each printer count; of what lies behind those, steps and
a few of each kind. Lines whose printer cannot be told are never left out there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from fsdpclassify.sources.limits import Limits
from fsdpclassify.sources.reach import PRINTERS

#: A step or a progress bar, roughly; looking for plain words is many times faster than a pattern.
_STEP_WORDS = (b"tep", b"STEP", b"iter", b"Iter", b"%|")
_DIGITS = b"0123456789"
_TRIED_BYTES = 64 * 1024
#: Of a kind of line that is no step, so many are made from all samples together.
_OF_A_KIND = 16

Zone = tuple[int, int]


@dataclass(slots=True, kw_only=True)
class Thinner:
    """Thins the lines of one text; `zones` are the stretches (offsets) that end at a detection."""

    limits: Limits
    zones: Sequence[Zone] = ()
    _kinds: dict[bytes, int] = field(default_factory=dict)
    _printer: re.Pattern[bytes] | None = None

    def sample(self, lines: Sequence[bytes]) -> list[int]:
        """Which lines of a sample are made: some steps of each printer, and the first ones of each other kind."""
        printer = self._named_by(lines)
        steps: dict[bytes, int] = {}
        most = self.limits.sample_steps
        kept: list[int] = []
        for index, line in enumerate(lines):  # kept in one loop: tens of thousands of lines go through it
            if not _is_step(line):
                if not self._is_new_kind(line):
                    continue
            elif printer is not None and (match := printer.search(line)) is not None:
                who = match[0]
                steps[who] = said = steps.get(who, 0) + 1
                if said > most:
                    continue
            kept.append(index)
        return kept

    def _is_new_kind(self, line: bytes) -> bool:
        key = line.translate(None, _DIGITS)
        self._kinds[key] = said = self._kinds.get(key, 0) + 1
        return said <= _OF_A_KIND

    def zone_in(self, start: int, end: int) -> Zone | None:
        """The part of the text from offset `start` to `end` that is thinned, if any."""
        for low, high in self.zones:
            if max(low, start) < min(high, end):
                return max(low, start), min(high, end)
        return None

    def before(self, lines: Sequence[bytes]) -> list[int]:
        """Which of the `lines` that end at a detection are made."""
        printer = self._named_by(lines)
        if printer is None:
            return list(range(len(lines)))
        search, most = printer.search, self.limits.last_lines
        said: dict[bytes, int] = {}
        kinds: dict[tuple[bytes, bytes], int] = {}
        kept: list[int] = []
        for index in range(len(lines) - 1, -1, -1):
            if (match := search(lines[index])) is not None:
                who = match[0]
                said[who] = count = said.get(who, 0) + 1
                if count > most and not self._is_wanted(who, lines[index], kinds):
                    continue
            kept.append(index)
        return kept[::-1]

    def _named_by(self, lines: Sequence[bytes]) -> re.Pattern[bytes] | None:
        """What the text's lines name their printer by; one answer holds for all of a text."""
        self._printer = self._printer or _printer(lines)
        return self._printer

    def _is_wanted(self, who: bytes, line: bytes, kinds: dict[tuple[bytes, bytes], int]) -> bool:
        is_step = _is_step(line)
        key = (who, b"" if is_step else line.translate(None, _DIGITS))
        kinds[key] = count = kinds.get(key, 0) + 1
        return count <= (self.limits.steps_each if is_step else self.limits.repeats_each)


def _is_step(line: bytes) -> bool:
    step, upper, low, first, bar = _STEP_WORDS
    return step in line or low in line or bar in line or first in line or upper in line


def _printer(lines: Sequence[bytes]) -> re.Pattern[bytes] | None:
    """What most of the last lines name their printer by; None if most name none."""
    tried = b"\n".join(lines[-_TRIED_BYTES // 128 :])
    counts = [len(each.findall(tried)) for each in PRINTERS]
    most = max(counts)
    return PRINTERS[counts.index(most)] if 2 * most >= tried.count(b"\n") + 1 else None
