"""Names in a pickled dump replaced in place: every opcode stays as the recorder wrote it, only strings change."""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable

_LENGTHS = {"BINUNICODE": "<I", "SHORT_BINUNICODE": "<B", "BINUNICODE8": "<Q"}


def is_pickle(content: bytes) -> bool:
    """Whether a dump is a pickle (protocol 2 or newer) and not JSON."""
    return content[:1] == b"\x80"


def strings(content: bytes) -> list[str]:
    """All strings of a pickle. ValueError where it is malformed."""
    return [str(value) for op, value, _ in pickletools.genops(content) if op.name in _LENGTHS]


def rewritten(content: bytes, clean: Callable[[str], str]) -> bytes:
    """`content` with `clean` applied to each string. ValueError where it is malformed or comes in frames.

    Memo numbers do not depend on lengths; frames would, and the recorder writes none.
    """
    found = list(pickletools.genops(content))
    ends = [*(at for _, _, at in found[1:]), len(content)]
    parts = []
    for (op, value, at), end in zip(found, ends, strict=True):
        if op.name == "FRAME":
            raise ValueError("a framed pickle cannot be rewritten")
        length = _LENGTHS.get(op.name)
        parts.append(content[at:end] if length is None else _string(op.code, length, clean(str(value))))
    return b"".join(parts)


def _string(code: str, length: str, text: str) -> bytes:
    encoded = text.encode()
    return code.encode("latin-1") + struct.pack(length, len(encoded)) + encoded
