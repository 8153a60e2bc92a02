"""`fsdpclassify model show|verify|list`: looks at bundles and never changes one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsdpclassify.cli_options import AsJson, BundleFolder, example
from fsdpclassify.console import answer

model_app = typer.Typer(
    help="Look at model bundles.",
    epilog=example("fsdpclassify model verify my-model/"),
    rich_markup_mode=None,
    no_args_is_help=True,
)


@model_app.command("show", epilog=example("fsdpclassify model show my-model/"))
def model_show(
    folder: BundleFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show a bundle's name, labels, thresholds and held-out figures."""
    from fsdpclassify.bundle import locate, manifest_sha256, read_manifest
    from fsdpclassify.report import to_json
    from fsdpclassify.report.tables import model_card, render_model_card

    found = locate(folder)
    card = model_card(read_manifest(found), folder=str(found), sha256=manifest_sha256(found))
    answer(to_json(card) if as_json else render_model_card(card))


@model_app.command("verify", epilog=example("fsdpclassify model verify my-model/"))
def model_verify(
    folder: BundleFolder = None,
) -> None:
    """Check every file of a bundle against its manifest; exits 4 if it may not be used."""
    from fsdpclassify.bundle import locate, verify

    found = locate(folder)
    manifest = verify(found)
    counts = f"{len(manifest.files)} files, {len(manifest.labels)} labels"
    answer(f"ok: {manifest.name} {manifest.version}, {counts}\n")


@model_app.command("list", epilog=example("fsdpclassify model list models/"))
def model_list(
    folder: Annotated[Path, typer.Argument(help="A folder that holds bundles.")] = Path("models"),
) -> None:
    """List the bundles in a folder; the one that classify uses by default comes first."""
    from fsdpclassify.report.tables import bundle_lines

    answer("".join(bundle_lines(folder)))
