"""The catalogue of causes as it travels in a bundle (`catalogue.json`): titles, remedies, what separates rivals."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fsdpclassify.errors import BundleError
from fsdpclassify.records import Remedy

CATALOGUE_FILE = "catalogue.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One entry; `separate_by` says what tells it from its look-alikes, whose labels `look_alike` holds."""

    id: str
    label: str
    title: str
    separate_by: str
    look_alike: tuple[str, ...]
    remedy: Remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All causes in the order of the cause graph's outputs, and a boundary sentence for each label."""

    causes: tuple[Cause, ...]
    boundaries: dict[str, str]
    #: What to do where the label is clear and no finer cause is.
    remedies: dict[str, Remedy] = field(default_factory=dict)

    def of_label(self, label: str) -> list[int]:
        """Indices of the causes below `label`."""
        return [i for i, c in enumerate(self.causes) if c.label == label]


def load_catalogue(folder: Path) -> Catalogue:
    """Read the bundle's catalogue. Raises `BundleError` naming the file when it is not one."""
    path = folder / CATALOGUE_FILE
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Catalogue(
            causes=tuple(_cause(c) for c in data["causes"]),
            boundaries={str(k): str(v) for k, v in data["boundaries"].items()},
            remedies={str(k): _remedy(v) for k, v in data["remedies"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{path}: not a readable catalogue ({type(error).__name__}: {error}); install the bundle again"
        raise BundleError(message) from error


def _cause(data: dict[str, Any]) -> Cause:
    return Cause(
        id=data["id"],
        label=data["label"],
        title=data["title"],
        separate_by=data["separate_by"],
        look_alike=tuple(data["look_alike"]),
        remedy=_remedy(data["remedy"]),
    )


def _remedy(data: dict[str, Any]) -> Remedy:
    return Remedy(
        summary=data["summary"],
        steps=tuple(data["steps"]),
        longer_timeout_helps=data["longer_timeout_helps"],
        verify=tuple(data["verify"]),
        ops_request=data.get("ops_request"),
    )
