"""Stacked prefixes off one line: launcher labels, container stamps, host names, c10 and logger heads.

Every rule takes one prefix from the front of what is left and notes what it says; which of the numbers
is a global rank is settled later, over the whole input (`ranks`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from fsdpclassify.parsing.clock import Stamp
from fsdpclassify.records import RawLine

_RANK = re.compile(r"\[rank(\d{1,6})\]: ?")
#: `W1019 07:21:31.225000 731679 torch/…/api.py:908] ` of Python-side torch logs, and glog builds.
_TORCH_LOG = re.compile(r"[EWIFV]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ \S{1,160}:\d+\] ")
_C10 = re.compile(r"\[[EWIFV](?:\d{3,4} \d\d:\d\d:\d\d(?:\.\d+)?)? ?(?:[\w/]+\.(?:cpp|hpp|h|cc|cu):\d+)?\] ")
_TEE = re.compile(r"\[([A-Za-z_](?:\w{0,30}[A-Za-z_])?)(\d{1,4})\]:")
_SLURM = re.compile(r" {0,4}(\d{1,5}): ")
_RAY = re.compile(r"\(([\w.:-]{1,120})(?:\[rank=(\d{1,6})\])? pid=(\d{1,9})(?:, ip=([\d.a-fA-F:]{2,45}))?\) ?")
_MPI = re.compile(r"\[(?:\d{1,9},)?(\d{1,6})\](?:<std(?:out|err|diag)>: ?|(?=[A-Za-z][\w.-]{0,80}:\d+:\d+ \[))")
#: `mpirun --timestamp-output` puts the stream's name behind a date without a rank.
_MPI_TIME = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d 20\d\d(?=<std|\[)(?:<std(?:out|err)>: ?)?")
_POD = re.compile(r"\[pod/([\w.-]{1,120})/[\w.-]{1,120}\] ")
_CRI = re.compile(r"std(?:out|err) [FP] ")
#: `aws logs tail` puts the stream's name behind the time; SageMaker's begins with the host.
_STREAM = re.compile(r"(algo-\d{1,4})[-/][\w./-]{0,200} |[\w./=-]{3,260} (?=\[rank\d{1,6}\]:)")
#: PALS labels: host and global rank.
_PALS = re.compile(r"(nid\d{3,6}|x\d{4}c\ds\d{1,3}b\dn\d[\w.-]{0,80}) (\d{1,6}): ")
_COMPOSE = re.compile(r"([A-Za-z][\w.-]{0,80}-\d+) +\| ")
_HOST = re.compile(
    r"([A-Za-z][\w.-]{0,80}\d[\w.-]{0,80}): (?=\[|\(|[EWIF]\d{4} |[A-Za-z][\w.-]{0,80}:\d+:\d+ \[|NCCL |Traceback|\{)"
)
#: `train-job/0 [default0]:…` of NeMo-Run; a process id in brackets before a task number.
_JOB = re.compile(r"([A-Za-z][\w.-]{0,40}/\d{1,5}) (?=\[[a-z]+\d+\]:)")
_PID = re.compile(r"\[\d{2,8}\] (?=\d{1,5}: |\[rank\d)")
_NCCL = re.compile(r"(?:\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] )?([A-Za-z][\w.-]{0,80}):(\d{1,8}):(\d{1,8}) \[(\d{1,3})\] ")
_SYSLOG = re.compile(
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S{8,30}) ([\w.-]{1,80}) [\w./-]{1,60}(?:\[\d+\])?: "
)
_ISO_FIRST = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)? ")
#: `ts` and many collectors write a date with a blank in it; a logger's own date is left to its message.
_DATE_FIRST = re.compile(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)? +(?=\[rank\d{1,6}\]:)")
_CLOCK_FIRST = re.compile(r"\d\d:\d\d:\d\d(?:[.,]\d+)? +")
#: More stacked prefixes than any launcher chain prints.
_DEEPEST = 12


@dataclass(slots=True)
class Peeled:
    """A line being read: `body` is what is left, the outer numbers are kept apart until the input is known."""

    raw: RawLine
    text: str
    body: str
    front: str = ""
    global_rank: int | None = None
    bracket: int | None = None
    brackets: int = 0
    tee: int | None = None
    task: int | None = None
    said: int | None = None
    node: str | None = None
    pid: int | None = None
    device: int | None = None
    stamp: Stamp | None = None
    c10: bool = False
    cpp: bool = False
    headed: bool = False
    plain: bool = True

    @property
    def source(self) -> int:
        """The input that the line is from."""
        return self.raw.source


def peel(item: Peeled) -> Peeled:
    """Take every prefix off `item.body`, in place."""
    for _ in range(_DEEPEST):
        if not item.body or not _strip_once(item):
            break
    return item


def opens_line(text: str) -> bool:
    """Whether `text` begins with a prefix that only the start of a line has."""
    return _strip_once(_probe(text)) and not text.startswith((" ", "[Rank ", "[PG "))


def prefixes_end(text: str) -> int:
    """Where the stacked prefixes at the front of `text` end: what begins before that is not glued to a message."""
    lead = len(text) - len(text.lstrip(" |>"))
    return len(text) - len(peel(_probe(text[lead:])).body)


def _probe(text: str) -> Peeled:
    return Peeled(raw=RawLine(source=0, number=0, text=text), text=text, body=text)


def _cut(item: Peeled, match: re.Match[str]) -> bool:
    item.body = item.body[match.end() :]
    return match.end() > 0


def _rank_rule(item: Peeled) -> bool:
    match = _RANK.match(item.body)
    if match is None:
        return False
    item.plain, item.brackets = False, item.brackets + 1
    item.bracket = int(match[1]) if item.bracket is None else item.bracket
    rest = item.body[match.end() :]
    if _C10.match(rest) or _TORCH_LOG.match(rest):
        item.global_rank, item.c10 = int(match[1]), True
    elif not item.c10:
        item.global_rank = int(match[1])
    return _cut(item, match)


def _c10_rule(item: Peeled) -> bool:
    match = _C10.match(item.body)
    if match is not None:
        item.cpp = True
    else:
        match = _TORCH_LOG.match(item.body)
    item.headed |= match is not None
    return match is not None and _cut(item, match)


def _tee_rule(item: Peeled) -> bool:
    match = _TEE.match(item.body)
    if match is None or match[1] == "rank" or item.tee is not None:
        return False
    item.tee, item.plain = int(match[2]), False
    return _cut(item, match)


def _slurm_rule(item: Peeled) -> bool:
    match = _SLURM.match(item.body)
    if match is None or item.task is not None or not item.plain or item.headed:
        return False
    item.task, item.plain = int(match[1]), False
    return _cut(item, match)


def _pid_rule(item: Peeled) -> bool:
    match = _PID.match(item.body)
    if match is None or not item.plain or item.headed:
        return False
    return _cut(item, match)


def _ray_rule(item: Peeled) -> bool:
    match = _RAY.match(item.body)
    if match is None:
        return False
    item.pid, item.node, item.plain = int(match[3]), match[4] or item.node, False
    if match[2] is not None:
        item.global_rank = int(match[2])
    return _cut(item, match)


def _mpi_rule(item: Peeled) -> bool:
    match = _MPI.match(item.body)
    if match is None:
        return False
    item.global_rank, item.plain = int(match[1]), False
    return _cut(item, match)


def _nccl_rule(item: Peeled) -> bool:
    match = _NCCL.match(item.body)
    if match is None:
        return False
    item.node, item.pid, item.device, item.plain = match[1], int(match[2]), int(match[4]), False
    return _cut(item, match)


def _host_rule(item: Peeled) -> bool:
    # Behind the host that a system log names, a word with a colon is an interface or a device.
    bare = item.plain and not item.headed and item.node in (None, item.raw.hint_node)
    match = _HOST.match(item.body) if bare else None
    match = match or _JOB.match(item.body) or _SYSLOG.match(item.body)
    if match is None:
        return False
    item.node = match[1]
    return _cut(item, match)


def _pod_rule(item: Peeled) -> bool:
    match = _POD.match(item.body) or _COMPOSE.match(item.body)
    if match is None:
        return False
    item.node = match[1]
    return _cut(item, match)


def _pals_rule(item: Peeled) -> bool:
    match = _PALS.match(item.body) if item.plain else None
    if match is None:
        return False
    item.node, item.global_rank, item.plain = match[1], int(match[2]), False
    return _cut(item, match)


def _stream_rule(item: Peeled) -> bool:
    """A stream's name, only right behind a collector's time: elsewhere such a word is a path."""
    front = item.text[: len(item.text) - len(item.body)]
    match = _STREAM.match(item.body) if item.plain and _ISO_FIRST.fullmatch(front) else None
    if match is None:
        return False
    item.node = match[1] or item.node
    return _cut(item, match)


def _stamp_rule(item: Peeled) -> bool:
    for pattern in (_ISO_FIRST, _CLOCK_FIRST, _DATE_FIRST, _MPI_TIME, _CRI):
        match = pattern.match(item.body)
        if match is not None:
            return _cut(item, match)
    return False


Strip = Callable[[Peeled], bool]
_BRACKETED: tuple[Strip, ...] = (_rank_rule, _c10_rule, _nccl_rule, _mpi_rule, _tee_rule, _pod_rule, _pid_rule)
_LETTERED: tuple[Strip, ...] = (
    _c10_rule, _host_rule, _stamp_rule, _nccl_rule, _pod_rule, _pals_rule, _stream_rule,
)  # fmt: skip
_NUMBERED: tuple[Strip, ...] = (_host_rule, _stamp_rule, _slurm_rule)


def _strip_once(item: Peeled) -> bool:
    first = item.body[0]
    if first == "[":
        rules = _BRACKETED
    elif first == "(":
        return _ray_rule(item)
    elif first.isdigit() or first == " ":
        rules = _NUMBERED
    elif first.isalpha():
        rules = _LETTERED
    else:
        return False
    for rule in rules:
        if rule(item):
            return True
    return False
