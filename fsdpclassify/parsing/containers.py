"""Records of container runtimes: one log line cut into several records, or put into a JSON string."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from fsdpclassify.records import RawLine

#: CRI files: `<time> <stream> P <part>` goes on in the next record of the same stream.
_CRI = re.compile(r"\S{20,40} (stdout|stderr) ([FP]) ")
_CLOCK = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_LONGEST = 64 * 1024
#: Keys under which log shippers and clouds keep the line; of the last two only with a key of CloudWatch beside.
_HOLDERS = ('"log"', '"@message"', '"textPayload"', '"logStreamName"', '"ingestionTime"')
_CLOUDWATCH = ("logStreamName", "ingestionTime", "eventId")
_MILLIS_END = 4_102_444_800_000


def join_partial(raws: Sequence[RawLine]) -> Sequence[RawLine]:
    """`raws` with the parts of CRI lines joined under the number of the first; others unchanged."""
    if not any(" P " in raw.text[:60] and _CRI.match(raw.text) for raw in raws):
        return raws
    joined: list[RawLine] = []
    open_at: dict[tuple[int, str], int] = {}
    for raw in raws:
        match = _CRI.match(raw.text)
        key = (raw.source, match[1] if match else "")
        if match is not None and key in open_at and len(joined[open_at[key]].text) < _LONGEST:
            at = open_at[key]
            joined[at] = replace(joined[at], text=joined[at].text + raw.text[match.end() :])
        else:
            open_at.pop(key, None)
            joined.append(raw)
        if match is not None and match[2] == "P":
            open_at.setdefault(key, len(joined) - 1)
        elif match is not None:
            open_at.pop(key, None)
    return joined


def unpack_json(text: str) -> str | None:
    """The line inside a Docker, log-shipper or cloud record, with the record's time in front; None for other text."""
    if not text.startswith("{") or not any(key in text for key in _HOLDERS):
        return None
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    line = record.get("log", record.get("@message", record.get("textPayload")))
    if line is None and any(key in record for key in _CLOUDWATCH):
        line = record.get("message")  # elsewhere a message is a program's own, beside its rank and level
    if not isinstance(line, str):
        return None
    time = _time(record.get("time", record.get("@timestamp", record.get("timestamp", ""))))
    return f"{time} {line.rstrip()}" if _CLOCK.match(time) else line.rstrip()


def _time(value: object) -> str:
    """A record's time as ISO text; CloudWatch counts milliseconds since 1970."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MILLIS_END:
        return str(value)
    return f"{datetime.fromtimestamp(value // 1000, tz=UTC):%Y-%m-%dT%H:%M:%S}.{value % 1000:03d}Z"
