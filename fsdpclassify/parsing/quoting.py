"""Text that only quotes a message: a model's output, a prompt, a line of source code.

What a run trains on or writes may well hold the words of a timeout. Inside quotation marks, behind a name for such
text or as the argument of a call that would print it, they tell of no incident.
"""

from __future__ import annotations

import re

#: A name for text of a model or of a data set, right before the opening quotation mark.
_TEXT = re.compile(
    r"\b(?:prompt|completion|response|output|generat(?:ed|ion)|sample|answer|content|question|instruction|assistant"
    r"|user|input|prediction|target|reference|document|tokens?)s?(?:_text|_str)?['\"]?\]?\s{0,3}(?:[:=]|->|=>)\s{0,3}$",
    re.IGNORECASE,
)
#: The call or stream that would print the string.
_CODE = re.compile(
    r"(?:\b(?:print|warn|error|info|debug|critical|exception|log|LOG\(\w{1,12}\)|TORCH_CHECK\w*|C10_THROW_ERROR"
    r"|append|format|compile|search|match|raise \w{1,60}|assert\w{0,40}|throw [\w:]{1,60})\(.{0,60}"
    r"|<<\s?|c10::str\(|\breturn\s)$"
)
_MARKS = "\"'`"
_REACH = 4000


def is_quoted(text: str, start: int) -> bool:
    """Whether `start` of `text` lies inside quotation marks that open a model's text or a string of code."""
    before = text[max(0, start - _REACH) : start]
    for mark in _MARKS:
        at = before.rfind(mark)
        while at >= 0:
            lead = before[:at].rstrip("rbfu")
            if before.count(mark, at) % 2 and (_TEXT.search(lead[-80:]) or _CODE.search(lead[-120:])):
                return True
            at = before.rfind(mark, 0, at)
            if before.count(mark) > _MOST_MARKS:
                break
    return False


#: A line with more marks is data, and is not worth looking at mark by mark.
_MOST_MARKS = 64
