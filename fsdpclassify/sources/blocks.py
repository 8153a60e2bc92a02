"""The blocks in which a text is read, and the words for why reading ended early."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fsdpclassify.sources.decompress import Reader, damage_errors

BLOCK_BYTES = 256 * 1024


@dataclass(slots=True, kw_only=True)
class Blocks:
    """Blocks of a reader up to `max_bytes`; afterwards `damage` says what ended them early, if anything."""

    reader: Reader
    max_bytes: int | None
    damage: str | None = None
    size: int = 0
    ended: bool = False

    def __iter__(self) -> Iterator[bytes]:
        """The blocks that are left."""
        return self

    def __next__(self) -> bytes:
        """The next block, at most `BLOCK_BYTES` long."""
        block = b"" if self.ended else self._read()
        if not block:
            self.ended = True
            raise StopIteration
        self.size += len(block)
        return block

    def _read(self) -> bytes:
        left = BLOCK_BYTES if self.max_bytes is None else self.max_bytes - self.size
        try:
            block = self.reader.read(min(BLOCK_BYTES, left) or 1)
        except damage_errors() as error:
            self.damage = reason(error)
            return b""
        if left <= 0 and block:
            self.damage = f"only the first {self.max_bytes} bytes were read"
            return b""
        return block


def reason(error: BaseException) -> str:
    """Why an input cannot be read, in words and without the path that its row names already."""
    if isinstance(error, FileNotFoundError):
        return "not found"
    if isinstance(error, PermissionError):
        return "permission denied"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text or type(error).__name__
