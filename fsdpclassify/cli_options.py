"""Options and arguments that several commands share, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Paths = Annotated[
    list[str],
    typer.Argument(metavar="PATH", help="Files, folders of per-rank logs, archives, dumps; - is stdin."),
]
Folders = Annotated[
    list[Path],
    typer.Argument(metavar="FOLDER", help="Labelled incidents (incident.json, logs/), or folders of them."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON instead of text.")]
Hung = Annotated[bool, typer.Option("--hung", help="The run hangs now: the end of the log is the detection.")]
ModelPath = Annotated[
    Path | None,
    typer.Option("--model", metavar="FOLDER", help="Bundle; else $FSDPCLASSIFY_MODEL, else ours."),
]
Mode = Annotated[
    Literal["best-guess", "balanced", "high-precision"],
    typer.Option("--mode", help="How sure to be before naming a cause."),
]
Mask = Annotated[
    Literal["secrets", "identities", "none"],
    typer.Option("--mask", help="What to hide: secrets; also hosts, users and addresses; nothing."),
]
ExitZero = Annotated[bool, typer.Option("--exit-zero", help="Exit 0 instead of 10 and 11.")]
MaxBytes = Annotated[
    int | None, typer.Option("--max-bytes", min=1, metavar="N", help="Read at most N bytes of each input.")
]

BundleFolder = Annotated[
    Path | None, typer.Argument(metavar="FOLDER", help="Bundle; default: the one that classify uses.")
]


def example(*commands: str) -> str:
    """Commands as a block that the help formatter leaves as it is (that is what the backspace asks for)."""
    return "\n".join(("\b", "Example:" if len(commands) == 1 else "Examples:", *(f"  {line}" for line in commands)))
