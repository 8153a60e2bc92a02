"""What each torch release prints; the numbers are those of released wheels, and a world may shift them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Torch:
    """One release. `lines` maps a message to its source line; zero means the release has no such message."""

    minor: int
    weight: int
    timeout: int
    some: int
    avoid: int
    thread: int = 0
    status: int = 0
    status2: int = 0
    stack: int = 0
    first: int = 0
    received: int = 0
    preparing: int = 0
    default_timeout: int = 600
    heartbeat: int = 600
    nccl: tuple[str, ...] = ("2.21.5",)
    years: tuple[int, int] = (2025, 2026)
    python: tuple[str, ...] = ("3.10", "3.11", "3.12")
    elastic_signal: int = 900
    elastic_failed: int = 874

    @property
    def text(self) -> str:
        """The release as people write it."""
        return f"1.{self.minor - 100}" if self.minor >= 100 else f"2.{self.minor}"

    @property
    def rank(self) -> int:
        """Position in time, so releases of 1.x and 2.x compare."""
        return self.minor - 200 if self.minor >= 100 else self.minor


_OLD = ("3.8", "3.9", "3.10")

#: Releases 1.11 to 2.14; weights follow how often each shows in public reports.
RELEASES: tuple[Torch, ...] = (
    Torch(
        minor=111,
        weight=2,
        timeout=587,
        some=341,
        avoid=0,
        default_timeout=1800,
        nccl=("2.10.3",),
        years=(2022, 2022),
        python=_OLD,
    ),
    Torch(
        minor=112,
        weight=2,
        timeout=737,
        some=445,
        avoid=0,
        default_timeout=1800,
        nccl=("2.10.3",),
        years=(2022, 2023),
        python=_OLD,
    ),
    Torch(
        minor=113,
        weight=2,
        timeout=821,
        some=455,
        avoid=460,
        default_timeout=1800,
        nccl=("2.14.3",),
        years=(2022, 2023),
        python=_OLD,
    ),
    Torch(
        minor=0,
        weight=4,
        timeout=828,
        some=455,
        avoid=460,
        thread=0,
        default_timeout=1800,
        nccl=("2.14.3",),
        years=(2023, 2023),
        python=_OLD,
    ),
    Torch(
        minor=1,
        weight=5,
        timeout=474,
        some=488,
        avoid=494,
        thread=915,
        default_timeout=1800,
        nccl=("2.18.1", "2.18.5", "2.18.6"),
        years=(2023, 2024),
        python=_OLD,
    ),
    Torch(minor=2, weight=4, timeout=523, some=537, avoid=543, thread=1182, nccl=("2.19.3",), years=(2024, 2024)),
    Torch(
        minor=3,
        weight=4,
        timeout=563,
        some=577,
        avoid=583,
        thread=1414,
        status=1537,
        nccl=("2.20.5",),
        years=(2024, 2024),
    ),
    Torch(
        minor=4,
        weight=5,
        timeout=607,
        some=621,
        avoid=627,
        thread=1515,
        status=1664,
        status2=1709,
        nccl=("2.20.5",),
        years=(2024, 2025),
        elastic_signal=858,
        elastic_failed=833,
    ),
    Torch(
        minor=5,
        weight=7,
        timeout=616,
        some=630,
        avoid=636,
        thread=1595,
        status=1785,
        status2=1834,
        nccl=("2.21.5",),
        years=(2024, 2025),
        elastic_signal=897,
        elastic_failed=869,
    ),
    Torch(
        minor=6,
        weight=14,
        timeout=629,
        some=681,
        avoid=695,
        thread=1895,
        status=2168,
        stack=667,
        received=1682,
        preparing=1475,
        first=2041,
        heartbeat=480,
        nccl=("2.21.5",),
        years=(2025, 2026),
        elastic_signal=897,
        elastic_failed=869,
    ),
    Torch(
        minor=7,
        weight=12,
        timeout=632,
        some=684,
        avoid=698,
        thread=1902,
        status=2271,
        stack=670,
        first=2106,
        received=1746,
        preparing=1536,
        heartbeat=480,
        nccl=("2.26.2",),
        years=(2025, 2026),
        elastic_signal=900,
        elastic_failed=874,
    ),
    Torch(
        minor=8,
        weight=7,
        timeout=685,
        some=746,
        avoid=760,
        thread=2051,
        status=2235,
        stack=732,
        first=2568,
        received=1852,
        preparing=1569,
        heartbeat=480,
        nccl=("2.27.3",),
        years=(2025, 2026),
        elastic_signal=908,
        elastic_failed=882,
    ),
    Torch(
        minor=9,
        weight=9,
        timeout=683,
        some=744,
        avoid=758,
        thread=2057,
        status=2241,
        stack=730,
        first=2573,
        received=1858,
        preparing=1575,
        heartbeat=480,
        nccl=("2.27.5",),
        years=(2025, 2026),
        elastic_signal=1008,
        elastic_failed=982,
    ),
    Torch(
        minor=10,
        weight=7,
        timeout=691,
        some=744,
        avoid=758,
        thread=2057,
        status=2241,
        stack=730,
        first=2573,
        received=1858,
        preparing=1575,
        heartbeat=480,
        nccl=("2.27.5", "2.28.9"),
        years=(2026, 2026),
        elastic_signal=1010,
        elastic_failed=984,
    ),
    Torch(
        minor=11,
        weight=5,
        timeout=686,
        some=747,
        avoid=761,
        thread=2063,
        status=2247,
        stack=733,
        first=2636,
        received=1914,
        preparing=1628,
        heartbeat=480,
        nccl=("2.28.9", "2.29.3"),
        years=(2026, 2026),
        elastic_signal=1014,
        elastic_failed=988,
    ),
    Torch(
        minor=13,
        weight=3,
        timeout=757,
        some=815,
        avoid=829,
        thread=2140,
        status=2395,
        stack=801,
        first=2732,
        received=1987,
        preparing=1700,
        heartbeat=480,
        nccl=("2.29.3", "2.29.7"),
        years=(2026, 2026),
        elastic_signal=1032,
        elastic_failed=1002,
    ),
    Torch(
        minor=14,
        weight=2,
        timeout=757,
        some=815,
        avoid=829,
        thread=2140,
        status=2395,
        stack=801,
        first=2732,
        received=1987,
        preparing=1700,
        heartbeat=480,
        nccl=("2.30.7",),
        years=(2026, 2026),
        elastic_signal=1032,
        elastic_failed=1002,
    ),
)


def pick_release(rng: Random) -> Torch:
    """A release, weighted by how often it is seen."""
    return rng.choices(RELEASES, [release.weight for release in RELEASES])[0]


def nccl_number(version: str) -> int:
    """`2.21.5` -> 2105, so that versions compare as integers."""
    return int(version.split(".")[1]) * 100 + int(version.split(".")[2])
