"""Takes the bytes of dumps as inputs are read, and afterwards says what they are together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fsdpclassify.records import InputStatus

if TYPE_CHECKING:
    from fsdpclassify.recorder.dumps import Dump
    from fsdpclassify.recorder.ranks import Claim
    from fsdpclassify.recorder.wavefront import Front


_SLACK_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """All usable dumps of one reading: `sources` gives for each GLOBAL rank the input that holds its dump."""

    front: Front
    sources: Mapping[int, int]
    #: For inputs whose dump is not used, why.
    reasons: Mapping[int, str] = field(default_factory=dict)


def _stale(claims: Mapping[int, Claim]) -> dict[int, str]:
    """Dumps of an earlier attempt. Within one, nobody goes on for much longer than a timeout after another stops."""
    limit = _SLACK_S + 2 * max((w.timeout_s or 0.0 for c in claims.values() for w in c.dump.works), default=0.0)
    newest = max((c.dump.newest for c in claims.values()), default=0.0)
    age = {index: newest - c.dump.newest for index, c in claims.items() if c.dump.works}
    return {
        index: f"it ends {seconds:.0f} s before the newest of the dumps, so it is of an earlier attempt and not used"
        for index, seconds in age.items()
        if seconds > limit
    }


def _part(data: bytes) -> Dump | None:
    """What is left of a dump that was cut off; None where that is of no use."""
    from fsdpclassify.recorder.dumps import read_dump
    from fsdpclassify.recorder.failures import DumpError
    from fsdpclassify.recorder.loading import load_part

    try:
        dump = read_dump(load_part(data), is_cut=True)
    except DumpError:
        return None
    return dump if dump.works or any(group.status for group in dump.groups.values()) else None


class DumpShelf:
    """Keeps what each input's dump holds; several threads may put dumps on it."""

    def __init__(self) -> None:
        self._claims: dict[int, Claim] = {}

    def take(self, index: int, path: str, hint: int | None, data: bytes) -> tuple[InputStatus, str | None]:
        """Read the dump of input `index`; the status and message of its row."""
        from fsdpclassify.recorder.dumps import read_dump  # most inputs hold no dump
        from fsdpclassify.recorder.failures import DumpError
        from fsdpclassify.recorder.loading import load
        from fsdpclassify.recorder.ranks import Claim

        message = None
        try:
            dump = read_dump(load(data))
        except DumpError as error:
            part = _part(data) if error.is_cut else None
            if part is None:
                return (InputStatus.TRUNCATED if error.is_cut else InputStatus.UNREADABLE), str(error)
            dump, message = part, f"{error}; the {len(part.works)} calls before that are used"
        self._claims[index] = Claim(dump=dump, path=path, hint=hint)
        return (InputStatus.OK if message is None else InputStatus.TRUNCATED), message

    def recorded(self) -> Recorded | None:
        """What the dumps show together; None where there is no usable one."""
        if not self._claims:
            return None
        from fsdpclassify.recorder.ranks import assign
        from fsdpclassify.recorder.wavefront import find_front

        stale = _stale(self._claims)
        ranks, reasons = assign({index: c for index, c in sorted(self._claims.items()) if index not in stale})
        if not ranks:
            return None
        reasons = {**reasons, **stale}
        front = find_front({rank: self._claims[index].dump for rank, index in sorted(ranks.items())})
        return Recorded(front=front, sources=ranks, reasons=reasons)
