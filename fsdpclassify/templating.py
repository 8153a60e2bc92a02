"""Templating: a log line becomes the text that the encoder sees. Input: one line; output: its template.

What identifies one occurrence (numbers, ids, addresses, paths, times, who printed it) becomes a slot
or goes; what tells message families apart stays: words, units, operations, and the few numbers that
are names (exit codes, signals, InfiniBand and NCCL status, Xid, switches that are 0 or 1). A quantity of
zero is no quantity: `swap used 0 B` says the contrary of `swap used 31 GB`, so zero has a slot of its own,
unless it only says which (`rank 0`). Masking for privacy is another thing.
"""

from __future__ import annotations

import re
from functools import lru_cache

#: Raised whenever a line may give another text than before; a bundle states which it was trained on.
TEMPLATING_VERSION = 2
MAX_CHARACTERS = 600

_HEAD, _CUT = 440, " … "
_RAW_HALF = 4000
_MAX_ROUNDS = 40

#: Slots a template may hold; the encoder's tokenizer knows each as one token.
SLOTS = (
    "<num>", "<zero>", "<pct>", "<time>", "<ip>", "<uuid>", "<hex>",
    "<addr>", "<path>", "<url>", "<bdf>", "<dev>", "<nic>",
)  # fmt: skip

_PROGRESS = (
    (5, "just begun"), (35, "partly done"), (65, "half done"), (90, "mostly done"), (100, "almost done"),
)  # fmt: skip

_EXIT_WORDS = {
    "-6": "aborted", "-7": "bus error", "-9": "killed", "-11": "segfault", "-15": "terminated",
    "134": "aborted", "135": "bus error", "137": "killed", "139": "segfault", "143": "terminated",
}  # fmt: skip

_CLOCK = r"\d{1,2}:\d\d:\d\d(?:[.,]\d+)?"
_STAMP = rf"\d{{4}}[-/]\d\d[-/]\d\d[T_ ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?"
_SYSLOG = rf"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {{1,2}}\d{{1,2}} {_CLOCK}"
_LEVEL = r"(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL|NOTICE)"

_WORDY = r"[\w\[(<'\"]"

# Prefixes say who and when. c10d's stand anywhere, since a progress bar prints no newline before them.
_ANYWHERE = re.compile(
    r"\[(?:rank|default|trainer|worker|local_?rank|pod/)\S{0,80}?\]:? ?(?=\S)"
    r"|\[[VIWEF](?:\d{3,4} [\d:.]{8,20})? ?[\w./-]{1,80}:\d+\] ?"
    r"|\b[VIWEF]\d{4} [\d:.]{8,20} +\d+ [\w./-]{1,120}:\d+\] ?"
    r"|\[(?:PG|Rank)(?: [^\[\]]{0,120})?\b[Rr]ank[ =:]\d+\] ?|\[Rank \d+\]:? ?"
    r"|\[repeated \d+x across cluster\][^\n]{0,120}"
)
_LEADING = re.compile(
    r"\s*(?:\([A-Za-z_][^()]{0,80}pid=\d+[^()]{0,60}\) ?"
    rf"|\[?{_STAMP}\]?(?: stdout F| stderr F)?(?=$|\W)[ ,;:|>]*(?:- (?!\w{{1,40}} -))?"
    rf"|{_SYSLOG} [\w.-]{{1,64}} (?:kernel: |[\w./-]{{1,48}}(?:\[\d+\])?: )?(?:\[ *\d+\.\d+\] ?)?"
    rf"|\[ *\d{{1,8}}\.\d{{6}}\] ?"
    rf"|\[?{_CLOCK}\]?(?:,? +-?(?= ?{_LEVEL}\b)| (?={_WORDY}))"
    rf"|\[{_LEVEL} *\|[^\[\]]{{1,80}}\](?: {_STAMP})?[ :>]*"
    rf"|{_LEVEL} \d\d-\d\d {_CLOCK} (?:\[[\w./]{{1,60}}:\d+\] *)?"
    rf"|\[\w{{1,20}}\] (?={_STAMP})|- [\w.]{{1,60}} - {_LEVEL} - "
    rf"|(?:\[\w{{1,30}}\])?\[{_LEVEL} *\](?:[: ]| - )*"
    rf"|{_LEVEL}:[\w.]{{1,80}}: ?|{_LEVEL}(?: +[|:-]+ *| {{2,}}|: )"
    r"|\[[\w./-]{1,60}:\d+(?::\w{1,60})?\] ?"
    r"|\[?\b[Rr]ank[ _:=]?\d+\b(?:/\d+)?\]?(?: *[|:-]+ | *\|)"
    rf"|\[{_STAMP} [A-Z]{{2,4}}\d{{1,4}}(?: [A-Z]{{2,4}}\d{{1,4}})*\] "
    rf"|\[NeMo [A-Z] {_STAMP} [\w.]{{1,60}}:\d+\] ?"
    r"|\[\d{1,6}\](?::? |(?=[\w.-]{1,64}:\d+:\d+ \[))|\d{1,6}: +(?=\D)|\[\d+,\d+\]<std\w+>:? ?|[|>-] "
    r"|(?:[\w.-]{1,64}:\d+:\d+ (?:\[(?:\d+|<num>)\] )?)(?=(?:\S{1,60} )?NCCL )"
    r"|(?:node|host|ip-|worker|gpu)[\w.-]{0,60}: +(?=\S))"
)

