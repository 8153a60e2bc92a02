"""The candidates by name: how each is built into a folder, and how its graph is run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fsdpclassify.encoder import ENCODER_FILE, TOKENIZER_FILE
from train import dataset
from train.encoders import graphs, minilm, tables
from train.encoders.distil import Floats
from train.encoders.running import Runner
from train.encoders.wordings import Lines

#: Where a static candidate's tables lie before quantisation.
EXACT_FILE = "exact.npz"
#: Where a tuned transformer lies as sentence-transformers keeps it.
MODEL = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What candidates are built from: the lines that may teach, and the folder that holds one folder for each."""

    learnt: Lines
    root: Path

    def folder(self, name: str) -> Path:
        """The folder of a candidate."""
        return self.root / name


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """`build` writes graph and tokenizer into the folder; `after` names candidates that must have been built.

    `marks`: a transformer, whose tokenizer sets marks around a line. `coarse`: the candidate that this one is with
    integer weights; its activations share one scale, so it runs line by line, or other lines would move a vector.
    """

    name: str
    says: str
    build: Callable[[Setting, Path], None]
    after: tuple[str, ...] = ()
    marks: bool = False
    coarse: str | None = None

    def runner(self, folder: Path, threads: int = 1, batch: int | None = None) -> Runner:
        """The candidate's graph, run in batches of the size that suits it, or of `batch`."""
        own = 1 if self.coarse else 32 if self.marks else 256
        return Runner(folder, marks=self.marks, batch=batch or own, threads=threads)


def _shipped(setting: Setting, folder: Path) -> None:
    del setting
    folder.mkdir(parents=True, exist_ok=True)
    for name in (ENCODER_FILE, TOKENIZER_FILE):
        shutil.copyfile(dataset.BUNDLE / name, folder / name)


def _minilm(setting: Setting, folder: Path) -> None:
    del setting
    minilm.write(minilm.base(), folder)


def _tuned(how: Callable[..., object], setting: Setting, folder: Path) -> None:
    model = how(minilm.base(), setting.learnt)
    minilm.write(model, folder)
    model.save(str(folder / MODEL))  # type: ignore[attr-defined]


def _int8(of: str) -> Callable[[Setting, Path], None]:
    return lambda setting, folder: minilm.write_int8(setting.folder(of), folder)


def _static(make: Callable[[Setting], tables.Static]) -> Callable[[Setting, Path], None]:
    def build(setting: Setting, folder: Path) -> None:
        write_static(make(setting), folder)

    return build


