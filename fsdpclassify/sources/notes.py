"""What lies beside logs and is none: notes, scripts, source code, configurations.

A note quotes the timeout of another run, a script names in a comment what one of its settings cures: read as logs,
both would show a wait that this run never had. Kinds of logs are told from content alone; here the name counts as
well, because a quoted log line looks like a printed one. A configuration that is printed inside a log stays in it.
"""

from __future__ import annotations

import re

_PACKED = re.compile(r"\.(?:gz|zst|xz|bz2)$", re.IGNORECASE)
_LOG_NAME = re.compile(
    r"\.(?:log|out|err|stdout|stderr)(?:[.-]\d+)?(?:\.te?xt)?$|\.[oe]\d+$|(?:^|[_.-])logs?(?:[_-][\w-]*)?(?:\.te?xt)?$",
    re.IGNORECASE,
)
_NOTE_SUFFIX = r"\.(?:md|markdown|mdx|rst|adoc|org|tex|html?|rtf|eml|docx?|pdf)$"
_NOTE_STEM = (
    r"^(?:readme|notes?|changelog|changes|todo|contributing|licen[cs]e|authors|summary|post-?mortem|copying)"
    r"(?:\.txt|\.text)?$"
)
_NAMES = (
    ("a note", re.compile(f"{_NOTE_SUFFIX}|{_NOTE_STEM}", re.IGNORECASE)),
    (
        "a script or source code",
        re.compile(
            r"\.(?:py|pyi|ipynb|sh|bash|zsh|csh|fish|sbatch|slurm|pbs|lsf|qsub|c|cc|cpp|cxx|cu|cuh|h|hpp|go|rs|js|ts"
            r"|java|rb|pl|lua|jl|scala|sql|diff|patch|j2|jinja2?|tf|ps1|bat)$"
            r"|^(?:makefile|dockerfile|containerfile|justfile|jenkinsfile)(?:\.\w+)?$",
            re.IGNORECASE,
        ),
    ),
    (
        "a configuration",
        re.compile(
            r"\.(?:toml|ini|cfg|conf|env|properties|lock|editorconfig)$|^(?:requirements|constraints|hostfile|hosts)"
            r"(?:[-_.]\w+)*(?:\.txt)?$",
            re.IGNORECASE,
        ),
    ),
)
_YAML = re.compile(r"\.ya?ml$", re.IGNORECASE)
_JSON = re.compile(r"\.json$", re.IGNORECASE)
#: What a cluster says of an object that lives: unlike a manifest it tells what happened.
_LIVE = re.compile(rb"(?m)^status:|^ {0,4}\"?kind\"?: \"?(?:List|Event)\b|\"status\": ?\{")
_SHEBANG = re.compile(rb"#!\s?/\S")
#: How a printed line begins or what stands at its front: a stamp, a rank, a level, a file with a line number.
_PRINTED = re.compile(
    rb"\s{0,8}(?:\[?\(?(?:\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|[IWEF]\d{3,4} \d\d:|[A-Z][a-z]{2} +\d+ \d\d:)"
    rb"|\[?(?:rank|RANK|Rank) ?\d+\]?:|\[(?:rank|default)\d+\]"
    rb"|(?:INFO|WARN(?:ING)?|ERROR|DEBUG)[: \]]|[\w.-]+:\d+:\d+ \[)"
)
#: No file has a longer name; a member of an archive may claim one.
_NAME_CHARACTERS = 255
_SAMPLE_LINES = 400
#: A log by the name of a note has more such lines than a note quotes, and hardly any other.
_MOSTLY_PRINTED, _LEAST_PRINTED = 0.9, 10

_WORD = re.compile(rb"[A-Za-z']+")
_SMALL_WORDS = frozenset(
    b"a an and are as at be because been but by for from had has have i if in is it its my not of on or our so"
    b" that the their then there these they this to was we were what when which will with would you".split()
)
_SPEAKER = re.compile(rb"(?:^|[^\w'])(?:I|we|We|my|My|our|Our|you|You|us)(?:$|[^\w])")
#: A sentence has so many words, and one in so many of them is a small one.
_LEAST_WORDS, _SHARE = 6, 4
_MARKUP = re.compile(rb"\s{0,8}(?:#{1,6} |[-*+] |\d{1,2}\. |> ?|```|~~~|\|)")
_MOSTLY_PROSE, _LEAST_SENTENCES = 0.6, 2
#: Whether it is prose shows at once; there may be thousands of files.
_FIRST_LINES = 60


def no_log(path: str, sample: bytes) -> str | None:
    """What the file labelled `path`, whose content begins with `sample`, is instead of a log; None for a log."""
    name = _PACKED.sub("", path.rsplit("!", 1)[-1].rsplit("/", 1)[-1].rsplit("\\", 1)[-1][-_NAME_CHARACTERS:])
    if _LOG_NAME.search(name):
        return None
    kind = _by_name(name, sample) or _by_content(name, sample)
    if kind is None:
        return None
    lines = _lines(sample, _SAMPLE_LINES)
    printed = sum(_PRINTED.match(line) is not None for line in lines)
    return None if printed > max(_MOSTLY_PRINTED * len(lines), _LEAST_PRINTED) else kind


def _lines(sample: bytes, most: int) -> list[bytes]:
    return [line for line in sample.split(b"\n", most)[:most] if line.strip()]


def _by_name(name: str, sample: bytes) -> str | None:
    for kind, pattern in _NAMES:
        if pattern.search(name):
            return kind
    is_document = _YAML.search(name) or (_JSON.search(name) and _is_spread(sample))
    return "a configuration" if is_document and not _LIVE.search(sample) else None


def _is_spread(sample: bytes) -> bool:
    """Whether a JSON text is one value over several lines; a log has one value a line."""
    first = sample.lstrip().split(b"\n", 1)[0].rstrip()
    return first in (b"{", b"[")


def _by_content(name: str, sample: bytes) -> str | None:
    """Scripts that begin like one, and prose: files with no suffix of their own, or that of any text."""
    if _SHEBANG.match(sample):
        return "a script or source code"
    if "." in name and not name.lower().endswith((".txt", ".text")):
        return None
    lines = _lines(sample, _FIRST_LINES)
    sentences = [line for line in lines if _is_sentence(line)]
    markup = sum(_MARKUP.match(line) is not None for line in lines if not _is_sentence(line)) if sentences else 0
    mostly = len(sentences) + markup >= _MOSTLY_PROSE * len(lines)
    spoken = any(_SPEAKER.search(line) for line in sentences)
    return "a note" if len(sentences) >= _LEAST_SENTENCES and mostly and spoken else None


def _is_sentence(line: bytes) -> bool:
    if _PRINTED.match(line):
        return False
    words = _WORD.findall(line.lower())
    return len(words) >= _LEAST_WORDS and _SHARE * sum(word in _SMALL_WORDS for word in words) >= len(words)