_BAR = re.compile(
    r"(\d{1,3})%\|[^|\n]{0,200}\|? *(?:[\d.?]+\w?/[\d.?]+\w?)?(?: *\[[^\[\]]{0,200}\]?)?"
    r"|(?<![\d/])(\d{1,12})/(\d{1,12}) \[[\d:]{4,9}<[^\[\]]{0,200}\]"
)

# Numbers that are names. `Xid (PCI:0000:9b:00): 79` and `status=12` say what happened, not which occurrence.
_EXIT = (
    r"\b(?:[Ee]xit ?[Cc]odes?|exit_code|[Rr]eturn ?codes?|returncode|[Ee]xit status|status code|code"
    r"|exit(?:ed)?(?: with)?(?: exit)?(?: code)?) ?[:=]? ?-?\d{1,3}\b"
)
_NAMES = re.compile(
    rf"(?P<exit>{_EXIT})(?! ?(?:aborted|bus error|killed|segfault|terminated))"
    r"|\bXid \([^()]{0,60}\): (?P<xid>\d{1,3}\b)"
    rf"|{_EXIT}"
    r"|\b(?:[Ss]ignal|status|errno|vendor[ _]err|with error|failure|SIG[A-Z]{2,6})[ :=]{1,2}"
    r"(?:[A-Z_]{3,40}\()?\d{1,4}\b"
    r"|\b[A-Z][A-Z0-9]{1,20}_[A-Z0-9_]{2,60}(?:=| set to | set by environment to )[01]\b(?!\.?\d)"
    r"|-> \d{1,2}(?=$| \[[A-Z])|\bNumel(?:In|Out)=[01]\b|\bRC: -?\d{1,3}\b|(?<=[:=] )-1\b"
)
_NAMED = re.compile(
    r"[Ee]xit|[Cc]ode|Xid|[Ss]ignal|status|errno|err|failure|SIG|-> |Numel|RC: |[:=] -1|(?:=| to )[01]\b"
)
# Named digits leave the scan as private-use characters and come back at the end.
_HIDE = str.maketrans({chr(48 + i): chr(0xE000 + i) for i in range(10)})
_SHOW = str.maketrans({chr(0xE000 + i): chr(48 + i) for i in range(10)})

