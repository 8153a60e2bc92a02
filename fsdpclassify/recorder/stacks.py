"""The frame of the user's own code that issued a recorded call."""

from __future__ import annotations

_MOST = 512
#: Frames of libraries: they are the same whoever calls.
_LIBRARY = ("site-packages/", "dist-packages/", "/torch/", "<frozen ", "<string>", "/lib/python3")
_NATIVE = (".cpp", ".cc", ".c", ".h", ".so", "??")


def innermost(frames: object) -> str | None:
    """`FILE:LINE in FUNCTION` of the innermost frame outside libraries, else of the innermost one; None without."""
    if not isinstance(frames, list | tuple):
        return None
    rows = [f for f in frames[:_MOST] if isinstance(f, dict) and isinstance(f.get("filename"), str)]
    python = [f for f in rows if not f["filename"].endswith(_NATIVE) and f["filename"]]
    own = [f for f in python if not any(part in f["filename"] for part in _LIBRARY)]
    chosen = next(iter(own or python), None)
    if chosen is None:
        return None
    return f"{chosen['filename'][-160:]}:{chosen.get('line')} in {str(chosen.get('name'))[:80]}"
