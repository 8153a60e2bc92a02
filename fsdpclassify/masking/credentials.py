"""Text in, the same text with `[masked]` in place of everything that looks like a secret out.

Three kinds of rules, in this order: blocks of key material, values of tell-tale names
(`password=…`, `--token …`, `Authorization: …`), and shapes that give themselves away (`hf_…`,
`AKIA…`, credentials in URLs, e-mail addresses). Names come before shapes, because a shape may
cover only a part of a value. Every quantifier is possessive, bounded, or followed by a character
outside its class, so that the time stays linear in the text.
"""

from __future__ import annotations

import re

from fsdpclassify.masking.names import END_OF_LINE_NAMES, announces_secret, flat, may_announce_secret

MASK = "[masked]"
#: A replacement may uncover the start of a name (`a@b.comProxy-Authorization: …`), so the rules run until
#: nothing changes; text that needs more rounds than this was made to.
_ROUNDS = 8

_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----.*?(?:-----END [A-Z0-9 ]{0,60}-----|\Z)",
    re.DOTALL,
)

_ASSIGNMENT = re.compile(
    r"(?<![A-Za-z0-9_.\-])(?P<name>[A-Za-z0-9_.\-]++)"
    r"[\"'\\\])]{0,4}+[ \t]{0,8}+(?P<sep>=>|:=|==?|:|%3[Dd]|>)[ \t]{0,8}+"
)
_FLAG = re.compile(r"(?<![\w\-])--?(?P<name>[A-Za-z][\w.\-]*+)(?:[\"'],[ \t]{0,8}+|[ \t]{1,8}+)(?=[^\s\-])")
_SPOKEN = re.compile(r"(?<!\w)(?P<name>password|passwd|passphrase)[ \t]{1,8}+(?:is|was)[ \t]{1,8}+", re.IGNORECASE)
_NETRC = re.compile(r"(?<!\w)login[ \t]{1,8}+\S++[ \t]{1,8}+(?P<name>password)[ \t]{1,8}+")

_QUOTE = re.compile(r"\\{0,4}+[\"']")
# A quote ends a bare value only where a list or a call goes on: `pw=a"b` is one value. A mapping begins
# no value: in `secrets={"password": …` the name inside decides, and swallowing it would bare its value.
_BARE = re.compile(r"(?:[^\s\"'{]|\{(?!\\{0,4}[\"'])|[\"'](?![,}\])\\:;\s]|\Z))++")
_XML = re.compile(r"[^\s<]++")
_HEAD_CHARACTERS = 200
_REST_OF_LINE = re.compile(r"[^\r\n]++")

#: Shapes that are secrets wherever they stand; the group `keep`, if any, stays visible. A pattern runs only
#: where one of the words before it occurs (in lower case), which spares most lines most patterns.
_SHAPES = tuple(
    (tuple(words.split()), re.compile(pattern))
    for words, pattern in (
        (
            "://",
            r"(?<=://)[^\s/?#\"'<>]{1,300}(?=@)",
        ),
        (
            "://",
            r"(?<=://)[^\s/@:\"'<>]{0,100}+:(?!\d{1,5}(?:[/\s,;)]|\Z))[^\s\"'<>@]{1,200}+(?=@)",
        ),
        (
            "bearer basic digest negotiate",
            r"(?<![A-Za-z])(?P<keep>(?i:bearer|basic|digest|negotiate)[ \t]{1,8}+)[A-Za-z0-9._~+/=\-]{8,}+",
        ),
        (
            "-u --user",
            r"(?<![\w\-])(?P<keep>(?:-u|--user)[ \t=]{1,8}+)[^\s:\"']++:[^\s\"']++",
        ),
        (
            "akia asia abia acca aroa aida agpa anpa",
            r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AGPA|ANPA)[A-Z0-9]{12,}+",
        ),
        (
            "hf_ api_org_ ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
            r"(?<![A-Za-z0-9])(?:hf|api_org|gh[pousr]|github_pat)_[A-Za-z0-9_]{16,}+",
        ),
        (
            "gl xox xapp gocspx",
            r"(?<![A-Za-z0-9])(?:gl[a-z]{2,5}|xox[a-z]|xapp|GOCSPX)-[A-Za-z0-9_\-.]{8,}+",
        ),
        (
            "sk- sk_ rk- rk_ pk- pk_",
            r"(?<![A-Za-z0-9])(?:sk|rk|pk)[\-_][A-Za-z0-9_\-]{16,}+",
        ),
        (
            "wandb_v local-",
            r"(?<![A-Za-z0-9])(?:wandb_v\d_|local-)[A-Za-z0-9_\-]{32,}+",
        ),
        (
            "aiza ya29. 1//0",
            r"(?<![A-Za-z0-9])(?:AIza|ya29\.|1//0)[A-Za-z0-9_\-.]{24,}+",
        ),
        (
            "eyj",
            r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_\-]{16,}+(?:[.=][A-Za-z0-9_\-=]*+){0,4}+",
        ),
        (
            "pypi- npm_ dckr_pat_ _v1_ nvapi- gsk_ r8_ pplx- hvs. hvb. lin_api_ ntn_ secret_ dapi "
            "kgat_ xai- fw_ tskey- pmak- sntrys_ glsa_ rpa_ shpat_ dp.st. age-secret-key-",
            r"(?<![A-Za-z0-9])(?:pypi-|npm_|dckr_pat_|do[opr]_v1_|nvapi-|gsk_|r8_|pplx-|hvs\.|hvb\.|lin_api_|ntn_|secret_"
            r"|dapi|KGAT_|xai-|fw_|tskey-|PMAK-|sntrys_|glsa_|rpa_|shpat_|dp\.st\.|AGE-SECRET-KEY-)[A-Za-z0-9_\-.]{20,}+",
        ),
        (
            "sg.",
            r"(?<![A-Za-z0-9])SG\.[A-Za-z0-9_\-]{16,}+\.[A-Za-z0-9_\-]{16,}+",
        ),
        (
            "sk ac",
            r"(?<![A-Za-z0-9])(?:SK|AC)[0-9a-f]{32}(?![0-9A-Za-z])",
        ),
        (
            ":",
            r"(?<![A-Za-z0-9:.])\d{8,12}:[A-Za-z0-9_\-]{35}(?![A-Za-z0-9_\-])",
        ),
        (
            ".atlasv1.",
            r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_\-]{16,}+",
        ),
        (
            "hooks.slack api/webhooks",
            r"(?P<keep>(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks)/)"
            r"[A-Za-z0-9/_\-]++",
        ),
        (
            "@",
            r"(?<![\w.+%\-])[\w.+%\-]++@(?:[\w\-]{1,63}\.){1,16}[^\W\d_]{2,24}(?!\w)",
        ),
    )
)
# 40 hexadecimal digits are a commit everywhere but beside the name of a service whose keys look so.
_WANDB_LINE = re.compile(r"(?i:wandb)[^\r\n]++")
_WANDB_KEY = re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]{40}(?![0-9A-Za-z])")
#: Characters that take no room and so may stand, unseen, in the middle of a token that was copied.
_UNSEEN = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+")
_UNSEEN_REST = re.compile(rf"{re.escape(MASK)}(?:{_UNSEEN.pattern}[A-Za-z0-9_.+/=\-]++)+")
_LONG_RUN = re.compile(r"(?<![A-Za-z0-9+/=_\-])[A-Za-z0-9+/]{40,}+={0,2}+(?![A-Za-z0-9+/=_\-])")


