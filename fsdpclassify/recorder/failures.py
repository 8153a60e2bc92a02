"""Why a dump cannot be used."""

from __future__ import annotations


class DumpError(Exception):
    """The bytes are no usable dump; the message says why. `is_cut` marks those that merely end too early."""

    def __init__(self, message: str, *, is_cut: bool = False) -> None:
        super().__init__(message)
        self.is_cut = is_cut
