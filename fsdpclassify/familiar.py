"""Whether a log is told in words that the training data holds (`words.txt` of a bundle), or in somebody else's.

Input: templates of lines; output: the share of them of which every word is known. What a line means is not judged
here: prose, another language or the log of other software may well resemble a cause, and a probability does not say
that the model has never met such text. Pure Python.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from pathlib import Path

WORDS_FILE = "words.txt"
#: A word in one text alone may be a name; from two on it belongs to the language of such logs.
_TEXTS = 2
_WORD = re.compile(r"[^\W\d_]{2,}")
#: Of a long line so many in a hundred of its words may be unknown, as a name among ten words is.
_UNKNOWN_WORDS = 0.1


def words_of(text: str) -> set[str]:
    """The words of a text: runs of two letters or more, in lower case."""
    return set(_WORD.findall(text.lower()))


def vocabulary(texts: Iterable[str]) -> frozenset[str]:
    """The words that stand in at least two of the distinct texts."""
    counts = Counter(word for text in set(texts) for word in words_of(text))
    return frozenset(word for word, count in counts.items() if count >= _TEXTS)


def words_bytes(words: Set[str]) -> bytes:
    """A vocabulary as the file of a bundle: one word a line, sorted."""
    return "".join(f"{word}\n" for word in sorted(words)).encode()


def load_words(folder: Path) -> frozenset[str] | None:
    """The vocabulary of a bundle; None for a bundle without one, which judges nothing as unlike its training data."""
    path = folder / WORDS_FILE
    return frozenset(path.read_text(encoding="utf-8").split()) if path.is_file() else None


def known_share(texts: Sequence[str], known: Set[str]) -> float:
    """The share of `texts` of which every word is known; 1 where there is none."""
    return sum(words_of(text) <= known for text in texts) / len(texts) if texts else 1.0


def is_familiar(text: str, known: Set[str]) -> bool:
    """Whether hardly any word of a text is unknown; not so for a text without words."""
    words = words_of(text)
    return bool(words) and len(words.difference(known)) < _UNKNOWN_WORDS * len(words)
