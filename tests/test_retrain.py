"""`retrain` on a small bundle: a new wording and a new label are learnt, and a worse bundle is not written."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fsdpclassify import bundle
from fsdpclassify import retrain as retrain_module
from fsdpclassify.catalogue import load_catalogue
from fsdpclassify.classifier import Classifier
from fsdpclassify.cli import app
from fsdpclassify.encoder import Encoder
from fsdpclassify.errors import BundleError, LabelledIncidentError, WorseModelError
from fsdpclassify.familiar import WORDS_FILE, words_bytes
from fsdpclassify.head import HEAD_FILE, Head
from fsdpclassify.labelled import content_sha256, load
from fsdpclassify.manifest import Manifest
from fsdpclassify.retrain import RetrainResult, retrain
from fsdpclassify.training import archive, recipe
from fsdpclassify.training.assemble import Provenance, carried_over, head_bytes, manifest_of
from fsdpclassify.training.examples import Example
from fsdpclassify.training.fit import LABELS, Wordings, encode_all, fit_lines
from fsdpclassify.training.weights import balanced

pytestmark = pytest.mark.model

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ROOT / "models" / "default"
TIMEOUT = (
    "[rank{0}]:[E512 21:10:07.118820344 ProcessGroupNCCL.cpp:689] [Rank {0}] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum={1}, OpType=_ALLGATHER_BASE, NumelIn=4096, NumelOut=16384, Timeout(ms)=600000) ran for"
    " 600013 milliseconds before timing out.\n"
)
LEASE = "[rank{rank}]: lakeshim: snapshot lease {n} is still held by the compactor, asking again in {m} s\n"
SPILL = "[rank{rank}]: hbmcache: demoting block {n} to the host tier, {m} blocks queued\n"


def _logs(wording: str, seed: int) -> str:
    rng = random.Random(seed)
    rank = rng.randrange(4)
    steps = "".join(f"[rank{r}]: step {seed + 3} loss {2 + r / 10:.1f}\n" for r in range(4))
    told = wording.format(rank=rank, n=rng.randrange(10**5), m=rng.randrange(2, 90))
    return steps + told + "".join(TIMEOUT.format(r, 40 + seed) for r in range(4) if r != rank)


def _incident(folder: Path, label: str, text: str, **keys: object) -> Path:
    (folder / "logs").mkdir(parents=True)
    (folder / "logs" / "train.log").write_text(text)
    content = {"schema_version": 1, "id": folder.name, "label": label} | keys
    (folder / "incident.json").write_text(json.dumps(content))
    return folder


@pytest.fixture(scope="module")
def inhouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five incidents of a label that no bundle has, five of one that it has, each in a house's own words."""
    root = tmp_path_factory.mktemp("inhouse")
    for seed in range(5):
        _incident(root / f"lease-{seed}", "lease_wait", _logs(LEASE, seed))
        _incident(root / f"spill-{seed}", "offload_latency", _logs(SPILL, seed + 10))
    return root


class _Small:
    """A part of the released bundle's material, from which a head is fitted in a second."""

    def __init__(self) -> None:
        self.manifest: Manifest = bundle.verify(SHIPPED)
        self.encoder = Encoder(SHIPPED)
        every, _ = archive.read(SHIPPED, archive.TRAINING_FILE)
        seen = set(self.manifest.training)
        self.simulated = [e for e in every if e.sha256 not in seen and e.label in LABELS][::12]
        self.real = [e for e in every if e.sha256 in seen][::6]
        self.validation = archive.read(SHIPPED, archive.VALIDATION_FILE)[0][::4]
        self.frozen = archive.read(SHIPPED, archive.FROZEN_FILE)[0][::4]
        texts, labels = archive.unpack_wordings((SHIPPED / archive.TRAINING_FILE).read_bytes())
        vectors = self.encoder.encode(texts[::16])
        self.wordings = Wordings(texts=tuple(texts[::16]), vectors=vectors, labels=tuple(labels[::16]))

    def head(self) -> tuple[bytes, recipe.Material, recipe.Trained]:
        encode = self.encoder.encode
        simulated, real = encode_all(self.simulated, encode), encode_all(self.real, encode)
        data = recipe.Material(
            simulated=tuple(simulated), validation=tuple(encode_all(self.validation, encode)), real=tuple(real),
            wordings=self.wordings, lines=fit_lines(simulated, [1.0] * len(simulated), self.wordings),
        )  # fmt: skip
        folds = recipe.out_of_fold(data)
        trained = recipe.calibrated(data, recipe.fitted(data, data.real), folds.raw, data.real)
        return head_bytes(trained.head, self.encoder.dimension), data, trained

    def write(self, folder: Path, head: bytes, training: Sequence[Example] | None, labels: Manifest) -> Path:
        names = ("encoder.onnx", "tokenizer.json", "causes.onnx", "catalogue.json")
        files = carried_over(SHIPPED, names) | {HEAD_FILE: head}
        if training is not None:
            files[archive.TRAINING_FILE] = archive.pack(
                training, [1.0] * len(training), archive.pack_wordings(self.wordings)
            )
            files[archive.VALIDATION_FILE] = archive.pack(self.validation, [1.0] * len(self.validation))
            files[archive.FROZEN_FILE] = archive.pack(self.frozen, [1.0] * len(self.frozen))
        return bundle.write(folder, labels, files)


