"""Standard streams, colour and exit codes of the command line; nothing here knows a command, or typer."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import TextIO

from fsdpclassify.errors import FsdpClassifyError, UsageError

DEBUG_VARIABLE = "FSDPCLASSIFY_DEBUG"
OUR_FAULT = 70
PIPED_WIDTH = 120


class OutputError(FsdpClassifyError):
    """The answer was found, but stdout does not take it."""


def code_of(error: Exception) -> int:
    """Say on stderr what went wrong, in one line, and return the exit code for it.

    Raises `error` again if it is an unexpected one and `FSDPCLASSIFY_DEBUG` asks for its traceback.
    """
    if isinstance(error, FsdpClassifyError):
        warn(str(error))
        return error.exit_code
    if isinstance(error, BrokenPipeError):
        silence(sys.stdout)
        return 0
    if os.environ.get(DEBUG_VARIABLE):
        raise error
    what = f"{type(error).__name__}: {error}"
    warn(f"internal error: {what} (set {DEBUG_VARIABLE}=1 for the traceback)")
    return OUR_FAULT


def answer(text: str) -> None:
    """Write the answer to stdout; a reader that went away (`| head`) is no error.

    Raises `OutputError` where the answer cannot be written, such as on a full disk.
    """
    stream = sys.stdout
    try:
        _tolerant(stream).write(text)
        stream.flush()
    except BrokenPipeError:
        silence(stream)
    except OSError as error:
        silence(stream)
        raise OutputError(_unwritten(error)) from None


@contextmanager
def guarded_output() -> Iterator[None]:
    """End with one line and `OUR_FAULT` where typer itself cannot write, such as a help text to a full disk."""
    try:
        yield
    except (OSError, OutputError) as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        silence(sys.stdout)
        warn(str(error) if isinstance(error, OutputError) else _unwritten(error))
        raise SystemExit(OUR_FAULT) from None


def warn(message: str) -> None:
    """One line on stderr, with secrets masked and control characters escaped: messages may quote a log."""
    from fsdpclassify.masking import mask_secrets
    from fsdpclassify.report.wording import printable

    try:
        _tolerant(sys.stderr).write(f"fsdpclassify: {printable(mask_secrets(message))}\n")
    except BrokenPipeError:
        silence(sys.stderr)


def _unwritten(error: OSError) -> str:
    return f"the answer could not be written: {error.strerror or error}"


def silence(stream: TextIO) -> None:
    """Point a stream's descriptor at nothing, so that the interpreter's own flush at exit cannot fail."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except OSError:
        return


def _tolerant(stream: TextIO) -> TextIO:
    # A path may hold bytes that are no text, and a terminal may speak an encoding without our signs.
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return stream


def terminal_style() -> tuple[int, bool]:
    """Width in cells and whether colour is wanted: a terminal on stdout, and no `NO_COLOR`."""
    to_terminal = sys.stdout.isatty()
    colour = to_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return get_terminal_size((PIPED_WIDTH, 24)).columns, colour


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Turn a missing optional dependency into a `UsageError` that names the pip line."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "fsdpclassify":
            raise
        raise UsageError(f"{error.name} is not installed: pip install 'fsdpclassify[{name}]'") from None
