"""Time stamps as each program writes them. Times are seconds since the epoch, read as local time."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random


def moment(time: float) -> datetime:
    """The wall-clock moment of a time in seconds (always UTC, so output never depends on the machine)."""
    return datetime.fromtimestamp(time, UTC)


def c10(time: float, rng: Random) -> str:
    """The stamp of a c10 C++ line: month and day without padding, nine digits from another clock."""
    at = moment(time)
    # What a process prints in one burst lies a few hundred microseconds apart, never a round step.
    micros = int(((time + rng.uniform(0.0, 0.0009) + 0.37) % 1) * 1e6)
    return f"{at.month}{at.day:02d} {at:%H:%M:%S}.{micros:06d}{rng.randrange(1000):03d}"


def elastic(time: float) -> str:
    """The stamp of torch's Python logging: padded, milliseconds followed by three zeros."""
    at = moment(time)
    return f"{at:%m%d %H:%M:%S}.{at.microsecond // 1000:03d}000"


def comma(time: float) -> str:
    """`2026-03-05 04:11:09,117`, the default of Python logging."""
    at = moment(time)
    return f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}"


def plain(time: float) -> str:
    """`2026-03-05 04:11:09`."""
    return f"{moment(time):%Y-%m-%d %H:%M:%S}"


def micro(time: float) -> str:
    """`2026-03-05 04:11:09.117342`, as recent Megatron writes it."""
    return f"{moment(time):%Y-%m-%d %H:%M:%S.%f}"


def report(time: float) -> str:
    """`2026-03-05_04:11:09`, as the torchrun report writes it."""
    return f"{moment(time):%Y-%m-%d_%H:%M:%S}"


def iso(time: float) -> str:
    """`2026-03-05T04:11:09`."""
    return f"{moment(time):%Y-%m-%dT%H:%M:%S}"


def nano(time: float, rng: Random) -> str:
    """`2026-03-05T04:11:09.117342001Z`, as container runtimes stamp a line."""
    return f"{moment(time):%Y-%m-%dT%H:%M:%S.%f}{rng.randrange(1000):03d}Z"


def syslog(time: float) -> str:
    """`Mar  5 04:11:09`, as the system journal prints it."""
    at = moment(time)
    return f"{at:%b} {at.day:2d} {at:%H:%M:%S}"


def hour(time: float) -> str:
    """`04:11:09`."""
    return f"{moment(time):%H:%M:%S}"


def span(seconds: float) -> str:
    """A duration as progress bars write it: `04:43` or `1:22:01`."""
    whole = int(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60:02d}:{rest % 60:02d}"
