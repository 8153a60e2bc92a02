"""`python -m train lab --table`: what each fault shows under each wrapper, from the stored recordings alone.

One row a fault and wrapper: the first telling line, who waits, whether the timeout came, dumps. For `lab_train` and
`lab_val` also what `inspect` makes of them, without a model; `lab_test` and `lab_fresh` are described but never read
by the product.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train.lab.faults import SPLITS
from train.lab.plan import Recording
from train.lab.store import stored_dumps, stored_logs
from train.lab.witness import telling_line

_READ_SPLITS = ("lab_train", "lab_val")
_BEGIN, _END = "<!-- table: made by `python -m train lab --table` -->\n", "<!-- end of table -->\n"
_LONGEST = 96
#: The way to the source file that a C++ error names; only the file tells something.
_SOURCE = re.compile(r"(?<=[\[ ])/__w/[\w/]{1,120}/")
_HEAD = (
    "fault",
    "label",
    "wrapper",
    "runs",
    "world",
    "first telling line",
    "waiting",
    "timeout",
    "dumps",
    "guilty rank",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One stored recording: its plan, its `incident.json`, its telling line, ranks with a dump, what was read of it.

    `found`: whether `inspect` finds an incident (None: not asked), `blamed`: the ranks that it shows absent,
    `blamed_by_logs`: those that it shows absent when the dumps are taken away.
    """

    recording: Recording
    incident: Mapping[str, Any]
    line: str
    dumps: int
    found: bool | None = None
    blamed: tuple[int, ...] = ()
    blamed_by_logs: tuple[int, ...] = ()

    @property
    def is_readable(self) -> bool:
        """Whether an incident is found exactly where there is one."""
        return self.found == bool(self.incident["label"] != "no_timeout")

    @property
    def verdict(self) -> str:
        """`right`, `none` or `wrong` against the injected ranks; `-` where no rank is guilty or nobody asked.

        Under a fault of the network, where none is guilty, `named` says that one is shown absent all the same.
        """
        if self.found and self.incident["label"] == "fabric_congestion" and self.blamed:
            return "named"
        return self._judged(self.blamed)

    @property
    def verdict_by_logs(self) -> str:
        """The same without the dumps."""
        return self._judged(self.blamed_by_logs)

    def _judged(self, blamed: tuple[int, ...]) -> str:
        wanted = self.recording.ranks
        if self.found is None or self.incident["label"] in ("no_timeout", "fabric_congestion") or not wanted:
            return "-"
        return "right" if blamed == wanted else "wrong" if blamed else "none"


def tell(recordings: Iterable[Recording], out: Path) -> list[Told]:
    """Read what is stored of `recordings` below `out`, in the order of the plan."""
    found = ((r, out / r.fault.split / r.id) for r in recordings)
    return [_told(recording, folder) for recording, folder in found if folder.exists()]


def _told(recording: Recording, folder: Path) -> Told:
    found, blamed, by_logs = _inspected(folder) if recording.fault.split in _READ_SPLITS else (None, (), ())
    return Told(
        recording=recording,
        incident=json.loads((folder / "incident.json").read_text()),
        line=telling_line(stored_logs(folder)),
        dumps=len(stored_dumps(folder)),
        found=found,
        blamed=blamed,
        blamed_by_logs=by_logs,
    )


def _inspected(folder: Path) -> tuple[bool, tuple[int, ...], tuple[int, ...]]:
    """Whether the package finds an incident, which ranks it shows absent, and which it does without the dumps."""
    from fsdpclassify.labelled import load, neutral_logs

    with neutral_logs(load(folder)) as logs:
        found, blamed = _absent(logs)
        if not (logs / "traces").is_dir():
            return found, blamed, blamed
        shutil.rmtree(logs / "traces")
        return found, blamed, _absent(logs)[1]


def _absent(logs: Path) -> tuple[bool, tuple[int, ...]]:
    """Whether there is an incident in `logs`, and the ranks shown failed, missing or begun by flight recorder."""
    from fsdpclassify.reading import find
    from fsdpclassify.sources import collect

    findings = find(collect([logs]))
    if not findings.incidents:
        return False, ()
    last = findings.incidents[-1]
    return True, (findings.recorded.front.initiating if findings.recorded else ()) or last.failed or last.missing


