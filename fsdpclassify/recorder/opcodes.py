"""Reads a pickle opcode by opcode, without running it, and refuses what a dump never needs.

A recorder writes dictionaries, lists, tuples, strings, numbers, booleans and None. Everything that imports, calls
or builds objects is refused by name; what could cost memory (memo index, string length, depth, number of
opcodes) is bounded before a single object exists.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from fsdpclassify.recorder.failures import DumpError

MAX_OPCODES = 8_000_000
MAX_CONTAINERS = 2_000_000
MAX_STRING = 1 << 20
MAX_DEPTH = 64
MEMO_SLACK = 1024

Size = Callable[[bytes, int], int]


def _counted(layout: str) -> Size:
    """An argument that begins with its own length."""
    reader = struct.Struct(layout)

    def size(data: bytes, at: int) -> int:
        length = int(reader.unpack_from(data, at)[0])
        if not 0 <= length <= MAX_STRING:
            raise DumpError(f"it claims a string of {length} bytes at byte {at}; a dump holds none above {MAX_STRING}")
        return reader.size + length

    return size


def _frame(data: bytes, at: int) -> int:
    length = struct.unpack_from("<Q", data, at)[0]
    if length > len(data):
        raise DumpError(f"it claims a frame of {length} bytes and has {len(data)}", is_cut=True)
    return 8


#: Opcodes that push one value: those with an argument of a fixed size, and those that tell how long theirs is.
_PLAIN = {
    **{ord(c): 0 for c in "N])}"}, 0x88: 0, 0x89: 0, ord("K"): 1, ord("M"): 2, ord("J"): 4, ord("G"): 8,
}  # fmt: skip
_COUNTED: dict[int, Size] = {
    **{0x8A: _counted("<B"), 0x8C: _counted("<B"), ord("X"): _counted("<I"), 0x8D: _counted("<Q")},
    **{ord("U"): _counted("<B"), ord("T"): _counted("<i")},
}
_MEMO_GET = {ord("h"): "<B", ord("j"): "<I"}
_MEMO_PUT = {ord("q"): "<B", ord("r"): "<I"}
_BINGET = ord("h")
_MEMOIZE, _MARK, _STOP, _PROTO, _FRAME = 0x94, ord("("), ord("."), 0x80, 0x95
#: Tuples of one to three values, and what one value (or a pair) is put into.
_TUPLES = {0x85: 1, 0x86: 2, 0x87: 3}
_TAKES = {ord("a"): 1, ord("s"): 2}
#: Everything since the last mark becomes a new value, or goes into the one before the mark.
_MARKED_NEW, _MARKED_INTO = frozenset(b"tld"), frozenset(b"eu")
_FORBIDDEN = {
    ord("c"): "GLOBAL", 0x93: "STACK_GLOBAL", ord("R"): "REDUCE", ord("b"): "BUILD", ord("i"): "INST", ord("o"): "OBJ",
    0x81: "NEWOBJ", 0x92: "NEWOBJ_EX", 0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4", ord("P"): "PERSID",
    ord("Q"): "BINPERSID",
}  # fmt: skip


def scan(data: bytes) -> None:
    """Raise `DumpError` unless `data` is a pickle of plain containers within the limits above."""
    # Counted in strings and numbers too: too many rather than too few, and at no cost.
    if sum(data.count(opcode) for opcode in (b"}", b"]", b")")) > MAX_CONTAINERS:
        raise DumpError(f"it holds more than {MAX_CONTAINERS} containers")
    try:
        _Scan(data).run()
    except (IndexError, struct.error):
        raise DumpError("the pickle ends in the middle", is_cut=True) from None


def completed(data: bytes) -> Iterator[bytes]:
    """Pickles of what a cut pickle holds up to its last complete entry; one of them is well-formed if any can be.

    What is open there is a dictionary, or a list or another dictionary in it: each is closed with what would close
    it, and which of the two it is shows when they are read. Raises `DumpError` for what a dump never needs.
    """
    found = _Scan(data, is_cut=True)
    try:
        found.run()
    except (IndexError, struct.error):
        pass  # this is where it was cut
    if not found.safe:
        return
    body = bytearray(data[: found.safe])
    for at in reversed([at for at in found.frames if at < found.safe]):
        del body[at : at + _FRAME_BYTES]  # what a frame holds is the same without it, and its length is no longer true
    for end in (b"eu.", b"uu.") if found.safe_marks == _DEEP else (b"u.",):
        yield bytes(body) + end


#: Marks that are open between two entries: that of the dump, and that of its list of entries.
_DEEP = 2
_FRAME_BYTES = 9


class _Scan:
    """One pass; `_stack` and `_memo` hold for each value of the pickle machine how deep it is nested (memo: 0 is none).

    A container that is remembered first and filled later counts as it was: such depth costs the machine nothing.
    """

    def __init__(self, data: bytes, *, is_cut: bool = False) -> None:
        self._data = data
        self._is_cut = is_cut
        self.frames: list[int] = []
        #: Behind the last container that was closed with at most `_DEEP` marks left open, and how many there were.
        self.safe = 0
        self.safe_marks = 0
        self._stack: list[int] = []
        self._marks: list[int] = []
        self._memo = bytearray()
        self._puts = 0

    def run(self) -> None:
        data, push, memo, plain, at = self._data, self._stack.append, self._memo, _PLAIN, 0
        for _ in range(MAX_OPCODES):
            code = data[at]
            at += 1
            if code == _BINGET and data[at] < len(memo) and memo[data[at]]:  # nine of ten opcodes are these two
                push(memo[data[at]])
                at += 1
            elif code in plain:
                push(1)
                at += plain[code]
            elif code == _STOP:
                return self._stop(at)
            else:
                at = self._other(code, at)
        raise DumpError(f"it has more than {MAX_OPCODES} opcodes")

    def _stop(self, at: int) -> None:
        if at > len(self._data):
            raise DumpError("the pickle ends in the middle", is_cut=True)
        if len(self._stack) != 1 or self._marks:
            raise DumpError("the pickle is malformed: it stops with values left over")

    def _other(self, code: int, at: int) -> int:
        size = _COUNTED.get(code)
        if size is not None:
            self._stack.append(1)
            return at + size(self._data, at)
        if code in _MEMO_PUT or code == _MEMOIZE:
            return self._put(code, at)
        if code in _MEMO_GET:
            return self._get(code, at)
        if code == _MARK:
            self._marks.append(len(self._stack))
            self._limit(len(self._marks))
        elif code in _TUPLES or code in _TAKES:
            self._pack(code)
        elif code in _MARKED_NEW or code in _MARKED_INTO:
            self._close(code)
            if 0 < len(self._marks) <= _DEEP:
                self.safe, self.safe_marks = at, len(self._marks)
        elif code == _PROTO:
            return at + 1
        elif code == _FRAME:
            self.frames.append(at - 1)
            return at + (8 if self._is_cut else _frame(self._data, at))
        else:
            self._refuse(code, at)
        return at

    def _put(self, code: int, at: int) -> int:
        layout = _MEMO_PUT.get(code)
        index = self._puts if layout is None else struct.unpack_from(layout, self._data, at)[0]
        # A pickler numbers what it remembers one by one; the machine's memo grows to the highest number.
        if index > self._puts + MEMO_SLACK:
            raise DumpError(f"it asks for memo entry {index} after {self._puts} entries")
        if index >= len(self._memo):
            self._memo.extend(bytes(index + 1 - len(self._memo)))
        self._memo[index] = self._stack[-1]
        self._puts += 1
        return at if layout is None else at + struct.calcsize(layout)

    def _get(self, code: int, at: int) -> int:
        layout = _MEMO_GET[code]
        index = struct.unpack_from(layout, self._data, at)[0]
        if index >= len(self._memo) or not self._memo[index]:
            raise DumpError(f"the pickle is malformed: memo entry {index} does not exist")
        self._stack.append(self._memo[index])
        return at + struct.calcsize(layout)

    def _pack(self, code: int) -> None:
        count = _TUPLES.get(code) or _TAKES[code]
        depth = 1 + max(self._pop(count))
        if code in _TAKES:
            depth = max(depth, self._pop(1)[0])
        self._push(depth)

    def _close(self, code: int) -> None:
        if not self._marks:
            raise DumpError("the pickle is malformed: no mark is open")
        start = self._marks.pop()
        depth = 1 + max(self._stack[start:], default=0)
        del self._stack[start:]
        if code in _MARKED_INTO:
            depth = max(depth, self._pop(1)[0])
        self._push(depth)

    def _pop(self, count: int) -> list[int]:
        low = self._marks[-1] if self._marks else 0
        if len(self._stack) - low < count:
            raise DumpError("the pickle is malformed: the stack is empty")
        taken = self._stack[-count:]
        del self._stack[-count:]
        return taken

    def _push(self, depth: int) -> None:
        self._limit(depth)
        self._stack.append(depth)

    def _limit(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise DumpError(f"it is nested deeper than {MAX_DEPTH}")

    def _refuse(self, code: int, at: int) -> None:
        if code in _FORBIDDEN:
            raise DumpError(f"refused: it asks for {_FORBIDDEN[code]} at byte {at - 1}, which could run code")
        raise DumpError(f"the pickle is malformed: opcode 0x{code:02x} at byte {at - 1} is in no dump")
