"""Tables of a healthy host beside a run: what a person looked at and found in order. They tell nothing.

Input: the texts of an incident's files and a random source of their own. Output: the texts with one to four
tables as files of their own or pasted before or after a log, and by how many lines each log moved down.
Nothing here is ever decisive, whatever the label: no line of a table is cited.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from random import Random

from train.simulate import wellness_gpu, wellness_host
from train.simulate.wellness_host import Table

#: The share of incidents that come with healthy tables.
SHARE = 0.12
_PASTED = 0.35
_LOGS = (".log", ".txt", ".out", ".err")
#: The program that was asked, with what it was asked by and how it answers.
TABLES: Mapping[str, Table] = {**wellness_host.TABLES, **wellness_gpu.TABLES}


def beside(texts: Mapping[str, str], rng: Random) -> tuple[dict[str, str], dict[str, int]]:
    """Maybe add tables; returns the files and, for each log that had one pasted in front, the lines it moved."""
    done: dict[str, str] = dict(texts)
    moved: dict[str, int] = {}
    if rng.random() >= SHARE:
        return done, moved
    logs = sorted(name for name, text in texts.items() if name.endswith(_LOGS) and text.strip())
    for name in rng.sample(sorted(TABLES), rng.choice((1, 1, 2, 2, 3, 4))):
        command, rows = TABLES[name](rng)
        if logs and rng.random() < _PASTED:
            _paste(done, moved, rng.choice(logs), (f"$ {command}", *rows), rng)
        else:
            asked = (f"$ {command}",) if rng.random() < 0.4 else ()
            done.setdefault(_file(logs, name, rng), "\n".join((*asked, *rows)) + "\n")
    return done, moved


def _paste(done: dict[str, str], moved: dict[str, int], log: str, rows: tuple[str, ...], rng: Random) -> None:
    newline = "\r\n" if "\r\n" in done[log] else "\n"
    block = newline.join((*rows, "")) + newline
    if rng.random() < 0.4:
        done[log] = block + done[log]
        moved[log] = moved.get(log, 0) + len(rows) + 1
    else:
        done[log] = done[log] + newline + block


def _file(logs: list[str], name: str, rng: Random) -> str:
    folder = posixpath.dirname(logs[0]) if logs and len({posixpath.dirname(log) for log in logs}) == 1 else ""
    plain = name.replace(" ", "_")
    return posixpath.join(folder, rng.choice((f"{plain}.txt", f"{plain}.txt", f"{plain}.log", f"host_{plain}.txt")))


def shifted(cited: list[str], moved: Mapping[str, int]) -> list[str]:
    """Citations `file:line` after the logs moved down."""
    parts = (place.rpartition(":") for place in cited)
    return [f"{file}:{int(number) + moved.get(file, 0)}" for file, _, number in parts]
