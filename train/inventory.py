"""The line inventory and the catalogue of causes as frozen values.

Input: `data/taxonomy.toml` and `data/lines/*.toml`. Output: `Inventory`. A file that cannot be read as
such raises `InventoryError` with its name; what `train.inventory_check` finds beyond that are problems.
`main` is the command `python -m train lines`: it prints counts and problems and returns 1 if there are any.
With `--coverage` it prints how much of the labelled incidents the inventory knows.
"""

from __future__ import annotations

import argparse
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parent.parent / "data"


T = TypeVar("T")


class InventoryError(ValueError):
    """An inventory file or the catalogue cannot be used; the message names the file and the entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A class of the model: what it means and what separates it from its neighbours."""

    id: str
    description: str
    boundary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """What to change, how to check the change, and what to ask the operators of the cluster."""

    summary: str
    steps: tuple[str, ...]
    longer_timeout_helps: bool
    verify: tuple[str, ...]
    ops_request: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A finer cause below a label. `aliases` are other names that inventories may use for it."""

    id: str
    label: str
    title: str
    mechanism: str
    evidence_for: tuple[str, ...]
    evidence_against: tuple[str, ...]
    shows_in: tuple[str, ...]
    look_alike: tuple[str, ...]
    separate_by: str
    frameworks: tuple[str, ...]
    remedy: Remedy
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One message family. `cause` is an id of the catalogue (aliases are resolved), `source` a file name."""

    id: str
    emitter: str
    role: str
    channel: str
    template: str
    provenance: str
    source: str
    label: str | None = None
    cause: str | None = None
    strength: int = 0
    variants: tuple[str, ...] = ()
    follow: tuple[str, ...] = ()
    closes: str | None = None
    who: str = "late"
    frameworks: tuple[str, ...] = ()
    versions: str | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The template and its variants: each may stand for the family."""
        return (self.template, *self.variants)

    def fits(self, tags: Sequence[str]) -> bool:
        """Whether the family shows in a run with these framework tags."""
        return not self.frameworks or not set(self.frameworks).isdisjoint(tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """Labels in bundle order, causes and families in file order."""

    labels: tuple[Label, ...]
    causes: tuple[Cause, ...]
    families: tuple[Family, ...]

    def select(self, role: str, *, label: str | None = None, cause: str | None = None) -> tuple[Family, ...]:
        """Families of a role, narrowed to a label or cause."""
        return tuple(
            family for family in self.families
            if family.role == role and label in (None, family.label) and cause in (None, family.cause)
        )  # fmt: skip

    def cause(self, name: str) -> Cause | None:
        """The cause with this id or alias."""
        return next((cause for cause in self.causes if name == cause.id or name in cause.aliases), None)


def load(root: Path = ROOT) -> Inventory:
    """Read the catalogue and every line file below `root`. Raises `InventoryError`."""
    labels, causes = load_taxonomy(root / "taxonomy.toml")
    names = {alias: cause.id for cause in causes for alias in (*cause.aliases, cause.id)}
    paths = sorted((root / "lines").glob("*.toml"))
    families = tuple(family for path in paths for family in load_file(path, names))
    return Inventory(labels=labels, causes=causes, families=families)


def load_taxonomy(path: Path) -> tuple[tuple[Label, ...], tuple[Cause, ...]]:
    """Read labels and causes. Raises `InventoryError`."""
    data = _read(path)
    labels = tuple(_make(Label, raw, path) for raw in data.get("label", ()))
    return labels, tuple(_cause(raw, path) for raw in data.get("cause", ()))


def load_file(path: Path, names: Mapping[str, str]) -> Iterator[Family]:
    """Read one line file; `names` maps ids and aliases of causes to ids. Raises `InventoryError`."""
    for raw in _read(path).get("family", ()):
        cause = raw.get("cause")
        resolved = {"cause": names.get(cause, cause)} if cause is not None else {}
        yield _make(Family, {**raw, **resolved, "source": path.name}, path)


def _cause(raw: dict[str, Any], path: Path) -> Cause:
    remedy = _make(Remedy, raw.get("remedy", {}), path, name=raw.get("id"))
    return _make(Cause, {**raw, "remedy": remedy}, path)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InventoryError(f"{path.name}: {error}") from error


def _make(kind: type[T], raw: Mapping[str, Any], path: Path, *, name: str | None = None) -> T:
    """Build a value from a table: lists become tuples, unknown and missing keys are errors."""
    try:
        return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in raw.items()})
    except TypeError as error:
        raise InventoryError(f"{path.name}: {name or raw.get('id', '?')}: {error}") from error


def report(inventory: Inventory) -> Iterator[str]:
    """Counts as text, one line a table."""
    families = inventory.families
    texts = sum(len(family.texts) for family in families)
    yield f"{len(families)} families, {texts} templates, {len(inventory.causes)} causes"
    for key in ("source", "role", "channel", "label", "emitter", "cause"):
        counts = Counter(value for family in families if (value := getattr(family, key)) is not None)
        yield f"by {key}: " + ", ".join(f"{name} {count}" for name, count in counts.most_common())
    covered = {family.cause for family in families if family.role == "evidence"}
    missing = [cause.id for cause in inventory.causes if cause.id not in covered]
    yield f"causes without evidence: {', '.join(missing) or 'none'}"


def main(argv: Sequence[str] | None = None) -> int:
    """Print counts and problems; 1 if there are problems."""
    from train import coverage
    from train.inventory_check import number_twins, problems
    from train.inventory_targets import shortfalls, table

    parser = argparse.ArgumentParser(prog="python -m train lines", description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT)
    parser.add_argument("--coverage", nargs="?", choices=("reference", "all"), const="reference")
    options = parser.parse_args(argv)
    try:
        inventory = load(options.data)
    except InventoryError as error:
        print(f"problem: {error}")
        return 1
    if options.coverage:
        print("\n".join(coverage.report(coverage.cover(inventory, options.data, options.coverage))))
        return 0
    found = [*problems(inventory), *shortfalls(inventory)]
    notes = [f"note: {text}" for text in number_twins(inventory)]
    print("\n".join([*report(inventory), *table(inventory), *notes, *(f"problem: {text}" for text in found)]))
    return 1 if found else 0
