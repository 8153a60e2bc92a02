"""Bytes of a dump -> plain containers: a pickle that was scanned first, or JSON. Nothing in it is ever run."""

from __future__ import annotations

import io
import json
import pickle
from typing import Any, NoReturn

from fsdpclassify.recorder.failures import DumpError
from fsdpclassify.recorder.opcodes import completed, scan
from fsdpclassify.recorder.texts import completed_json

#: Brackets and commas of a JSON text: each may become an object in memory.
MAX_JSON_VALUES = 4_000_000
#: An error so near the end is that of a word or number which was cut.
_LITERAL = 24


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


def load_part(data: bytes) -> dict[str, Any]:
    """What a dump that was cut off holds up to its last complete entry; {} if that is nothing.

    Within the same limits as `load`; raises `DumpError` for what no dump holds.
    """
    for text in completed(data) if data[:1] == b"\x80" else completed_json(data):
        try:
            return load(text)
        except DumpError:
            continue
    return {}


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
        is_cut = error.pos >= len(error.doc.rstrip()) - _LITERAL or "Unterminated" in error.msg
        raise DumpError(f"the JSON cannot be read: {error.msg} at character {error.pos}", is_cut=is_cut) from None
    except UnicodeDecodeError as error:
        is_cut = error.end >= len(data) - _LITERAL
        raise DumpError(f"the JSON cannot be read: {str(error)[:100]}", is_cut=is_cut) from None
    except ValueError as error:
        raise DumpError(f"the JSON cannot be read: {str(error)[:100]}") from None
