"""Hosts, users, addresses and home-path names -> placeholders (`HOST_1`, `USER_1`, `IP_1`, `MAC_1`).

A name is learned where its surroundings give it away (`/home/NAME`, `NAME:pid:tid [0] NCCL`,
`tcp://NAME:29500`, `gpu-node-17`), and then replaced wherever it stands as a whole word, so that
one host stays one host. Loopback and unspecified addresses and the hosts of public documentation
identify nobody and stay.
"""

from __future__ import annotations

import re

_SURE = r"(?P<sure>[A-Za-z0-9](?:[A-Za-z0-9\-]{0,62}\.){0,8}[A-Za-z0-9\-]{0,62})"
_HOST = r"(?P<host>[A-Za-z0-9](?:[A-Za-z0-9\-]{0,62}\.){0,8}[A-Za-z0-9\-]{0,62})"
_USER = r"(?P<user>[A-Za-z0-9_][A-Za-z0-9_.\-]{0,63})"
_STEM = r"(?:ip|node|host|compute|dgx|hgx|nid|login|vm|instance|server|machine|worker|pod|cn|gpu-?node)"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"

#: Where a host or a user gives itself away; a `host` needs a digit, dot or hyphen, a `sure` one does not.
_GIVEAWAYS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?<![\w\-])(?i:hostname|host|node|nodename|nodelist|master_addr|machine|server|rdzv_endpoint|address|addr)"
        rf"(?:=|:[ \t]{{0,4}}|[\"'][ \t]?:[ \t]?)[\"']?{_HOST}",
        rf"(?<![\w.\-]){_SURE}:\d{{1,8}}:\d{{1,8}} \[",
        rf"(?<=://)(?:[^\s/@]{{1,300}}@)?{_HOST}(?=[:/\s\"']|\Z)",
        rf"\[{_HOST}\]:\d{{2,5}}(?!\d)",
        rf"(?<!\w){_MONTH}[ \t]{{1,2}}\d{{1,2}}[ \t]\d\d:\d\d:\d\d[ \t]{_SURE}[ \t]",
        rf"(?<=srun: error: ){_SURE}: ",
        rf"(?<![\w.\-])(?P<host>(?:[a-z0-9]{{1,16}}-){{0,4}}{_STEM}[\-_]?\d[a-z0-9\-]{{0,40}}(?:\[[\d,\-]{{1,60}}\])?)"
        r"(?![\w\-])",
        r"(?<![\w.\-])(?P<host>[a-z]{0,12}gpu[\-_]?\d{3,8})(?![\w\-])",
        r"(?<![\w.\-])(?P<host>[A-Za-z0-9](?:[A-Za-z0-9\-]{0,62}\.){1,8}"
        r"(?:com|net|org|edu|gov|io|ai|dev|cloud|local|localdomain|internal|intranet|lan|corp|cluster|svc|home))"
        r"(?![\w\-])",
        rf"(?:/home/|/Users/|\\Users\\|/u/)(?:[a-z]/)?{_USER}",
        rf"(?<![\w\-])(?i:user|username|user_name|logname|login|owner)"
        rf"(?:=|:[ \t]{{0,4}}|[\"'][ \t]?:[ \t]?)[\"']?{_USER}",
        rf"(?<!\w)[ug]id=\d{{1,10}}\({_USER}\)",
        rf"(?<![\w~])~{_USER}/",
        rf"(?<![\w.\-]){_USER}@(?P<host>[A-Za-z][A-Za-z0-9.\-]{{0,100}})(?=[:\s)\]]|\Z)",
        rf"(?<![\w.\-]){_USER}@(?=\d{{1,3}}\.\d{{1,3}}\.)",
    )
)
_IPV4 = re.compile(r"(?<![\w.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\w]|\.\d)")
_MAC = re.compile(r"(?<![\w:])[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}(?:(?::[0-9A-Fa-f]{2}){2})?(?![\w:])")
_COLONS = re.compile(r"(?<![\w:.])[0-9A-Fa-f:.]{2,60}+(?![\w:.])")

