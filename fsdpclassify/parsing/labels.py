"""Labels that a launcher puts before every line of a file: Hydra's `[3] `, pdsh's `node03: `.

Both look like ordinary text, so one line proves nothing: a file counts as labelled where nearly every line
carries the label and the labels differ as ranks or hosts do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fsdpclassify.parsing.peeling import Peeled
from fsdpclassify.records import RawLine

_HYDRA = re.compile(r"\[(?P<task>\d{1,6})\] ?(?=\S)")
_PDSH = re.compile(r"(?P<node>[A-Za-z][\w.-]{0,62}): (?=\S)")
#: Words with a number that name a part of the model or of the run, and no machine.
_NO_HOST = re.compile(r"(?:local_?rank|rank|gpu|cuda|device|layer|epoch|step|stage|iter|batch|[tpdce]p)[-_]?\d", re.I)
_SHARE, _FEWEST, _SAMPLED = 0.9, 4, 400
#: What pdsh and clush say themselves.
_OWN = ("pdsh@", "clush: ")

Labels = Mapping[int, re.Pattern[str]]


def labels_of(raws: Sequence[RawLine]) -> Labels:
    """For each labelled source the pattern of its labels. `raws` are in file order."""
    found: dict[int, re.Pattern[str]] = {}
    for source, texts in _samples(raws).items():
        if len(texts) < _FEWEST:
            continue
        if _hydra(texts):
            found[source] = _HYDRA
        elif _pdsh(texts):
            found[source] = _PDSH
    return found


def take_label(item: Peeled, label: re.Match[str]) -> None:
    """Note on `item` what the label of its line says."""
    said = label.groupdict()
    if "task" in said:
        item.task, item.plain = int(said["task"]), False
    else:
        item.node = said["node"]


def _samples(raws: Sequence[RawLine]) -> dict[int, list[str]]:
    """The first lines of each source that begins like a labelled one."""
    texts: dict[int, list[str]] = {}
    for raw in raws:
        kept = texts.get(raw.source)
        if kept is None:
            first = raw.text[:1]
            if raw.text.strip():
                texts[raw.source] = [raw.text] if first == "[" or first.isalpha() else []
        elif kept and len(kept) < _SAMPLED and raw.text.strip():
            kept.append(raw.text)
    return texts


def _hydra(texts: Sequence[str]) -> bool:
    matches = [m for m in map(_HYDRA.match, texts) if m]
    return len(matches) >= _SHARE * len(texts) and len({m["task"] for m in matches}) > 1


def _pdsh(texts: Sequence[str]) -> bool:
    texts = [text for text in texts if not text.startswith(_OWN)]
    hosts = [m["node"] for m in map(_PDSH.match, texts) if m]
    if len(hosts) < _FEWEST or len(hosts) < _SHARE * len(texts):
        return False
    return all(any(c.isdigit() for c in host) and not _NO_HOST.match(host) for host in set(hosts))
