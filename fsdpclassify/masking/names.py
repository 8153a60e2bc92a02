"""Which names announce a secret value: `HF_TOKEN`, `db-password`, but not `eos_token` or `forward_pass`."""

from __future__ import annotations

import re

_ALWAYS = tuple(
    "password passwd passwort passphrase pwd passcode apikey accesskey accesskeyid secretkey privatekey"
    " accountkey authkey signingkey encryptionkey masterkey sshkey licensekey servicekey storagekey sharedkey"
    " deploykey hmackey appkey clientkey credential credentials authorization cookie jwt"
    " connectionstring connstr sharedaccesssignature dsn csrf xsrf otp webhook webhookurl bearer authtoken".split()
)
_DIGITS = re.compile(r"\d+\Z")
_SEPARATORS = re.compile(r"[_.\-]+")

#: Words that make `…_token` a matter of language models, and `…_pass` one of training.
_LANGUAGE = frozenset(
    "pad eos bos unk mask cls sep image video audio special next last first stop start end per prompt new max"
    " min num input output context vision decoder encoder think tool begin sot eot fim patch placeholder"
    " newline time ms loss by".split()
)
_PASS_OWNERS = frozenset(
    "db database user my smtp mail ssh sudo root admin ftp proxy redis mysql pg postgres rabbit mongo http"
    " https login cert key vault rpc git registry ldap".split()
)
_AFTER_QUERY = frozenset({"sig", "signature", "key", "code", "auth", "st", "pass", "token"})
_PATH_STARTS = ("/", "./", "../", "~/")
_NUMBER = re.compile(r"[\d.,_+\-]+(?:[eE][+\-]?\d+)?[kKmMgGtT%]?[bBs]?\Z")
_NOTHING = frozenset({"", "none", "null", "nil", "true", "false", "undefined", "unset", "required"})
_SPECIAL_TOKEN = re.compile(r"(?:<[^<>]{0,40}>|\[[A-Z_]{2,12}\]|<\|[^|]{0,40}\|>)\Z")

#: Names whose bare value may contain blanks and therefore runs to the end of the line.
END_OF_LINE_NAMES = frozenset(
    {"authorization", "proxyauthorization", "cookie", "setcookie", "passphrase", "connectionstring"}
)


def flat(name: str) -> str:
    """A name in lower case without separators and trailing digits: `Proxy-Authorization` and kin."""
    return _DIGITS.sub("", _SEPARATORS.sub("", name).lower())


_ANY_NAME = re.compile("secret|token|pass|signature|" + "|".join(_ALWAYS))


def may_announce_secret(name: str) -> bool:
    """A quick look that is never wrong about a name it turns away, whatever the value is."""
    short = flat(name)
    return short in _AFTER_QUERY or _ANY_NAME.search(short) is not None


def announces_secret(name: str, before: str, value: str) -> bool:
    """Whether `value` (unquoted) after this name is a secret; `before` is the character left of the name."""
    if value.strip().lower() in _NOTHING:
        return False
    short = flat(name)
    if name.lower().endswith("_model") and value.startswith(_PATH_STARTS):
        return False
    if "secret" in short or short.endswith(_ALWAYS):
        return not (short.endswith("pwd") and value.startswith("/"))  # PWD is the working directory
    if _NUMBER.match(value):
        return False
    if before in ("?", "&") and (short in _AFTER_QUERY or short.endswith("signature")):
        return True
    parts = _SEPARATORS.split(name.lower().strip("_.-"))
    return _is_token(short, parts, value) or _is_other(short, parts, value)


def _is_token(short: str, parts: list[str], value: str) -> bool:
    if not short.endswith("token") or _LANGUAGE.intersection(parts[:-1]):
        return False
    return not any(short == word + "token" for word in _LANGUAGE) and not _SPECIAL_TOKEN.match(value)


def _is_other(short: str, parts: list[str], value: str) -> bool:
    if short == "key":
        return len(value) >= 24 and value.isalnum() and not value.isalpha()
    if short == "auth":
        return len(value) >= 6
    owner = parts[-2] if len(parts) > 1 else short.removesuffix("pass")
    return parts[-1].endswith("pass") and (owner == "" or owner in _PASS_OWNERS)
