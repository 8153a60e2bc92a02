"""The values that travel between the stages. This module imports nothing of ours.

Times are seconds on the wall clock of the printing host, as a naive POSIX-like number; `None`
means that nothing was printed. Ranks are GLOBAL ranks unless a name says `group_rank`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class InputStatus(StrEnum):
    """What became of one input."""

    OK = "ok"
    EMPTY = "empty"
    BINARY = "binary"
    UNREADABLE = "unreadable"
    TRUNCATED = "truncated"


class InputKind(StrEnum):
    """What an input was recognised as, from its content and never from its name alone."""

    LOG = "log"
    FLIGHT_RECORDER = "flight_recorder"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRow:
    """One row of `inputs` in a report; `bytes` and `lines` count what was read after decompression."""

    path: str
    kind: InputKind | None
    bytes: int
    lines: int
    status: InputStatus
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RawLine:
    """One frame of a physical line: text between newlines, further split at carriage returns.

    `source` indexes the inputs, `number` is 1 + the newlines before the frame, `frame` its index
    among the carriage-return frames of that physical line. `hint_rank` and `hint_node` come from
    a named path rule only (`rank3.log`, `node1/…`), never from other parts of a path.
    """

    source: int
    number: int
    text: str
    frame: int = 0
    hint_rank: int | None = None
    hint_node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A frame whose stacked prefixes were read: who printed it, when, and what is left (`body`)."""

    source: int
    number: int
    text: str
    body: str
    rank: int | None = None
    node: str | None = None
    pid: int | None = None
    time: float | None = None
    stamped: bool = False
    unprefixed: bool = True
    #: Which of the logs that were concatenated into one file; positions mean nothing between parts.
    part: int = 0
    #: What stood in front of `text` on the same physical line, where two messages were glued together.
    front: str = ""


class EventKind(StrEnum):
    """What a line says happened."""

    TIMEOUT = "timeout"
    STATUS = "status"
    NOTIFIED = "notified"
    DUMPING = "dumping"
    HEARTBEAT = "heartbeat"
    BARRIER = "monitored_barrier"
    STORE = "store_timeout"
    GLOO = "gloo_timeout"
    PEER_CLOSED = "peer_closed"
    MISMATCH = "mismatch"
    TRANSPORT = "transport_error"
    NCCL_ERROR = "nccl_error"
    WATCHDOG_ABORT = "watchdog_abort"
    STACK_WAIT = "stack_in_collective"
    JOINED = "desync_report"
    PHRASE = "phrase"
    STATED_HANG = "stated_hang"
    EXIT = "exit"
    ERROR = "error"
    SIGNAL = "signal"
    KILL = "oom_kill"
    HARDWARE = "hardware"
    STEP = "step"
    PHASE = "phase"
    PROGRESS = "progress_bar"
    WORLD = "world"
    MEMORY = "memory"
    SERVER = "inference_server"
    TRAINER = "trainer"
    FINISHED = "finished"
    ATTEMPT = "attempt"
    RANK_MAP = "rank_map"
    RECORDED = "flight_record"


#: Kinds any one of which makes an incident (design: a rank shown waiting or losing its peer).
DETECTIONS = frozenset(
    {
        EventKind.TIMEOUT,
        EventKind.NOTIFIED,
        EventKind.HEARTBEAT,
        EventKind.BARRIER,
        EventKind.STORE,
        EventKind.GLOO,
        EventKind.PEER_CLOSED,
        EventKind.MISMATCH,
        EventKind.TRANSPORT,
        EventKind.NCCL_ERROR,
        EventKind.WATCHDOG_ABORT,
        EventKind.STACK_WAIT,
        EventKind.PHRASE,
        EventKind.STATED_HANG,
        EventKind.RECORDED,
    }
)