def mask_secrets(text: str) -> str:
    """Hide every secret of a known kind; applying it twice equals applying it once."""
    masked = _mask_fully(text)
    if masked.isascii() or _UNSEEN.search(masked) is None:
        return masked
    masked = _UNSEEN_REST.sub(MASK, masked)
    seen = _UNSEEN.sub("", masked)
    hidden = _mask_fully(seen)
    return masked if hidden == seen else hidden


def _mask_fully(text: str) -> str:
    for _ in range(_ROUNDS):
        masked = _mask_once(text)
        if masked == text:
            break
        text = masked
    return text


def _mask_once(text: str) -> str:
    masked = _KEY_BLOCK.sub(MASK, text) if "PRIVATE KEY" in text else text
    for pattern in (_FLAG, _SPOKEN, _NETRC, _ASSIGNMENT):
        masked = _mask_values(masked, pattern)
    lowered = masked.lower()
    for words, shape in _SHAPES:
        if any(word in lowered for word in words):
            masked = shape.sub(_hide, masked)
    if "wandb" in lowered:
        masked = _WANDB_LINE.sub(lambda line: _WANDB_KEY.sub(MASK, line.group()), masked)
    return _LONG_RUN.sub(_key_material, masked)


def _hide(match: re.Match[str]) -> str:
    return (match.groupdict().get("keep") or "") + MASK


def _mask_values(text: str, pattern: re.Pattern[str]) -> str:
    """Replace the value after every name that `pattern` finds and that announces a secret."""
    parts: list[str] = []
    done, position = 0, 0
    while (match := pattern.search(text, position)) is not None:
        if not may_announce_secret(match["name"]):
            position = match.end()
            continue
        before = text[match.start() - 1 : match.start()]
        # The decision reads a bounded head: reading whole values for every name would be quadratic.
        head, whole = match.end() + _HEAD_CHARACTERS, len(text)
        start, end = _value_span(text, match, head)
        is_file = match["name"] == "passwd" and text.endswith("/etc/", 0, match.start())
        if not is_file and announces_secret(match["name"], before, text[start:end]):
            start, end = _value_span(text, match, whole)
            parts += [text[done:start], MASK]
            done = position = end
        else:
            position = match.end()
    return "".join([*parts, text[done:]])


def _value_span(text: str, match: re.Match[str], stop: int) -> tuple[int, int]:
    """Where the value after a name lies, without its quotes; an empty span where there is none."""
    start = match.end()
    quote = _QUOTE.match(text, start, stop)
    if quote is not None:
        return quote.end(), _closing(text, quote.group(), quote.end(), stop)
    separator = match.groupdict().get("sep")
    if flat(match["name"]) in END_OF_LINE_NAMES:
        value = _REST_OF_LINE
    else:
        value = _XML if separator == ">" else _BARE
    found = value.match(text, start, stop)
    if found is None:
        return start, start
    return start, start + len(found.group().rstrip(" \t,;:)}\\"))


def _closing(text: str, quote: str, start: int, stop: int) -> int:
    """Position of the closing quote, or of the end of the line where a log cut it off."""
    line_end = text.find("\n", start, stop)
    stop = min(stop, len(text)) if line_end < 0 else line_end
    position = text.find(quote, start, stop)
    while position > 0 and text[position - 1] == "\\":
        position = text.find(quote, position + 1, stop)
    return stop if position < 0 else position


def _key_material(match: re.Match[str]) -> str:
    """Lines of key files and 40-character cloud secrets; paths, digests and names are left alone."""
    run = match.group()
    if len(run) != 40 and len(run) < 60:
        return run
    upper = sum(char.isupper() for char in run)
    lower = sum(char.islower() for char in run)
    digits = sum(char.isdigit() for char in run)
    random = upper >= 4 and lower >= 4 and digits >= 3 and run.count("/") * 8 <= len(run)
    return MASK if random else run
