"""Window lines -> the numeric facts of each line (`line_facts [n, k]` of the model).

The order of `LINE_FACTS` is the model's input order: a change raises `FEATURE_VERSION`.
"""

from __future__ import annotations

import math
import re

from fsdpclassify.numbers import list_spread, longest_duration, outlier
from fsdpclassify.records import Incident
from fsdpclassify.window import When, WindowLine

_BAR = re.compile(r"(\d{1,3})%\|")
_FRAME = re.compile(r'^\s*(?:File "|#\d+ \w|at \w|[\w.<>]+ \([\w./-]+:\d+\))')
_DEFAULT_TIMEOUT_S = 600.0

LINE_FACTS = (
    "before", "during", "after", "recency", "no_clock", "nearness", "last_of_rank",
    "rank_waiting", "rank_not_waiting", "rank_failed_or_missing", "rank_unknown", "unprefixed",
    "printed_by_share", "single_rank", "repeats", "duration_share", "has_duration", "duration_near_limit",
    "outlier", "is_detection", "is_frame", "is_system", "bar_open", "bar_done", "length", "list_spread",
)  # fmt: skip


def line_facts(row: WindowLine, incident: Incident, ranks_seen: int) -> list[float]:
    """The facts of one window line in the order of `LINE_FACTS`; every value lies in about [0, 1]."""
    limit = _limit(incident)
    duration = longest_duration(row.line.body)
    share = min((duration or 0.0) / limit, 2.0) / 2.0
    bar = _BAR.search(row.line.body)
    return [
        float(row.when is When.BEFORE),
        float(row.when is When.DURING),
        float(row.when is When.AFTER),
        _recency(row, limit),
        float(row.age_s is None),
        1.0 / (1.0 + row.distance / 4.0),
        float(row.last_of_rank),
        *_roles(row, incident),
        float(row.line.unprefixed and not row.system),
        len(row.ranks) / ranks_seen if ranks_seen else 0.0,
        float(len(row.ranks) == 1 and ranks_seen > 1),
        min(math.log1p(row.count) / 5.0, 1.0),
        share,
        float(duration is not None),
        float(duration is not None and 0.7 <= duration / limit <= 1.3),
        outlier(row.bodies, row.rank) / 5.0,
        float(row.is_detection),
        float(_FRAME.match(row.line.body) is not None),
        float(row.system),
        float(bar is not None and int(bar[1]) < 100),
        float(bar is not None and int(bar[1]) >= 100),
        min(len(row.text) / 400.0, 1.0),
        list_spread(row.line.body),
    ]


def _limit(incident: Incident) -> float:
    timeout = incident.collective.timeout_s if incident.collective else None
    return timeout or _DEFAULT_TIMEOUT_S


def _recency(row: WindowLine, limit: float) -> float:
    if row.age_s is None:
        return 0.5
    return math.exp(-abs(row.age_s) / (2.0 * limit))


def _roles(row: WindowLine, incident: Incident) -> tuple[float, float, float, float]:
    """Whether the printing rank waits, does not wait, failed or is missing, or cannot be told."""
    rank = row.rank
    if rank is None:
        return 0.0, 0.0, 0.0, 1.0
    waits = rank in incident.waiting
    gone = rank in incident.failed or rank in incident.missing
    return float(waits), float(not waits), float(gone), 0.0
