"""Privacy: a `Report` in, the same report without secrets (and, on request, without identities) out.

`secrets` hides what opens a door: passwords, tokens, keys, credentials in URLs and headers, and
e-mail addresses. `identities` also replaces hosts, users, addresses and home-path names by stable
placeholders. Masking a masked text changes nothing, and every pattern runs in time linear in the
text. It is a filter for known shapes: a secret that looks like an ordinary word is not found.

This has nothing to do with templating, which prepares lines for the encoder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum, StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from fsdpclassify.masking.credentials import mask_secrets
from fsdpclassify.records import Report

if TYPE_CHECKING:
    from fsdpclassify.masking.identities import Identities

#: Fields that hold our own vocabulary or a bundle's, never text of a log.
_OUR_WORDS = frozenset(
    {"verdict", "cause", "model_label", "supports", "label", "sha256", "version", "tool_version", "kind"}
)
_NODES = frozenset({"node", "nodes", "initiating_nodes"})
_CACHED_CHARACTERS = 200
_ADDRESS_HINT = re.compile(r"[\d@/.:=]")


T = TypeVar("T")


class MaskLevel(StrEnum):
    """How much is hidden."""

    SECRETS = "secrets"
    IDENTITIES = "identities"
    NONE = "none"


class Masker:
    """Masks texts of one report; at level `identities` one host stays one placeholder throughout."""

    def __init__(self, level: MaskLevel | str = MaskLevel.SECRETS) -> None:
        self.level = MaskLevel(level)
        self._identities = _identities() if self.level is MaskLevel.IDENTITIES else None

    def learn(self, text: str) -> None:
        """Take note of the hosts and users that `text` names, so that other texts hide them too."""
        if self._identities is not None and _ADDRESS_HINT.search(text):
            self._identities.learn(text)

    def learn_host(self, name: str) -> None:
        """Take note of a name that is known to be a host, such as a node of the ledger."""
        if self._identities is not None:
            self._identities.learn_host(name)

    def mask(self, text: str) -> str:
        """The text as this level allows it to be shown; newlines stay where they are, blocks aside."""
        if self.level is MaskLevel.NONE:
            return text
        hidden = _hidden(text) if len(text) <= _CACHED_CHARACTERS else mask_secrets(text)
        return hidden if self._identities is None else self._identities.mask(hidden)


@lru_cache(maxsize=4096)
def _hidden(text: str) -> str:
    # A ledger of a thousand ranks repeats the same few names of groups, calls and errors.
    return mask_secrets(text)


def _identities() -> Identities:
    # Its patterns cost some milliseconds to compile, and most runs never need them.
    from fsdpclassify.masking.identities import Identities

    return Identities()


def mask_text(text: str, level: MaskLevel | str = MaskLevel.SECRETS) -> str:
    """Mask one text on its own; placeholders are numbered within this text."""
    return Masker(level).mask(text)


def mask_report(report: Report, level: MaskLevel | str = MaskLevel.SECRETS) -> Report:
    """The report with every text of logs, paths and remedies masked; labels and causes stay."""
    return mask_values(report, level)


def mask_values(value: T, level: MaskLevel | str = MaskLevel.SECRETS) -> T:
    """The same for any nest of records, tuples, lists and mappings of texts; keys of mappings stay.

    Names are learned from all texts before any is masked, so their order does not matter.
    """
    masker = Masker(level)
    if masker.level is MaskLevel.NONE:
        return value
    for name, text in _texts(value, ""):
        if name in _NODES:
            masker.learn_host(text)
        masker.learn(text)
    return cast(T, _masked(value, "", masker))


def _children(value: object, name: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        yield from ((str(key), element) for key, element in value.items())
    elif isinstance(value, tuple | list):
        yield from ((name, element) for element in value)
    elif is_dataclass(value):
        yield from ((item.name, getattr(value, item.name)) for item in fields(value))


def _texts(value: object, name: str) -> Iterator[tuple[str, str]]:
    """Every text that may hold words of a log, with the name of the field it stands in."""
    if isinstance(value, Enum) or name in _OUR_WORDS:
        return
    if isinstance(value, str):
        yield name, value
    for child, element in _children(value, name):
        yield from _texts(element, child)


def _masked(value: object, name: str, masker: Masker) -> object:
    # A generic walk, so that a field added to the records later is masked unless listed above.
    if isinstance(value, Enum) or name in _OUR_WORDS:
        return value
    if isinstance(value, str):
        return masker.mask(value)
    if not isinstance(value, dict | tuple | list) and not is_dataclass(value):
        return value
    masked = [(child, _masked(element, child, masker)) for child, element in _children(value, name)]
    if isinstance(value, dict):
        return dict(zip(value, (element for _, element in masked), strict=True))
    if isinstance(value, tuple | list):
        return type(value)(element for _, element in masked)
    return replace(cast(Any, value), **dict(masked))
