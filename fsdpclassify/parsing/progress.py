"""Steps, step times and progress bars: what shows that a rank was alive and how far it got."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fsdpclassify.making import maker
from fsdpclassify.parsing.rule import Rule, event, simple
from fsdpclassify.records import Event, EventKind, Line

_BAR = re.compile(
    r"(?P<pct>\d{1,3})%\|[^|]{0,200}\| *(?P<step>[\d,.]+[kMG]?)/(?P<total>[\d,.]+[kMG]?) "
    r"\[(?P<spent>[\d:]+)<(?P<left>[\d:?]+)(?:, *(?P<rate>[\d.]+|\?) ?(?P<unit>[\w ]{1,20}/s|s/[\w ]{1,12}))?"
)
#: A bar's name stands before its percentage, behind what another bar left on the line.
_NAME_REACH = 80
_NAME = re.compile(r"[|\r\n\]]")
#: `step`, `iter` or `iteration` in any case, `global_` before it, at the start of a word. A set of plain characters
#: stands first, and what must lie before it is looked at behind it: that is found several times faster.
_STEP = re.compile(
    r"[GgSsIi](?<![^\s\[{('\",|/][GgSsIi])(?:(?<=[Gg])[Ll][Oo][Bb][Aa][Ll][_ ][SsIi])?"
    r"(?:(?<=[Ss])[Tt][Ee][Pp]|(?<=[Ii])[Tt][Ee][Rr](?:[Aa][Tt][Ii][Oo][Nn])?)"
    r"['\"]?\s{0,4}[:=# ]\s{0,10}(?P<step>\d{1,9})(?:\s{0,10}/\s{0,10}(?P<total>\d{1,9}))?"
    r"(?![\d.]*[smhxSMHX%]|\d*\.\d)"
)
_TIME = re.compile(
    r"(?:elapsed time per iteration \(ms\): (?P<ms>[\d.]+)|\b(?:train_)?(?:step|iter|batch|train)[_ ]?tim(?:e"
    r"|ing)(?: in s| \(s\)|_s)?\W{1,3}(?P<sec>[\d.]+)(?P<unit>ms)?)",
    re.IGNORECASE,
)
#: What a step time holds from its `tim` on.
_TIMED = re.compile(r"tim(?:e per iteration \(ms\): [\d.]|(?:e|ing)(?: in s| \(s\)|_s)?\W{1,3}[\d.])", re.IGNORECASE)
#: More than `train_step_` and `elapsed `, which stand before `time`.
_TIME_LEAD = 16


def _seconds(clock: str) -> float:
    value = 0.0
    for part in clock.split(":"):
        value = value * 60 + (float(part) if part.isdigit() else 0.0)
    return value


def _count(text: str) -> int | None:
    digits = text.replace(",", "").rstrip("kMG").split(".")[0]
    return int(digits) if digits.isdigit() else None


def _bar(match: re.Match[str], line: Line) -> Iterable[Event]:
    rate = match["rate"]
    per_item = None
    if rate and rate not in ("?", ".") and float(rate) > 0:
        per_item = float(rate) if (match["unit"] or "").startswith("s/") else 1.0 / float(rate)
    yield event(
        EventKind.PROGRESS,
        line,
        name=_NAME.split(match.string[max(0, match.start() - _NAME_REACH) : match.start()])[-1].strip(" :\t")[-60:],
        step=_count(match["step"]),
        total=_count(match["total"]),
        elapsed_s=_seconds(match["spent"]),
        value=per_item,
        detail=match["pct"],
    )


_event = maker(Event)


def _step(match: re.Match[str], line: Line) -> Iterable[Event]:
    spent = _time_in(line.body)
    value = _pace(line.body)
    if spent is not None:
        value = float(spent["ms"]) / 1000 if spent["ms"] else _number(spent["sec"]) * (0.001 if spent["unit"] else 1.0)
    total = match["total"]
    # Made directly, since there are more steps than events of all other kinds together.
    yield _event(
        kind=EventKind.STEP,
        line=line,
        rank=_rank(line),
        time=line.time,
        step=int(match["step"]),
        total=None if total is None else int(total),
        value=value,
    )


def _time_in(body: str) -> re.Match[str] | None:
    """The first step time; every form of it holds `tim`, which is found much faster than the forms are."""
    lower = body.lower()
    if len(lower) != len(body):  # a few letters become two
        return _TIME.search(body)
    at = lower.find("tim")
    while at >= 0 and not _TIMED.match(body, at):
        at = lower.find("tim", at + 1)
    return None if at < 0 else _TIME.search(body, max(0, at - _TIME_LEAD))


#: `2.31 s/step`, `109 ms/it`: the slash is looked for first.
_PACE = re.compile(r"(?P<number>\d{1,9}(?:\.\d{1,9})?) ?(?P<unit>ms|s|sec|secs)/(?:step|iter|it|batch)\b")


def _pace(body: str) -> float | None:
    """Seconds a step that are printed as a rate; None without one."""
    match = _PACE.search(body) if "/step" in body or "/it" in body or "/batch" in body else None
    return None if match is None else float(match["number"]) * (0.001 if match["unit"] == "ms" else 1.0)


def _number(text: str) -> float:
    try:
        return float(text.strip("."))
    except ValueError:
        return 0.0


_OWN_RANK = re.compile(r"\brank[ :=]{1,2}(\d{1,6})\b", re.IGNORECASE)


def _rank(line: Line) -> int | None:
    """A step line without a prefix may still name its rank in the text (`train, rank: 2, epoch…`)."""
    if line.rank is not None:
        return line.rank
    match = _OWN_RANK.search(line.body[:200])
    return int(match[1]) if match else None


RULES = (
    Rule(name="bar", anchor=r"%\|", pattern=_BAR, build=_bar),
    Rule(name="step", anchor=r"[Ss][Tt][Ee][Pp]|[Ii][Tt][Ee][Rr]", pattern=_STEP, build=_step),
    Rule(
        name="finished",
        anchor=(
            r"stopped: `max_|[Tt]raining (?:is )?(?:complete|finished|done)|[Ff]inished training"
            r"|TRAINING (?:COMPLETE|DONE|FINISHED)"
        ),
        pattern=re.compile(
            r"stopped: `max_\w+|[Tt]raining (?:is )?(?:complete|finished|done)|[Ff]inished training"
            r"|TRAINING (?:COMPLETE|DONE|FINISHED)"
        ),
        build=simple(EventKind.FINISHED),
    ),
)
