"""How much of a large input is kept, in bytes of text; one place for every number of the plan."""

from __future__ import annotations

from dataclasses import dataclass, replace

_KIB = 1024
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes of the regions that are read to lines.

    `whole_bytes`, `whole_lines`: inputs that hold no more than this in all are read line by line.
    `kept_bytes`: about how much is kept of all large inputs together. The others are per input, and
    shrink with the share of `kept_bytes` that falls to an input when there are many.
    `bytes_per_line` bounds the number of lines that are made of a region, for a line costs memory
    however short it is. Before a detection all of the `last_lines` of each printer are made, and of
    those behind them `steps_each` steps and `repeats_each` of every other kind; of a sample
    `sample_steps` steps of each printer.
    """

    whole_bytes: int = 8 * _MIB
    whole_lines: int = 300_000
    kept_bytes: int = 24 * _MIB
    head_bytes: int = 64 * _KIB
    tail_bytes: int = 256 * _KIB
    before_bytes: int = 2 * _MIB
    after_bytes: int = 256 * _KIB
    clusters: int = 8
    around_bytes: int = 1 * _KIB
    around_count: int = 400
    sample_count: int = 40
    sample_bytes: int = 32 * _KIB
    reach_bytes: int = 16 * _MIB
    lines_per_prefix: int = 100
    bytes_per_line: int = 40
    last_lines: int = 104
    steps_each: int = 72
    sample_steps: int = 2
    repeats_each: int = 2

    def share(self, inputs: int) -> int:
        """Bytes that may be kept of one of so many inputs."""
        return max(16 * _KIB, self.kept_bytes // max(1, inputs))

    def for_one_of(self, inputs: int) -> Limits:
        """These limits for one of so many large inputs."""
        share = self.share(inputs)
        samples = min(self.sample_bytes * self.sample_count, share // 8)
        size = min(self.sample_bytes, max(2 * _KIB, samples // self.sample_count))
        before = min(self.before_bytes, share // 5)
        after = min(self.after_bytes, share // 16)
        return replace(
            self,
            head_bytes=min(self.head_bytes, share // 16),
            tail_bytes=min(self.tail_bytes, share // 4),
            before_bytes=before,
            after_bytes=after,
            clusters=max(1, min(self.clusters, share // 2 // (before + after))),
            around_count=min(self.around_count, share // 8 // (3 * self.around_bytes)),
            sample_count=min(self.sample_count, samples // size),
            sample_bytes=size,
            # Where one input gets less than the usual stretch there are many, each of few printers.
            reach_bytes=self.reach_bytes if before == self.before_bytes else 0,
        )


DEFAULT_LIMITS = Limits()
