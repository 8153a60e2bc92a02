"""Which GLOBAL rank wrote a dump: from the groups it is in, its p2p calls, and last from its file's name.

A host number in a name is no rank: a name counts only where a named rule finds a rank in it, and never against
what the groups say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fsdpclassify.recorder.dumps import Dump

_NAMED = re.compile(r"(?:rank|worker|proc)[_\-.=]?(\d{1,6})(?!\d)", re.IGNORECASE)
_TRAILING = re.compile(r"(?:^|[_\-.])(\d{1,6})$")
_SUFFIXES = re.compile(r"\.(?:pkl|pickle|json|bin|dump|trace|gz|zst|xz|bz2|txt)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A dump, the label of its input, and the rank that a path rule gave (None: no rule did)."""

    dump: Dump
    path: str
    hint: int | None = None


def assign(claims: Mapping[int, Claim]) -> tuple[dict[int, int], dict[int, str]]:
    """Global rank -> key of its dump, and for each dump that is not used the reason."""
    possible = {key: _possible(claim.dump) for key, claim in claims.items()}
    found = {key: rank for key, claim in claims.items() if (rank := _own(claim, possible[key])) is not None}
    trailing = _by_trailing(claims, possible) if len(found) < len(claims) else {}
    for key, rank in trailing.items():
        found.setdefault(key, rank)
    _eliminate(found, possible)
    return _one_each(found, claims)


def _possible(dump: Dump) -> frozenset[int] | None:
    """The ranks that are in all groups of the dump; None if it describes none, or these contradict each other."""
    lists = [frozenset(group.ranks) for group in dump.groups.values() if group.ranks]
    return (frozenset.intersection(*lists) or None) if lists else None


def _own(claim: Claim, possible: frozenset[int] | None) -> int | None:
    if possible is not None and len(possible) == 1:
        return next(iter(possible))
    named = _NAMED.findall(_stem(claim.path))
    for rank in (_from_calls(claim.dump), int(named[-1]) if named else None, claim.hint):
        if rank is not None and (possible is None or rank in possible):
            return rank
    return None


def _from_calls(dump: Dump) -> int | None:
    """A send or receive names the caller's own rank first, in the numbering of its group."""
    for work in dump.works:
        own = work.operation.own
        group = dump.groups[work.group]
        if own is None:
            continue
        if own < len(group.ranks):
            return group.ranks[own]
        if not group.ranks and (group.name == "0" or group.desc == "default_pg"):
            return own
    return None


def _stem(path: str) -> str:
    name = path.rsplit("/", 1)[-1].rsplit("!", 1)[-1]
    while (shorter := _SUFFIXES.sub("", name)) != name:
        name = shorter
    return name


def _by_trailing(claims: Mapping[int, Claim], possible: Mapping[int, frozenset[int] | None]) -> dict[int, int]:
    """Numbers at the end of the names, if they differ between all dumps and each may be its rank."""
    found: dict[int, int] = {}
    for key, claim in claims.items():
        match = _TRAILING.search(_stem(claim.path))
        ranks = possible[key]
        if match is None or (ranks is not None and int(match[1]) not in ranks):
            return {}
        found[key] = int(match[1])
    return found if len(set(found.values())) == len(found) else {}


def _eliminate(found: dict[int, int], possible: Mapping[int, frozenset[int] | None]) -> None:
    """A dump whose other possible ranks are taken by others is of the one that is left."""
    while True:
        taken = set(found.values())
        left = {k: p - taken for k, p in possible.items() if k not in found and p is not None}
        sure = next(((k, p) for k, p in left.items() if len(p) == 1), None)
        if sure is None:
            return
        found[sure[0]] = next(iter(sure[1]))


def _one_each(found: Mapping[int, int], claims: Mapping[int, Claim]) -> tuple[dict[int, int], dict[int, str]]:
    ranks: dict[int, int] = {}
    reasons = {key: "it does not tell which rank wrote it" for key in claims if key not in found}
    for key, rank in sorted(found.items()):
        if rank not in ranks:
            ranks[rank] = key
            continue
        new, old = _by_age(claims, (key, ranks[rank]))
        ranks[rank] = new
        reasons[old] = f"rank {rank} has another dump, {claims[new].path}, which is at least as new and is used"
    return ranks, reasons


def _by_age(claims: Mapping[int, Claim], keys: Sequence[int]) -> tuple[int, int]:
    first, second = sorted(keys, key=lambda key: (-claims[key].dump.newest, key))
    return first, second
