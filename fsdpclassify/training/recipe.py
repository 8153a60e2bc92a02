"""How a head is made from encoded incidents: one place for releases, for every fold of an evaluation, and for users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fsdpclassify.training.calibration import fit_temperature, fit_thresholds
from fsdpclassify.training.fit import Encoded, FittedHead, FittedLines, Wordings, fit_incidents, tempered
from fsdpclassify.training.weights import balanced

FOLDS = 12
#: On real incidents the figures must hold: they carry this share in calibration.
_CALIBRATION_SHARE = 0.5
#: Where the repository of an incident begins so, an author composed it; the rest of it names the author.
COMPOSED = "written/"
Raw = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Encoded incidents in which the package sees one; folds of the `real` ones go by source repository."""

    simulated: tuple[Encoded, ...]
    validation: tuple[Encoded, ...]
    real: tuple[Encoded, ...]
    wordings: Wordings
    lines: FittedLines


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What thresholds are fitted on: incidents that the head is blind to, probabilities `[n, labels]`, weights."""

    items: tuple[Encoded, ...]
    probabilities: NDArray[np.float64]
    weights: tuple[float, ...]

    @property
    def given(self) -> list[str]:
        """The label of each incident."""
        return [i.example.label for i in self.items]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A calibrated head with its thresholds by mode and label, and what they were fitted on."""

    head: FittedHead
    thresholds: dict[str, dict[str, float]]
    calibration: Calibration


def fitted(data: Material, real: Sequence[Encoded]) -> FittedHead:
    """A head on the simulated incidents and those of `real`, not yet calibrated."""
    weights = balanced([i.example for i in data.simulated], [i.example for i in real])
    return fit_incidents(data.lines, [*data.simulated, *real], weights)


def repositories(data: Material) -> list[tuple[str, ...]]:
    """Source repositories in at most `FOLDS` groups: a fold holds out all incidents of each repository in its group."""
    names = sorted({i.example.repository for i in data.real})
    return [tuple(names[k::FOLDS]) for k in range(min(FOLDS, len(names)))]


def without(data: Material, group: Sequence[str]) -> list[Encoded]:
    """The real incidents of no repository in `group`."""
    return [i for i in data.real if i.example.repository not in group]


def composed(data: Material) -> list[Encoded]:
    """The incidents among the made ones that an author composed."""
    return [i for i in data.simulated if i.example.repository.startswith(COMPOSED)]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfFold:
    """For each fold its head; for each real incident the raw probabilities by a head blind to its repository.

    `raw` also holds those of composed incidents, by heads and line models blind to their author and wording.
    """

    heads: tuple[FittedHead, ...]
    groups: tuple[tuple[str, ...], ...]
    raw: dict[str, NDArray[np.float64]]


def out_of_fold(data: Material) -> OutOfFold:
    """Fit one head a group of repositories."""
    heads: list[FittedHead] = []
    raw: dict[str, NDArray[np.float64]] = {}
    groups = repositories(data)
    for group in groups:
        head = fitted(data, without(data, group))
        heads.append(head)
        held = [i for i in data.real if i.example.repository in group]
        for item, row in zip(held, head.probabilities(held), strict=True):
            raw[item.example.sha256] = row
    raw.update(_blind_to_author(data))
    return OutOfFold(heads=tuple(heads), groups=tuple(groups), raw=raw)


def _blind_to_author(data: Material) -> dict[str, NDArray[np.float64]]:
    raw: dict[str, NDArray[np.float64]] = {}
    for author in sorted({i.example.repository for i in composed(data)}):
        held = [i for i in data.simulated if i.example.repository == author]
        others = tuple(i for i in data.simulated if i.example.repository != author)
        head = fitted(replace(data, simulated=others), data.real)
        raw.update(zip((i.example.sha256 for i in held), head.unseen(data.lines, held), strict=True))
    return raw


def calibrated(data: Material, head: FittedHead, raw: Raw, real: Sequence[Encoded]) -> Trained:
    """Temperature and thresholds from the validation split and the out-of-fold predictions of composed and `real` ones.

    Half the weight is on real incidents, since it is on them that the figures must hold.
    """
    made = [*data.validation, *composed(data)]
    items = [*made, *real]
    cold = replace(head, temperature=1.0)
    blind = [raw[i.example.sha256][None] for i in items[len(data.validation) :]]
    rows = np.vstack([cold.probabilities(list(data.validation)), *blind])
    weights = balanced([i.example for i in made], [i.example for i in real], share=_CALIBRATION_SHARE)
    given = [i.example.label for i in items]
    temperature = fit_temperature(rows, given, weights, head.labels)
    told = Calibration(items=tuple(items), probabilities=tempered(rows, temperature), weights=tuple(weights))
    thresholds = fit_thresholds(told.probabilities, given, weights, head.labels)
    return Trained(head=replace(head, temperature=temperature), thresholds=thresholds, calibration=told)


def prior(data: Material) -> dict[str, float]:
    """The share of each label among the training incidents, real ones weighted as in fitting."""
    items = [*data.simulated, *data.real]
    weights = balanced([i.example for i in data.simulated], [i.example for i in data.real])
    total = dict.fromkeys(data.lines.labels, 0.0)
    for item, weight in zip(items, weights, strict=True):
        if item.example.label in total:
            total[item.example.label] += weight
    whole = sum(total.values())
    return {name: value / whole for name, value in total.items()}