@pytest.fixture(scope="module")
def small() -> _Small:
    return _Small()


@pytest.fixture(scope="module")
def base(small: _Small, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle whose head was fitted on exactly the examples that it carries."""
    head, data, trained = small.head()
    provenance = Provenance(
        name="small", version="1.2", data_sha256="0" * 64, code_sha256="1" * 64,
        training=tuple(e.sha256 for e in small.real), metrics={},
    )  # fmt: skip
    manifest = manifest_of(provenance, LABELS, recipe.prior(data), trained.thresholds)
    folder = tmp_path_factory.mktemp("bundles") / "small"
    return small.write(folder, head, [*small.simulated, *small.real], manifest)


@pytest.fixture(scope="module")
def hopeless(small: _Small, base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with a good head whose training examples carry each other's labels."""
    manifest = bundle.verify(base)
    labels = [e.label for e in small.simulated]
    mixed = [replace(e, label=labels[(i * 7 + 3) % len(labels)]) for i, e in enumerate(small.simulated)]
    folder = tmp_path_factory.mktemp("bundles") / "hopeless"
    return small.write(folder, (base / HEAD_FILE).read_bytes(), mixed, replace(manifest, training=()))


@pytest.fixture(scope="module")
def weak(small: _Small, base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with good training examples whose head says every label for another one."""
    manifest = replace(bundle.verify(base), labels=(*LABELS[1:], LABELS[0]))
    folder = tmp_path_factory.mktemp("bundles") / "weak"
    return small.write(folder, (base / HEAD_FILE).read_bytes(), [*small.simulated, *small.real], manifest)


@pytest.fixture(scope="module")
def retrained(weak: Path, inhouse: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[RetrainResult, Path]:
    output = tmp_path_factory.mktemp("output") / "ours"
    return retrain([inhouse], output, base=weak), output


def test_the_new_bundle_is_whole_and_says_where_it_comes_from(
    retrained: tuple[RetrainResult, Path], base: Path, inhouse: Path
) -> None:
    result, output = retrained
    assert result.after.macro_f1 > result.before.macro_f1
    manifest, before = bundle.verify(output), bundle.verify(base)
    assert (manifest.name, manifest.version) == ("ours", "1.2+retrained")
    own = {content_sha256(load(folder)) for folder in inhouse.iterdir()}
    assert len(own) == 10
    assert set(manifest.training) == set(before.training) | own
    assert (manifest.data_sha256, manifest.code_sha256) == (before.data_sha256, before.code_sha256)


def test_a_new_label_comes_after_the_others(retrained: tuple[RetrainResult, Path]) -> None:
    manifest = bundle.verify(retrained[1])
    assert manifest.labels == (*LABELS[1:], LABELS[0], "lease_wait")
    assert manifest.prior["lease_wait"] > 0
    assert all("lease_wait" in thresholds for thresholds in manifest.thresholds.values())
    assert Classifier.load(retrained[1]).labels == manifest.labels


@pytest.mark.parametrize(("wording", "label"), [(LEASE, "lease_wait"), (SPILL, "offload_latency")])
def test_the_new_wording_is_learnt_whatever_its_numbers(
    retrained: tuple[RetrainResult, Path], base: Path, wording: str, label: str
) -> None:
    before, after = Classifier.load(base), Classifier.load(retrained[1])
    for seed in (71, 72, 73):
        text = _logs(wording, seed)
        (found,) = after.classify(text, mode="best-guess").incidents
        assert found.verdict == label
        assert found.probability > before.score(text).get(label, 0.0) + 0.2
        assert found.evidence[0].text == text.splitlines()[4]
        assert sum(found.probabilities.values()) == pytest.approx(1.0, abs=1e-5)


def test_the_card_names_the_base_the_own_incidents_and_the_figures(
    retrained: tuple[RetrainResult, Path], weak: Path
) -> None:
    result, output = retrained
    card = (output / "README.md").read_text()
    assert card.startswith("# fsdpclassify bundle `ours` 1.2+retrained\n")
    assert bundle.manifest_sha256(weak) in card
    assert "| lease_wait | 5 |" in card
    assert "| offload_latency | 5 |" in card
    assert f"| {result.before.macro_f1:.3f} | {result.after.macro_f1:.3f} |" in card
    assert "README.md" in bundle.verify(output).files


def test_what_kept_files_hold_is_unchanged(retrained: tuple[RetrainResult, Path], base: Path) -> None:
    for name in ("encoder.onnx", "tokenizer.json", "frozen.npz", "validation.npz"):
        assert (retrained[1] / name).read_bytes() == (base / name).read_bytes()


@pytest.mark.parametrize(("wording", "label"), [(LEASE, "lease_wait"), (SPILL, "offload_latency")])
def test_a_verdict_may_rest_on_a_wording_that_only_own_incidents_hold(
    retrained: tuple[RetrainResult, Path], wording: str, label: str
) -> None:
    text = _logs(wording, 75)
    (found,) = Classifier.load(retrained[1]).classify(text).incidents
    assert (found.verdict, found.cause) == (label, f"own_{label}")
    assert found.evidence[0].why == f"reads like: a line of your own incidents labelled {label}"
    assert (found.remedy.summary is None) == (label == "lease_wait")


def test_own_incidents_do_not_calibrate_since_their_wordings_are_known(
    small: _Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, data, _ = small.head()
    own = [replace(i, example=replace(i.example, repository=f"own/{n}")) for n, i in enumerate(data.real[:3])]
    asked: list[list[str]] = []
    plain = recipe.calibrated

    def spy(*arguments: Any) -> recipe.Trained:  # noqa: ANN401
        asked.append([i.example.sha256 for i in arguments[3]])
        return plain(*arguments)

    monkeypatch.setattr(recipe, "calibrated", spy)
    retrain_module._trained(replace(data, real=(*own, *data.real[3:])))
    assert asked == [[i.example.sha256 for i in data.real[3:]]]


def test_the_new_bundle_can_itself_be_retrained(retrained: tuple[RetrainResult, Path], small: _Small) -> None:
    examples, weights = archive.read(retrained[1], archive.TRAINING_FILE)
    assert len(examples) == len(small.simulated) + len(small.real) + 10
    assert sum(e.label == "lease_wait" for e in examples) == 5
    assert weights == pytest.approx(
        balanced(small.simulated, [e for e in examples if e.sha256 not in {s.sha256 for s in small.simulated}]),
        rel=1e-4,
    )


def test_a_second_run_keeps_what_the_first_learnt_and_corrects_what_is_given_again(
    retrained: tuple[RetrainResult, Path], inhouse: Path, tmp_path: Path
) -> None:
    again = Path(shutil.copytree(inhouse / "lease-0", tmp_path / "given" / "lease-0"))
    card = json.loads((again / "incident.json").read_text()) | {"label": "straggler"}
    (again / "incident.json").write_text(json.dumps(card))
    # Nothing in this one has a wording of its own: only its structure can be learnt.
    _incident(tmp_path / "given" / "silent", "quiet_switch", "".join(TIMEOUT.format(r, 9) for r in range(8)))
    _incident(tmp_path / "given" / "unknown", "undetermined", "".join(TIMEOUT.format(r, 8) for r in range(3)))
    output = tmp_path / "ours"
    retrain([tmp_path / "given"], output, base=retrained[1], force=True)
    digest = content_sha256(load(again))
    before, after = (archive.read(f, archive.TRAINING_FILE)[0] for f in (retrained[1], output))
    assert [e.label for e in before if e.sha256 == digest] == ["lease_wait"]
    assert [e.label for e in after if e.sha256 == digest] == ["straggler"]
    assert len(after) == len(before) + 2
    classifier = Classifier.load(output)
    assert classifier.labels[-2:] == ("lease_wait", "quiet_switch")
    own = [c.id for c in load_catalogue(output).causes if c.id.startswith("own_")]
    assert own == ["own_lease_wait", "own_offload_latency"]
    for wording, label in ((LEASE, "lease_wait"), (SPILL, "offload_latency")):
        assert classifier.classify(_logs(wording, 74), mode="best-guess").incidents[0].verdict == label


def test_the_summary_shows_the_figures_before_and_after(retrained: tuple[RetrainResult, Path]) -> None:
    summary = retrained[0].summary
    assert "learnt from 10 of 10 labelled incidents" in summary
    assert "frozen tests, macro-F1" in summary
    assert f"written to {retrained[1]}" in summary
    assert next(line for line in summary.splitlines() if line.startswith("these incidents")).count("/10") == 2


def _cli(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["retrain", *map(str, arguments)])


def test_a_worse_bundle_is_refused_with_exit_5_and_written_only_with_force(
    hopeless: Path, base: Path, inhouse: Path, tmp_path: Path
) -> None:
    output = Path(shutil.copytree(base, tmp_path / "ours"))
    result = _cli(inhouse, "--output", output, "--base", hopeless)
    assert result.exit_code == 5, result.output
    assert "not written: worse than before" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]
    assert _contents(output) == _contents(base)
    with pytest.raises(WorseModelError, match="frozen tests, macro-F1"):
        retrain([inhouse], output, base=hopeless)
    forced = _cli(inhouse, "--output", output, "--base", hopeless, "--force")
    assert forced.exit_code == 0, forced.output
    assert f"written to {output}" in forced.stdout
    assert "lease_wait" in bundle.verify(output).labels


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_base_without_training_examples_is_a_bad_bundle(
    small: _Small, base: Path, inhouse: Path, tmp_path: Path
) -> None:
    bare = small.write(tmp_path / "bare", (base / HEAD_FILE).read_bytes(), None, bundle.verify(base))
    with pytest.raises(BundleError, match=r"training\.npz: no readable training examples"):
        retrain([inhouse], tmp_path / "ours", base=bare)
    result = _cli(inhouse, "--output", tmp_path / "ours", "--base", bare)
    assert result.exit_code == 4
    assert "training.npz" in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "ours").exists()


def test_a_base_that_is_no_bundle_exits_4(inhouse: Path, tmp_path: Path) -> None:
    result = _cli(inhouse, "--output", tmp_path / "ours", "--base", tmp_path)
    assert result.exit_code == 4
    assert "manifest.json" in result.stderr


Damage = Callable[[Path], object]
WRONG: dict[str, tuple[Damage, str]] = {
    "no card": (lambda f: (f / "incident.json").unlink(), "incident.json"),
    "no logs": (lambda f: (f / "logs" / "train.log").unlink(), "logs"),
    "no label": (lambda f: (f / "incident.json").write_text('{"schema_version": 1, "id": "x"}'), "label"),
    "no json": (lambda f: (f / "incident.json").write_text("{"), "incident.json"),
}


@pytest.mark.parametrize(("damage", "named"), WRONG.values(), ids=WRONG.keys())
def test_a_folder_of_another_form_exits_2_and_names_it(base: Path, tmp_path: Path, damage: Damage, named: str) -> None:
    folder = _incident(tmp_path / "x", "straggler", _logs(LEASE, 1))
    damage(folder)
    result = _cli(folder, "--output", tmp_path / "ours", "--base", base)
    assert result.exit_code == 2
    assert named in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(("label", "text"), [("straggler", "all is well\n"), ("no_timeout", _logs(LEASE, 1))])
def test_incidents_from_which_nothing_can_be_learnt_exit_2(base: Path, tmp_path: Path, label: str, text: str) -> None:
    folder = _incident(tmp_path / "x", label, text)
    with pytest.raises(LabelledIncidentError, match="none of the labelled incidents"):
        retrain([folder], tmp_path / "ours", base=base)
    assert _cli(folder, "--output", tmp_path / "ours", "--base", base).exit_code == 2


SPY = """
import sys
class Spy:
    asked = []
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "sentence_transformers"):
            self.asked.append(name)
sys.meta_path.insert(0, Spy())
from pathlib import Path
from fsdpclassify.retrain import retrain
result = retrain([Path(sys.argv[1])], Path(sys.argv[2]), base=Path(sys.argv[3]))
print(result.after.own_right, Spy.asked, "torch" in sys.modules)
"""


def test_the_same_incidents_give_the_same_bytes_in_another_process_and_no_torch(
    retrained: tuple[RetrainResult, Path], weak: Path, inhouse: Path, tmp_path: Path
) -> None:
    output = tmp_path / "ours"
    done = subprocess.run(
        [sys.executable, "-c", SPY, str(inhouse), str(output), str(weak)],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == f"{retrained[0].after.own_right} [] False", done.stderr
    assert Head(output)
    assert (output / "manifest.json").read_bytes() == (retrained[1] / "manifest.json").read_bytes()


def test_own_words_join_those_of_the_base_and_a_base_without_a_vocabulary_gets_none(tmp_path: Path) -> None:
    own: Any = [SimpleNamespace(texts=("orlop vault <num>", "saving now"))]
    base: Any = SimpleNamespace(root=tmp_path)
    assert retrain_module._words(base, own) == {}
    (tmp_path / WORDS_FILE).write_bytes(words_bytes({"saving", "loss"}))
    assert retrain_module._words(base, own) == {WORDS_FILE: b"loss\nnow\nnum\norlop\nsaving\nvault\n"}
