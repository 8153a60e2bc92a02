"""What can be wrong with the line inventory although it loads: a list of problems in plain words.

Input: an `Inventory`. Output: texts, each beginning with the file and the family. Nothing is raised.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator
from random import Random

from fsdpclassify.templating import template
from train.inventory import Cause, Family, Inventory
from train.slots import Slot, SlotError, parse, render

ROLES = ("evidence", "symptom", "collateral", "phase", "noise", "decoy")
CHANNELS = ("rank", "main", "launcher", "driver", "system", "tool")
WHO = ("late", "all", "group", "waiting")
PROVENANCE = ("source:", "public log", "documentation", "known", "own words")

#: Above this many combinations the alternatives of a template are not written out for the comparison.
_MAX_SPELLINGS = 24


def problems(inventory: Inventory) -> list[str]:
    """Everything that is wrong, catalogue first, then families in file order."""
    found = [*_catalogue(inventory)]
    labels = {label.id for label in inventory.labels}
    phases = {family.id for family in inventory.families if family.role == "phase"}
    for family in inventory.families:
        checks = itertools.chain(_shape(family), _meaning(family, inventory, labels, phases), _texts(family))
        found += [f"{family.source}: {family.id}: {text}" for text in checks]
    return [*found, *_duplicates(inventory), *_alike(inventory)]


def _catalogue(inventory: Inventory) -> Iterator[str]:
    labels = {label.id for label in inventory.labels}
    names = Counter(name for cause in inventory.causes for name in (cause.id, *cause.aliases))
    yield from (f"taxonomy.toml: {name} names {count} causes" for name, count in names.items() if count > 1)
    known = {cause.id for cause in inventory.causes}
    for cause in inventory.causes:
        yield from (f"taxonomy.toml: {cause.id}: {text}" for text in _cause(cause, labels, known))


def _cause(cause: Cause, labels: set[str], known: set[str]) -> Iterator[str]:
    if cause.label not in labels:
        yield f"unknown label {cause.label!r}"
    yield from (f"look_alike {name!r} is no cause" for name in cause.look_alike if name not in known)
    if not (cause.remedy.summary and cause.remedy.steps and cause.remedy.verify):
        yield "the remedy lacks a summary, steps or a check"
    if not (cause.mechanism and cause.evidence_for and cause.separate_by):
        yield "mechanism, evidence_for or separate_by is empty"


def _shape(family: Family) -> Iterator[str]:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", family.id):
        yield "the id is not kebab-case"
    for key, allowed in (("role", ROLES), ("channel", CHANNELS), ("who", WHO)):
        if getattr(family, key) not in allowed:
            yield f"{key} {getattr(family, key)!r} is none of {', '.join(allowed)}"
    if not family.provenance.startswith(PROVENANCE):
        yield f"provenance {family.provenance!r} begins with none of {', '.join(PROVENANCE)}"
    if family.role == "evidence" and family.strength not in (1, 2, 3):
        yield "evidence needs a strength of 1, 2 or 3"
    if family.role != "evidence" and family.strength:
        yield "only evidence has a strength"


def _meaning(family: Family, inventory: Inventory, labels: set[str], phases: set[str]) -> Iterator[str]:
    if family.role in ("evidence", "decoy") and (family.label is None or family.cause is None):
        yield f"a family of role {family.role} needs a label and a cause"
    if family.label is not None and family.label not in labels:
        yield f"unknown label {family.label!r}"
    if family.cause is not None:
        cause = inventory.cause(family.cause)
        if cause is None:
            yield f"unknown cause {family.cause!r}"
        elif cause.label != family.label:
            yield f"cause {cause.id!r} belongs to {cause.label!r}, not {family.label!r}"
    if family.closes is not None and family.closes not in phases:
        yield f"closes {family.closes!r}, which is no phase family"


def _texts(family: Family) -> Iterator[str]:
    for text in (*family.texts, *family.follow):
        if "\n" in text:
            yield "a template is one line; use follow for the next ones"
        try:
            render(text, Random(0))
        except SlotError as error:
            yield str(error)


def _duplicates(inventory: Inventory) -> Iterator[str]:
    counts = Counter(family.id for family in inventory.families)
    yield from (f"family id {name!r} is used {count} times" for name, count in counts.items() if count > 1)


def _alike(inventory: Inventory) -> Iterator[str]:
    return (text for text, by_number in _pairs(inventory) if not by_number)


def number_twins(inventory: Inventory) -> list[str]:
    """Pairs of families whose texts differ in numbers only: allowed, since numbers come back as facts."""
    return [text for text, by_number in _pairs(inventory) if by_number]


def _pairs(inventory: Inventory) -> Iterator[tuple[str, bool]]:
    """Each family that reads like an earlier one, once; true if other slots or digits tell them apart."""
    owner: dict[str, tuple[Family, str]] = {}
    for family in inventory.families:
        for seen, raw in sorted((template(text), text) for spelled in family.texts for text in spellings(spelled)):
            first, other = owner.setdefault(seen, (family, raw))
            if first is not family:
                yield (
                    f"{family.source}: {family.id}: reads like {first.id} ({first.source}): {seen}",
                    raw != other,
                )
                break


def spellings(text: str) -> set[str]:
    """What a template can look like: slots at a first value, the alternatives of a choice written out."""
    try:
        options = [_options(part) for part in parse(text)]
    except SlotError:
        return set()
    if math.prod(len(option) for option in options) > _MAX_SPELLINGS:
        options = [option[:1] for option in options]
    return {"".join(combination) for combination in itertools.product(*options)}


def _options(part: str | Slot) -> tuple[str, ...]:
    if isinstance(part, str):
        return (part,)
    if part.name == "choice":
        return tuple((part.argument or "").split("|"))
    colon = "" if part.argument is None else f":{part.argument}"
    return (render(f"{{{part.name}{colon}}}", Random(0), {"time": 0.0}),)