_SPECIFIC = re.compile(r"[0-9/]")
_PLAIN = re.compile(r"((?:[A-Za-z_()-]*[=:(\[])?)(\d+(?:\.\d+)?)((?:[KMGT]i?B|[kmnu]?s)?[,.;:)\]}]*)")
# Within one word; leftmost alternative first: what stays comes before what becomes a slot.
_TOKENS = re.compile(
    r"(?P<word>(?<![A-Za-z0-9])(?i:c10d?|p2p|d2h|h2d|fp8|fp16|fp32|bf16|bfloat16|float(?:8|16|32|64)"
    r"|u?int(?:4|8|16|32|64)|mlx[45]_core|s3|gcs|fsdp[12]|zero[-_]?[123]|ipv[46]|adam8bit|utf-?8|md5|sha\d+"
    r"|x86_64|k8s|python3?|[hab][12]00|[248]bit|oauth2|http2?|torch2|nccl2|libc10|cuda1[0-9])(?![A-Za-z0-9]))"
    r"|(?P<uuid>\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b)"
    r"|(?P<url>\b[a-z][a-z0-9+]{1,9}://[^\s'\"<>)\]]{1,400})"
    r"|(?P<bdf>\b(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\b)"
    rf"|(?P<time>{_STAMP}|\b\d{{4}}-\d\d-\d\d\b|\b\d{{1,3}}:\d\d(?::\d\d)?(?:[.,]\d+)?\b)"
    r"|(?P<ip>(?:\[?(?:::ffff:)?\b(?:\d{1,3}\.){3}\d{1,3}\b\]?|\b(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F]{1,4}\b"
    r"|\bfe80:[0-9a-fA-F:%\w]{2,45})(?::\d{1,5}\b|<\d{1,5}>)?)"
    r"|(?P<path>(?<![\w.<])(?:~|\.{1,2}|[A-Za-z]:)?(?:/[\w.@%+=,-]{1,120}){2,24}/?)"
    r"|(?P<addr>\b0x[0-9a-fA-F]{1,16}\b)"
    r"|(?P<dev>\b(?:mlx[45]|bnxt_re|rocep?|efa|rdmap|hfi1)_?\d\w{0,12}\b)"
    r"|(?P<nic>\b(?:eth|ib|bond|eno|ens|enp|veth|docker|ibs|ibp)\d\w{0,12}\b)"
    r"|(?P<hex>\b(?=[a-fA-F]{0,31}\d)(?=\d{0,31}[a-fA-F])[0-9a-fA-F]{7,64}\b)"
    r"|(?P<pct>[-+]?\d+(?:\.\d+)?%)"
    r"|(?P<num>(?:(?<![\w.)\]>])[-+])?\d+(?:[,_]\d+)*(?:\.\d+)*(?:[eE][-+]?\d+(?![A-Za-z]))?)"
)

_LISTS = re.compile(r"(<(?:hex|ip|time)>)(?:(?:, ?| ?x ?| |; ?|-)\1)+")
_NUMBERS = tuple(
    (slot, re.compile(rf"<(?:{slot}|zero)>(?:(?:, ?| ?x ?| |; ?|-)<(?:{slot}|zero)>)+")) for slot in ("num", "pct")
)
#: What stands before a number that says which, not how much: `rank 0` is no zero.
_WHICH = re.compile(
    r"(?:ranks?|gpus?|devices?|cuda|nodes?|hosts?|step|epoch|iter|iteration|worker|group|pg|pid|uid|process|proc|idx"
    r"|index|stage|shard|part|partition|id|instance|port|channel|ring|tree|bus|replica|attempt|restart|seq|seqnum"
    r"|sequence|batch|microbatch|layers?|block|bucket|socket|numa|line|column|version|level|priority|v|thread|stream"
    r"|slot|lane|dim|axis|rail|hca|comm|dev|net|opcode|type|mode|state|tag|task|job|pod|container|rail|file|round)"
)
#: A number glued to a name is part of it; dots may also lead from a name to its value.
_GLUED = re.compile(r"(?:[A-Za-z0-9][._-]|[_#]|[A-Za-z0-9])$")
_LAST_WORD = re.compile(r"([A-Za-z]+)[^A-Za-z0-9]*$")
_ZERO = re.compile(r"[-+]?0+(?:[.,]0*)*%?")
_NIC_KIND = re.compile(r"[a-z]{2,6}")
_RUNS = re.compile(r"([^\w\s<>])\1{3,}")
_SPACE = re.compile(r"\s+")
_BAR_GLYPHS = re.compile("[\u2580-\u259f]+")
_LIBRARY = re.compile(
    r"(?:site|dist)-packages/(.{1,200})$|^/((?:dev|proc|sys)/[a-z_]{2,20})(?:/(?:[^/]{1,80}/)*([a-z_]{2,40})$)?"
)


def template(text: str) -> str:
    """Return the template of one line: idempotent, at most `MAX_CHARACTERS` long, never raises.

    Time is linear in the length: only the first and last 4,000 characters are looked at, once, and
    what remains (at most 600) is rewritten until nothing changes.
    """
    if len(text) > 2 * _RAW_HALF:
        text = text[:_RAW_HALF] + _CUT + text[-_RAW_HALF:]
    return _settle(_rewrite(text))


@lru_cache(maxsize=16384)
def _settle(text: str) -> str:
    """Rewrite until nothing changes; a log has few templates, so nearly every call is remembered."""
    for _ in range(_MAX_ROUNDS):
        rewritten = _rewrite(text)
        if rewritten == text:
            break
        text = rewritten
    return text


def _rewrite(text: str) -> str:
    """One round: prefixes off, bars to words, tokens to slots, lists and runs folded, length capped."""
    text = _strip(_SPACE.sub(" ", text).strip())
    if "%|" in text or "<" in text:
        text = _BAR.sub(_how_far, text)
    text = _slots(text)
    text = _BAR_GLYPHS.sub(" ", _RUNS.sub(r"\1\1\1", _lists(text)))
    return _cap(_SPACE.sub(" ", text).strip())


