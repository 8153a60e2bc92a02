"""The start of the process: plain calls of the everyday commands go straight to them, all others to typer.

A restart controller calls `fsdpclassify classify LOGS --json` for every job that dies, and loading typer
takes a quarter of what such a call may take. So this parses the arguments that need no parser (flags,
options with a value in a word of its own, paths), and leaves every other call, wrong ones too, to `cli`.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from fsdpclassify.commands import Request, classify, inspect, score
from fsdpclassify.console import code_of, guarded_output

_FLAGS = {"--json": "as_json", "--hung": "hung", "--exit-zero": "exit_zero"}
_MODES = ("best-guess", "balanced", "high-precision")
_MASKS = ("secrets", "identities", "none")
_Command = Callable[[Request], int]
#: Command -> what runs it, and its options that take a value.
_COMMANDS: dict[str, tuple[_Command, frozenset[str]]] = {
    "classify": (classify, frozenset({"--model", "--mode", "--mask"})),
    "score": (score, frozenset({"--model"})),
    "inspect": (inspect, frozenset({"--mask"})),
}
#: Threads take longer to start than a window of lines takes to encode, and no large matrices are multiplied here.
_FEW_THREADS = {"OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


def main() -> None:
    """Entry point of the `fsdpclassify` script; never returns."""
    found = plain_call(sys.argv[1:])
    if found is None:
        from fsdpclassify.cli import main as parsed

        return parsed()
    command, request = found
    # One answer and the process ends: what the collector could free is less than what it would look through.
    gc.disable()
    for name, wanted in _FEW_THREADS.items():
        os.environ.setdefault(name, wanted)
    with guarded_output():
        _leave(_run(command, request))


def plain_call(words: Sequence[str]) -> tuple[_Command, Request] | None:
    """The command and the request that `words` ask for; None if that is better left to typer."""
    if not words or words[0] not in _COMMANDS:
        return None
    command, valued = _COMMANDS[words[0]]
    paths: list[str] = []
    fields: dict[str, Any] = {}
    rest = iter(words[1:])
    for word in rest:
        if word in _FLAGS:
            fields[_FLAGS[word]] = True
        elif word in valued and (value := _value(word, next(rest, ""))) is not None:
            fields[word[2:]] = value
        elif word and (word == "-" or not word.startswith("-")):
            paths.append(word)
        else:
            return None
    return (command, Request(paths=paths, **fields)) if paths else None


def _value(option: str, word: str) -> object:
    """The value of an option, or None if typer has something to say about it."""
    if option == "--model":
        return Path(word) if word and not word.startswith("-") else None
    return word if word in (_MODES if option == "--mode" else _MASKS) else None


def _run(command: _Command, request: Request) -> int:
    try:
        return command(request)
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # every way to fail has its line and its code
        return code_of(error)


def _leave(code: int) -> NoReturn:
    """End the process at once: to take a hundred thousand values apart one by one helps nobody."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(code)
