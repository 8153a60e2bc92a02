"""The group of commands: what a command raises becomes a line on stderr and an exit code."""

from __future__ import annotations

from typer import Abort, Context, Exit
from typer.core import TyperGroup
from typer.exceptions import TyperException

from fsdpclassify.console import code_of


class GuardedGroup(TyperGroup):
    """A command group that turns errors into one line on stderr and the documented exit code."""

    def invoke(self, ctx: Context) -> object:  # type: ignore[override]
        """Run a command; only with `FSDPCLASSIFY_DEBUG` set does an unexpected error show its traceback."""
        try:
            return super().invoke(ctx)
        except (TyperException, Exit, Abort):
            raise
        except Exception as error:  # every way to fail has its line and its code
            raise Exit(code_of(error)) from None
