"""Render the templates of the line inventory: text with `{slot}` and `{slot:argument}` becomes a line.

Input: a template, a `random.Random` and a context. Output: one line (no newline is added). The same template,
random state and context give the same line. `data/lines/README.md` lists the slots.

The context may hold, under a slot's own name, the value to print (`rank`, `host`, `step`, …). Three keys are
not slots: `time` (seconds since the epoch, for the stamps), `timeout_s` (for the durations, default 600) and
`base` (an integer near which `more` and `fewer` lie). What the context lacks is drawn.
A duration in the context is in seconds and is printed in the unit that the argument asks for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from train import slot_values as values

Context = Mapping[str, object]
Draw = Callable[[Random, Context, str | None], str]

#: Literal double braces, a slot, or a stray brace (an error).
_TOKEN = re.compile(r"\{\{|\}\}|\{(?P<name>[a-z_]+)(?::(?P<argument>[^{}]*))?\}|[{}]")


class SlotError(ValueError):
    """A template with a stray brace, an unknown slot or an argument that the slot cannot take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One slot of a template; `argument` is what stands after the colon, or None."""

    name: str
    argument: str | None


@lru_cache(maxsize=8192)
def parse(template: str) -> tuple[str | Slot, ...]:
    """Split a template into literal text and slots. Raises `SlotError`."""
    parts: list[str | Slot] = []
    end = 0
    for match in _TOKEN.finditer(template):
        parts.append(template[end : match.start()])
        parts.append(_part(match, template))
        end = match.end()
    parts.append(template[end:])
    return tuple(part for part in parts if part != "")


def _part(match: re.Match[str], template: str) -> str | Slot:
    text, name = match.group(), match.group("name")
    if text in ("{{", "}}"):
        return text[0]
    if name is None:
        raise SlotError(f"stray {text!r} at {match.start()} in {template!r}: literal braces are doubled")
    if name not in DRAWS:
        raise SlotError(f"unknown slot {name!r} in {template!r}; known: {', '.join(sorted(DRAWS))}")
    return Slot(name=name, argument=match.group("argument"))


def render(template: str, rng: Random, context: Context | None = None) -> str:
    """Fill every slot. Raises `SlotError`."""
    known: Context = context or {}
    return "".join(part if isinstance(part, str) else _fill(part, rng, known) for part in parse(template))


def _fill(slot: Slot, rng: Random, context: Context) -> str:
    try:
        return DRAWS[slot.name](rng, context, slot.argument)
    except (ValueError, IndexError) as error:
        raise SlotError(f"slot {slot.name!r} cannot take {slot.argument!r}: {error}") from error


def neutral(template: str, filler: str = "7") -> str:
    """The template with every slot replaced by `filler` and literal braces single. Raises `SlotError`."""
    return "".join(part if isinstance(part, str) else filler for part in parse(template))


def _given(name: str, draw: Callable[[Random], str]) -> Draw:
    """A slot that prints the context's value, or a drawn one. It takes no argument."""

    def fill(rng: Random, context: Context, argument: str | None) -> str:
        if argument is not None:
            raise ValueError("this slot takes no argument")
        return str(context[name]) if name in context else draw(rng)

    return fill


def _choice(rng: Random, context: Context, argument: str | None) -> str:
    del context
    if argument is None:
        raise ValueError("alternatives are missing")
    return rng.choice(argument.split("|"))


def _int(rng: Random, context: Context, argument: str | None) -> str:
    del context
    return str(rng.randint(*values.int_range(argument)))


def _float(rng: Random, context: Context, argument: str | None) -> str:
    del context
    low, high, digits = values.float_range(argument)
    return f"{rng.uniform(low, high):.{digits}f}"


def _stamp(name: str) -> Draw:
    """A stamp of the context's `time` (or a drawn moment)."""

    def fill(rng: Random, context: Context, argument: str | None) -> str:
        if argument is not None:
            raise ValueError("this slot takes no argument")
        if name in context:
            return str(context[name])
        time = context.get("time")
        return values.stamp(name, float(time) if isinstance(time, int | float) else values.moment(rng))

    return fill


def _duration(name: str) -> Draw:
    """A duration of the size that the slot's name says against the context's `timeout_s`."""

    def fill(rng: Random, context: Context, argument: str | None) -> str:
        limit = context.get("timeout_s")
        timeout_s = float(limit) if isinstance(limit, int | float) else 600.0
        given = context.get(name)
        seconds = float(given) if isinstance(given, int | float) else values.seconds(name, timeout_s, rng)
        return values.duration(seconds, argument, rng, whole=name == "limit")

    return fill


def _uneven(name: str) -> Draw:
    """`more` is at least twice `fewer` when both are drawn from the same `base`."""

    def fill(rng: Random, context: Context, argument: str | None) -> str:
        if argument is not None:
            raise ValueError("this slot takes no argument")
        base = context.get("base")
        return str(context[name]) if name in context else values.uneven(name, base, rng)

    return fill


def _loads(name: str) -> Draw:
    """One number for each rank of the run (of 8 where it is not known), or for as many as the argument says."""

    def fill(rng: Random, context: Context, argument: str | None) -> str:
        world = context.get("world")
        count = int(argument) if argument else int(world) if isinstance(world, int) and 4 <= world <= 64 else 8
        return values.loads(name, count, rng)

    return fill


DRAWS: dict[str, Draw] = {
    **{name: _given(name, draw) for name, draw in values.PLAIN.items()},
    **{name: _stamp(name) for name in values.STAMPS},
    **{name: _duration(name) for name in values.DURATIONS},
    "more": _uneven("more"), "fewer": _uneven("fewer"), "loads": _loads("loads"), "evens": _loads("evens"),
    "int": _int, "float": _float, "choice": _choice,
}  # fmt: skip
