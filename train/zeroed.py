"""A line that shows a cause by its amounts, said again with amounts of zero: then it shows that there is nothing.

`swap used 31.2 GB, paging for 12 s` speaks for a cause; `swap used 0 GB, paging for 0 s` speaks for none.
"""

from __future__ import annotations

import re

#: An amount: a number with its unit behind it.
_AMOUNT = re.compile(
    r"(?<![\w.:/-])\d+(?:\.\d+)?(?= ?(?:%|(?:[mnu]?s|sec|secs|seconds|min|minutes|h|[KMGT]i?B|bytes)(?![\w/])))"
)
#: Words beside which an amount of zero is bad news, or which are bad news whatever the amount.
_BAD_AT_ZERO = re.compile(
    r"free|avail|left|remain|through|bandwidth|speed|rate|/s\b|util|busy|receiv|arriv|progress|fail|error|exception"
    r"|lost|down|refus|dead|kill|died|abort|crash|broken|unreach|timed? ?out|stuck|hang|hung|never|\bno\b|\bnot\b"
    r"|%\||NVIDIA|\+\d|drops|Device-to-Host|MiB \|"
    r"|without|only|cannot|unable|still|waiting for|limit|budget|timeout|done|after|expected|should",
    re.IGNORECASE,
)


def zeroed(text: str) -> str | None:
    """`text` with every amount zero; None where it states none, or where nothing of it would be no good news."""
    if _BAD_AT_ZERO.search(text) or not _AMOUNT.search(text):
        return None
    return _AMOUNT.sub("0", text)