def _strip(text: str) -> str:
    """Remove the stacked prefixes; a line that is nothing but a prefix keeps its words."""
    text = _ANYWHERE.sub(" ", text) or text
    start = 0
    while found := _LEADING.match(text, start):
        if found.end() == start:
            break
        start = found.end()
    return text[start:]


def _lists(text: str) -> str:
    """Fold lists of one slot; zeros among other numbers are numbers."""
    text = _LISTS.sub(r"\1", text)
    for slot, pattern in _NUMBERS:
        text = pattern.sub(lambda found, name=f"<{slot}>": name if name in found[0] else "<zero>", text)  # type: ignore[misc]
    return text


def _how_far(found: re.Match[str]) -> str:
    """Say how far a progress bar is, in words that an encoder knows."""
    percent = int(found[1]) if found[1] else 100 * int(found[2]) // max(1, int(found[3]))
    return f"<pct> {next((words for limit, words in _PROGRESS if percent < limit), 'complete')} "


def _slots(text: str) -> str:
    """Rewrite the words that hold digits or slashes, after the numbers that are names were put away."""
    if not _SPECIFIC.search(text):
        return text
    if _NAMED.search(text):
        text = _NAMES.sub(_hide, text)
    words = text.split(" ")
    pairs = zip(["", *words], words, strict=False)
    words = [_word(word, _says_which(before)) if _SPECIFIC.search(word) else word for before, word in pairs]
    return " ".join(words).replace("<num> %", "<pct>").replace("<zero> %", "<zero>").translate(_SHOW)


@lru_cache(maxsize=65536)
def _says_which(before: str) -> bool:
    """Whether a number after this text says which one is meant; at the start of a line it does."""
    found = _LAST_WORD.search(before)
    return _WHICH.fullmatch(found[1].lower()) is not None if found else not before


def _hide(found: re.Match[str]) -> str:
    """Put the digits of a named number away; an exit code gets its meaning beside it."""
    text = found[0]
    if found["xid"]:
        text = f"Xid status {found['xid']}"
    elif found["exit"]:
        word = _EXIT_WORDS.get(text[max(text.rfind(c) for c in " :=") + 1 :])
        text = f"{text} {word}" if word else text
    return text.translate(_HIDE)


@lru_cache(maxsize=65536)
def _word(word: str, which: bool) -> str:
    """Rewrite one word, which follows a text that `which` tells of; most are a number with a key or a unit."""
    if plain := _PLAIN.fullmatch(word):
        return f"{plain[1]}<{_number(plain[2], plain[1], which)}>{plain[3]}"
    return _TOKENS.sub(lambda found: _slot(found, which), word)


def _slot(found: re.Match[str], which: bool) -> str:
    """What one recognised token becomes."""
    kind, text = found.lastgroup or "num", found[0]
    if kind == "word":
        return text
    if kind == "path":
        return _path(text)
    if kind == "nic":
        return f"<nic> {_NIC_KIND.match(text)[0]}"  # type: ignore[index]
    if kind in ("num", "pct"):
        return f"<{_number(text, found.string[: found.start()], which, kind)}>"
    return f"<{kind}>"


def _number(text: str, before: str, which: bool, kind: str = "num") -> str:
    """The slot of a number: `zero` where it is a quantity and nothing of it is there."""
    if not _ZERO.fullmatch(text):
        return kind
    return kind if _names_one(before, which) else "zero"


def _names_one(before: str, which: bool) -> bool:
    """Whether what stands before a number in its word says that it is a name; `which` says so of the word before."""
    if _GLUED.search(before):
        return True
    if _LAST_WORD.search(before):
        return _says_which(before)
    return which and not any(c.isalnum() for c in before)


def _path(text: str) -> str:
    """A path becomes a slot, but a library's own module and a kernel's folder are words worth keeping."""
    found = _LIBRARY.search(text)
    if not found:
        return "<path>"
    kept = found[1] or "/".join(part for part in found.groups()[1:] if part)
    return "<path> " + kept.replace("/", " ").strip()


def _cap(text: str) -> str:
    """Cut the middle out of a text that is too long: causes stand in front, consequences at the end."""
    if len(text) <= MAX_CHARACTERS:
        return text
    return text[:_HEAD] + _CUT + text[len(text) - (MAX_CHARACTERS - _HEAD - len(_CUT)) :]