_PLACEHOLDER = re.compile(r"(?:HOST|USER|IP|MAC)_(\d+)")
_NUMBERED = re.compile(r"(?<!\w)(HOST|USER|IP|MAC)_(\d{1,9})(?!\w)")
_TELLING = re.compile(r"[\d.\-]")
_NOBODY = frozenset(
    "root ubuntu nobody admin user users username localhost localhost.localdomain none null true false"
    " unknown host node hostname default any all local shared data home"
    " pytorch.org github.com huggingface.co nvidia.com python.org"
    " docs.nvidia.com docs.python.org docs.pytorch.org developer.nvidia.com masked kernel".split()
)
_OPEN_ADDRESSES = frozenset({"0.0.0.0", "127.0.0.1", "255.255.255.255", "::", "::1"})


class Identities:
    """The names seen so far and their placeholders; one instance serves one report."""

    def __init__(self) -> None:
        self._placeholders: dict[str, str] = {}
        self._used = {"HOST": 0, "USER": 0, "IP": 0, "MAC": 0}
        self._known: re.Pattern[str] | None = None

    def learn(self, text: str) -> None:
        """Note every host and user that the surroundings in `text` give away."""
        for kind, number in _NUMBERED.findall(text):
            # A text that is already masked keeps its numbers; new names get higher ones.
            self._used[kind] = max(self._used[kind], int(number))
        for pattern in _GIVEAWAYS:
            for match in pattern.finditer(text):
                groups = match.groupdict()
                if groups.get("host"):
                    self.learn_host(groups["host"])
                if groups.get("sure"):
                    self._learn_name("HOST", groups["sure"].rstrip(".-"))
                if groups.get("user"):
                    self._learn_name("USER", groups["user"].rstrip(".-"))

    def learn_host(self, name: str) -> None:
        """Note a host name; of a qualified name the first label is noted as the same host."""
        name = name.rstrip(".-")
        if not _TELLING.search(name) or _IPV4.fullmatch(name):
            return
        placeholder = self._learn_name("HOST", name)
        label = name.partition(".")[0]
        if placeholder is not None and label != name and _TELLING.search(label):
            self._placeholders.setdefault(label, placeholder)

    def mask(self, text: str) -> str:
        """The text with all addresses and all names known by now replaced."""
        self.learn(text)
        masked = _MAC.sub(lambda match: self._address("MAC", match.group()), text)
        masked = _IPV4.sub(self._four_numbers, masked)
        masked = _COLONS.sub(self._colons, masked) if "::" in masked or masked.count(":") > 6 else masked
        pattern = self._pattern()
        return masked if pattern is None else pattern.sub(lambda match: self._placeholders[match.group()], masked)

    def _learn_name(self, kind: str, name: str) -> str | None:
        if len(name) < 2 or name.lower() in _NOBODY or _PLACEHOLDER.fullmatch(name) or name.isdigit():
            return None
        return self._placeholder(kind, name)

    def _placeholder(self, kind: str, name: str) -> str:
        known = self._placeholders.get(name)
        if known is None:
            self._used[kind] += 1
            known = self._placeholders[name] = f"{kind}_{self._used[kind]}"
            self._known = None
        return known

    def _address(self, kind: str, address: str) -> str:
        return address if address in _OPEN_ADDRESSES else self._placeholder(kind, address)

    def _four_numbers(self, match: re.Match[str]) -> str:
        address = match.group()
        return address if any(int(part) > 255 for part in address.split(".")) else self._address("IP", address)

    def _colons(self, match: re.Match[str]) -> str:
        from ipaddress import AddressValueError, IPv6Address

        address = match.group().rstrip(".:") if not match.group().endswith("::") else match.group()
        try:
            IPv6Address(address)
        except AddressValueError:
            return match.group()
        return self._address("IP", address) + match.group()[len(address) :]

    def _pattern(self) -> re.Pattern[str] | None:
        if self._known is None and self._placeholders:
            names = sorted(self._placeholders, key=len, reverse=True)
            self._known = re.compile(rf"(?<![\w\-])(?:{'|'.join(map(re.escape, names))})(?![\w\-])")
        return self._known