def rendered(told: Sequence[Told]) -> str:
    """The table and its totals as Markdown."""
    rows: dict[tuple[str, str], list[Told]] = {}
    for each in told:
        rows.setdefault((each.recording.fault.name, each.recording.wrapper), []).append(each)
    lines = [*totals(told), "", f"| {' | '.join(_HEAD)} |", "|" + "---|" * len(_HEAD)]
    for key in sorted(rows, key=lambda k: (rows[k][0].recording.fault.split, k)):
        lines.append(f"| {' | '.join(_cells(rows[key]))} |")
    return "\n".join(lines) + "\n"


def _cells(group: Sequence[Told]) -> tuple[str, ...]:
    first = group[0]
    fault = first.recording.fault
    line = _SOURCE.sub("…/", first.line)[:_LONGEST].replace("|", "\\|").replace("`", "'")
    return (
        f"{fault.name} ({fault.split.removeprefix('lab_')})",
        fault.label,
        first.recording.wrapper,
        str(len(group)),
        _each([str(t.recording.world) for t in group]),
        f"`{line}`" if line else "-",
        _each([_span(t.incident.get("waiting_ranks", ())) for t in group]),
        _each(["yes" if t.incident.get("timeout_s") else "no" for t in group]),
        _each([f"{t.dumps} of {t.recording.world}" if t.dumps else "-" for t in group]),
        _each([t.verdict for t in group]),
    )


def _each(values: Sequence[str]) -> str:
    """One value for each run, or one for all where they are the same."""
    return "; ".join(values if len(set(values)) > 1 else values[:1])


def _span(ranks: Sequence[int]) -> str:
    return ", ".join(str(r) for r in ranks) or "-"


def totals(told: Sequence[Told]) -> list[str]:
    """Sentences that count: recordings, dumps, seeds, wrappers, and what `inspect` reads of train and val."""
    runs = Counter((t.recording.fault.name, t.recording.wrapper) for t in told)
    wrappers = Counter(name for name, _ in runs)
    sizes = Counter(t.recording.fault.split for t in told)
    splits = ", ".join(f"{name} {sizes[name]}" for name in SPLITS)
    read = [t for t in told if t.found is not None]
    dumped = [t for t in read if t.dumps]
    network = [t.verdict for t in read if t.incident["label"] == "fabric_congestion"]
    return [
        f"{len(told)} recordings ({splits}) of {len(wrappers)} faults, {sum(t.dumps > 0 for t in told)} with dumps; "
        f"{len({name for (name, _), n in runs.items() if n > 1})} faults with two seeds or more on one wrapper, "
        f"{sum(n == 3 for n in wrappers.values())} on all three wrappers.",
        f"`inspect` on `lab_train` and `lab_val`: {sum(t.is_readable for t in read)} of {len(read)} read as what they "
        f"are (an incident or none). Guilty rank where there are dumps: {_share(t.verdict for t in dumped)}; the same "
        f"recordings without their dumps: {_share(t.verdict_by_logs for t in dumped)}; recordings without dumps: "
        f"{_share(t.verdict for t in read if not t.dumps)}. Faults of the network, where no rank is guilty: one is "
        f"shown absent in {network.count('named')} of {len(network)}.",
    ]


def _share(verdicts: Iterable[str]) -> str:
    counts = Counter(verdicts)
    asked = counts["right"] + counts["none"] + counts["wrong"]
    return f"right in {counts['right']} of {asked} (none named in {counts['none']}, another in {counts['wrong']})"


def write_into(path: Path, table: str) -> None:
    """Put `table` between its marks in the file; at the end where there are none yet."""
    text = path.read_text()
    block = _BEGIN + "\n" + table + "\n" + _END
    pattern = re.compile(re.escape(_BEGIN) + ".*?" + re.escape(_END), re.DOTALL)
    path.write_text(pattern.sub(lambda _: block, text) if _BEGIN in text else text.rstrip("\n") + "\n\n" + block)
