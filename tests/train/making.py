"""Incidents made on the spot, for the tests of the simulator."""

from __future__ import annotations

import json
from typing import Any

from train.simulate.build import Incident, build
from train.simulate.plan import Job


def scenes(label: str, cause: str | None, count: int, size: str = "short", kind: str = "report") -> list[Incident]:
    return [
        build(
            Job(
                split="train",
                index=i,
                seed=f"{label}/{cause}/{i}",
                label=label,
                cause=cause,
                size=size,
                blind=False,
                kind=kind,
            )
        )
        for i in range(count)
    ]


def truth_of(made: Incident) -> dict[str, Any]:
    return dict(json.loads(made.truth))


def body_of(made: Incident) -> str:
    return "".join(made.files.values())


def runs(label: str, cause: str | None, count: int) -> list[Incident]:
    return scenes(label, cause, count, kind="run")
