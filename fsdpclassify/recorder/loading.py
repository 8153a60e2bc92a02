"""Bytes of a dump -> plain containers: a pickle that was scanned first, or JSON. Nothing in it is ever run."""

from __future__ import annotations

import io
import json
import pickle
from typing import Any, NoReturn

from fsdpclassify.recorder.failures import DumpError
from fsdpclassify.recorder.opcodes import scan

#: Brackets and commas of a JSON text: each may become an object in memory.
MAX_JSON_VALUES = 4_000_000


class _PlainUnpickler(pickle.Unpickler):
    """Refuses every class and every persistent reference; the scan has refused them before."""

    def find_class(self, module_name: str, global_name: str, /) -> NoReturn:
        raise DumpError(f"refused: it asks for {module_name}.{global_name}"[:200])

    def persistent_load(self, pid: object, /) -> NoReturn:
        raise DumpError("refused: it asks for a persistent object")


def load(data: bytes) -> dict[str, Any]:
    """The dictionary at the top of a dump. Raises `DumpError` with the reason, whatever the bytes are."""
    found = _from_pickle(data) if data[:1] == b"\x80" else _from_json(data)
    if not isinstance(found, dict):
        raise DumpError(f"a dump is a dictionary, this holds a {type(found).__name__}")
    return {str(key): value for key, value in found.items() if isinstance(key, str)}


def _from_pickle(data: bytes) -> object:
    scan(data)
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except DumpError:
        raise
    except Exception as error:  # what a crafted pickle makes the machine raise is not listed anywhere
        raise DumpError(f"the pickle is malformed ({type(error).__name__}: {str(error)[:100]})") from None


def _from_json(data: bytes) -> object:
    if sum(data.count(mark) for mark in (b"[", b"{", b",")) > MAX_JSON_VALUES:
        raise DumpError(f"it holds more than {MAX_JSON_VALUES} values")
    try:
        return json.loads(data)
    except RecursionError:
        raise DumpError("it is nested too deep") from None
    except json.JSONDecodeError as error:
        is_cut = error.pos >= len(error.doc.rstrip()) or "Unterminated" in error.msg
        raise DumpError(f"the JSON cannot be read: {error.msg} at character {error.pos}", is_cut=is_cut) from None
    except ValueError as error:
        raise DumpError(f"the JSON cannot be read: {str(error)[:100]}") from None