def write_graph(static: tables.Static, folder: Path) -> None:
    """Write graph and tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    data = graphs.graph(static.pools).SerializeToString(deterministic=True)
    (folder / ENCODER_FILE).write_bytes(data)
    text = json.dumps(static.tokenizer, ensure_ascii=False, separators=(",", ":"))
    (folder / TOKENIZER_FILE).write_text(text, encoding="utf-8")


def write_static(static: tables.Static, folder: Path) -> None:
    """Write graph, tokenizer and the tables before quantisation."""
    write_graph(static, folder)
    arrays = {f"table{n}": pool.table for n, pool in enumerate(static.pools)}
    np.savez(folder / EXACT_FILE, buckets=[pool.buckets for pool in static.pools], **arrays)  # type: ignore[arg-type]


def read_static(folder: Path) -> tables.Static:
    """What `write_static` wrote."""
    with np.load(folder / EXACT_FILE) as found:
        pools = tuple(graphs.Pool(table=found[f"table{n}"], buckets=int(b)) for n, b in enumerate(found["buckets"]))
    return tables.Static(pools=pools, tokenizer=json.loads((folder / TOKENIZER_FILE).read_text(encoding="utf-8")))


def exact_vectors(folder: Path, runner: Runner, texts: list[str]) -> Floats:
    """Vectors of a static candidate before quantisation."""
    return graphs.exact(read_static(folder).pools, runner.tokens(texts))


def _start(setting: Setting) -> tables.Static:
    return read_static(setting.folder("table"))


def _distilled(teacher: str | None) -> Callable[[Setting], tables.Static]:
    return lambda setting: tables.distilled(setting.folder(teacher) / MODEL if teacher else None, dataset.DATA)


CANDIDATES: tuple[Candidate, ...] = (
    Candidate(name="shipped", says="the released bundle's table", build=_shipped),
    Candidate(name="minilm", says="all-MiniLM-L6-v2 as it is", build=_minilm, marks=True),
    Candidate(
        name="minilm-int8", says="the same with int8 weights", build=_int8("minilm"), after=("minilm",),
        marks=True, coarse="minilm",
    ),
    Candidate(
        name="tuned-causes", says="MiniLM tuned by telling causes and labels",
        build=lambda s, f: _tuned(minilm.classified, s, f), marks=True,
    ),
    Candidate(
        name="tuned-causes-int8", says="the same with int8 weights", build=_int8("tuned-causes"),
        after=("tuned-causes",), marks=True, coarse="tuned-causes",
    ),
    Candidate(
        name="tuned-pairs", says="MiniLM tuned by contrast of causes",
        build=lambda s, f: _tuned(minilm.contrasted, s, f), marks=True,
    ),
    Candidate(
        name="tuned-pairs-int8", says="the same with int8 weights", build=_int8("tuned-pairs"),
        after=("tuned-pairs",), marks=True, coarse="tuned-pairs",
    ),
    Candidate(name="table", says="table distilled from MiniLM anew", build=_static(_distilled(None))),
    Candidate(
        name="table-causes", says="table distilled from tuned-causes", build=_static(_distilled("tuned-causes")),
        after=("tuned-causes",),
    ),
    Candidate(
        name="table-pairs", says="table distilled from tuned-pairs", build=_static(_distilled("tuned-pairs")),
        after=("tuned-pairs",),
    ),
    Candidate(
        name="static-pairs", says="StaticEmbedding from the distilled table, by contrast of causes",
        build=_static(lambda s: tables.contrasted(_start(s), s.learnt)), after=("table",),
    ),
    Candidate(
        name="static-scratch", says="StaticEmbedding from random rows, by contrast of causes",
        build=_static(lambda s: tables.contrasted(_start(s), s.learnt, scratch=True)), after=("table",),
    ),
    Candidate(
        name="taught-tokens", says="rows of tokens taught causes and labels, held near the distilled table",
        build=_static(lambda s: tables.taught(_start(s), s.learnt, buckets=0)), after=("table",),
    ),
    Candidate(
        name="taught", says="the same with rows of pairs of tokens",
        build=_static(lambda s: tables.taught(_start(s), s.learnt)), after=("table",),
    ),
    Candidate(
        name="taught-signs", says="the same, where pairs begin with random signs",
        build=_static(lambda s: tables.taught(_start(s), s.learnt, signs=tables.SIGNS)), after=("table",),
    ),
    Candidate(
        name="taught-mean", says="the mean of four such teachings, as released",
        build=_static(lambda s: tables.taught(_start(s), s.learnt, signs=tables.SIGNS, rounds=tables.ROUNDS)),
        after=("table",),
    ),
    Candidate(
        name="table+signs", says="the distilled table joined with random signs of tokens and pairs",
        build=_static(lambda s: tables.with_random_pairs(_start(s))), after=("table",),
    ),
    Candidate(
        name="table+signs+taught", says="the three joined",
        build=_static(lambda s: tables.joined(read_static(s.folder("table+signs")), read_static(s.folder("taught")))),
        after=("table+signs", "taught"),
    ),
)  # fmt: skip
BY_NAME = {candidate.name: candidate for candidate in CANDIDATES}


def build(name: str, setting: Setting) -> Path:
    """The folder of a candidate, built first where it is missing, and what it rests on before it."""
    candidate, folder = BY_NAME[name], setting.folder(name)
    if not (folder / ENCODER_FILE).is_file():
        for needed in candidate.after:
            build(needed, setting)
        candidate.build(setting, folder)
    return folder