#: Names of `RECORDED` events whose rank stands in a call, and of those whose rank the others wait for.
RECORDED_WAITS = frozenset({"waiting", "differs", "elsewhere"})
RECORDED_STOPS = frozenset({"idle", "stalled", "no_dump"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One fact read from a line. Fields that the line does not print stay `None`.

    `timeout_s` is the configured limit, `elapsed_s` how long the call had waited when it was
    given up; `seq` counts per process group and is never compared between groups.
    """

    kind: EventKind
    line: Line
    rank: int | None = None
    time: float | None = None
    op: str | None = None
    seq: int | None = None
    numel_in: int | None = None
    numel_out: int | None = None
    timeout_s: float | None = None
    elapsed_s: float | None = None
    group: str | None = None
    group_rank: int | None = None
    enqueued: int | None = None
    completed: int | None = None
    peer: int | None = None
    ranks: tuple[int, ...] = ()
    code: int | None = None
    local_rank: int | None = None
    step: int | None = None
    total: int | None = None
    value: float | None = None
    name: str | None = None
    detail: str | None = None
    #: The line prints no time of its own; `time` comes from what the launcher printed about it.
    estimated: bool = False


class Role(StrEnum):
    """What a rank did in an incident, as far as the input shows it."""

    WAITING = "waiting"
    NOTIFIED = "notified"
    MISSING = "missing"
    FAILED = "failed"
    COLLATERAL = "collateral"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCounters:
    """Last counters a rank printed for one process group."""

    group: str
    enqueued: int | None = None
    completed: int | None = None
    op: str | None = None
    seq: int | None = None
    numel_in: int | None = None
    numel_out: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """What the input shows about one global rank."""

    rank: int
    node: str | None = None
    role: Role = Role.UNKNOWN
    last_step: int | None = None
    step_time_s: float | None = None
    step_trend: float | None = None
    enqueued: int | None = None
    completed: int | None = None
    groups: tuple[GroupCounters, ...] = ()
    first_error: str | None = None
    exit_code: int | None = None
    dump: bool = False
    log_end: float | None = None
    clock_offset_s: float | None = None
    #: Nothing in the input was printed by this rank or about it: it did not come, or its log is not here.
    unheard: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """The call that was waited in, as printed."""

    op: str | None = None
    meaning: str | None = None
    group: str | None = None
    seq: int | None = None
    timeout_s: float | None = None
    onset: float | None = None
    detected: float | None = None
    dated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One episode of waiting: its events, who waits, who is missing, and the ledger."""

    detection: Event
    events: tuple[Event, ...]
    lines: tuple[Line, ...]
    collective: Collective | None
    onset: float | None
    world_size: int | None
    waiting: tuple[int, ...]
    failed: tuple[int, ...]
    missing: tuple[int, ...]
    ledger: tuple[LedgerRow, ...]
    nodes: tuple[str, ...] = ()
    #: For each source the lines of this attempt, where another incident borders on it.
    first_line: dict[int, int] = field(default_factory=dict)
    last_line: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A printed line and what it speaks for; `weight` is negative when it speaks against."""

    path: str
    line: int
    rank: int | None
    text: str
    supports: str
    weight: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A rival label, and what would tell it from the verdict."""

    label: str
    probability: float
    separate_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """What to change and how to check the change; empty for an undetermined incident."""

    summary: str | None = None
    steps: tuple[str, ...] = ()
    longer_timeout_helps: bool | None = None
    verify: tuple[str, ...] = ()
    ops_request: str | None = None


class Abstention(StrEnum):
    """Why the tool did not follow the model's first label."""

    LOW_CONFIDENCE = "low_confidence"
    OUT_OF_SCOPE = "out_of_scope"
    NO_EVIDENCE = "no_evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The answer for one incident."""

    verdict: str
    cause: str | None
    probability: float
    probabilities: dict[str, float]
    model_label: str
    abstained_because: Abstention | None
    collective: Collective | None
    world_size: int | None
    initiating_ranks: tuple[int, ...]
    initiating_nodes: tuple[str, ...]
    waiting_ranks: tuple[int, ...]
    failed_ranks: tuple[int, ...]
    evidence: tuple[Evidence, ...]
    alternatives: tuple[Alternative, ...]
    remedy: Remedy
    collect_next: tuple[str, ...]
    ledger: tuple[LedgerRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FatalError:
    """The first fatal error of an input that holds no incident."""

    path: str
    line: int
    rank: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """Which bundle answered; `sha256` is that of its `manifest.json`."""

    name: str
    version: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything `classify` says about its inputs; `incidents` in time order."""

    tool_version: str
    model: ModelInfo
    inputs: tuple[InputRow, ...]
    incidents: tuple[Diagnosis, ...]
    first_fatal_error: FatalError | None
    elapsed_ms: int
    extra: dict[str, str] = field(default_factory=dict)
