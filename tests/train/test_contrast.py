from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from fsdpclassify.classifier import Classifier, inspect_sources
from fsdpclassify.records import Role
from fsdpclassify.sources import collect
from fsdpclassify.templating import template
from train import contrast
from train.causes import load_inventory, rendered, wording_texts
from train.contrast_hosts import ABSENT, WORLD, Host, Said, hosts
from train.dataset import DATA, ROOT

PAIRS = contrast.load()
CAUSES = ("straggler", "offload_latency", "fabric_congestion", "uneven_sharding", "desync", "rank_failure")
HOSTS = pytest.mark.parametrize("host", hosts(), ids=lambda h: h.name)


def _written(host: Host, said: Said, folder: Path) -> Path:
    for name, text in host.files(said).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_there_are_enough_pairs_of_every_label_and_kind() -> None:
    labels = Counter(p.label for p in PAIRS)
    assert set(labels) == set(CAUSES)
    assert len(PAIRS) >= 90
    assert min(labels.values()) >= 12
    assert {(p.label, p.kind) for p in PAIRS} == {(label, kind) for label in CAUSES for kind in contrast.KINDS}


def _lines(host: Host, said: Said) -> Counter[str]:
    return Counter(line for text in host.files(said).values() for line in text.splitlines())


@HOSTS
def test_what_a_pair_says_stands_once_in_each_host_and_its_names_are_filled(host: Host) -> None:
    bare = _lines(host, Said())
    for pair in PAIRS:
        for half in (pair.shows, pair.well):
            added = _lines(host, pair.said(half)) - bare
            assert added.total() == len(half) + (WORLD - 1) * len(pair.others)
            assert not [line for line in added if "$" in line]


def test_halves_differ_in_what_they_say_and_hardly_in_length() -> None:
    for pair in PAIRS:
        shows, well = " ".join(pair.shows), " ".join(pair.well)
        assert shows != well
        assert 0.4 < len(shows) / len(well) < 2.5, pair.id


def _filled(pair: contrast.Pair) -> list[str]:
    """The lines of a pair as one host prints them: that host prints no prefixes."""
    host = hosts()[0]
    return [line for half in (pair.shows, pair.well) for line in _lines(host, pair.said(half)) - _lines(host, Said())]


def test_no_line_reads_like_one_that_training_sees() -> None:
    """A pair that fails here is to be worded anew: the inventory goes first."""
    inventory = load_inventory()
    known = {*wording_texts(inventory)[0], *wording_texts(inventory, seed=1)[0], *rendered(inventory)[0]}
    mine = {template(line): pair.id for pair in PAIRS for line in _filled(pair)}
    assert len(mine) > len(PAIRS)
    assert {name for text, name in mine.items() if text in known} == set()


def test_no_line_stands_in_the_labelled_incidents() -> None:
    lines = {text for pair in PAIRS for text in (*pair.shows, *pair.well)}
    for path in (p for folder in ("incidents", "written") for p in (DATA / folder).rglob("*") if p.is_file()):
        text = path.read_text(encoding="utf-8", errors="replace")
        assert not [line for line in lines if line in text], path


def _imports(path: Path) -> set[str]:
    """Modules of `train` that a file names, also within functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {n for n in names if n == "train" or n.startswith("train.")}


def _reached(module: str) -> set[str]:
    """All modules of `train` that one loads, by what the files say."""
    found, open_ = set(), [module]
    while open_:
        name = open_.pop()
        path = ROOT / (name.replace(".", "/") + ".py")
        if name not in found and path.is_file():
            found.add(name)
            open_ += sorted(_imports(path))
    return found


@pytest.mark.parametrize("module", ["train.material", "train.build", "train.encoders.release", "train.corpus"])
def test_what_fits_a_model_never_loads_the_pairs(module: str) -> None:
    reached = _reached(module)
    assert module in reached
    assert len(reached) > 2
    assert not [name for name in reached if "contrast" in name]


def test_nothing_but_the_command_names_the_file() -> None:
    files = [*(ROOT / "train").rglob("*.py"), *(ROOT / "fsdpclassify").rglob("*.py")]
    assert {p.name for p in files if "contrast.toml" in p.read_text(encoding="utf-8")} == {"contrast.py"}


@HOSTS
def test_a_host_alone_is_one_incident_in_which_rank_3_is_missing(host: Host, tmp_path: Path) -> None:
    (incident,) = inspect_sources(collect([_written(host, Said(), tmp_path)])).incidents
    roles = {row.rank: row.role for row in incident.ledger}
    assert roles == {r: Role.MISSING if r == ABSENT else Role.WAITING for r in range(WORLD)}


@pytest.mark.model
@HOSTS
def test_a_host_alone_is_undetermined(host: Host, tmp_path: Path) -> None:
    (incident,) = Classifier.load().classify(_written(host, Said(), tmp_path)).incidents
    assert incident.verdict == "undetermined"


def test_a_line_that_is_put_in_comes_after_the_last_step_and_before_the_first_timeout() -> None:
    said = Said(absent=("mine $rank",), others=("theirs $rank",), node=("$syslog $node says, $old_syslog",))
    for host in hosts():
        files = host.files(said)
        together = "\n".join(files.values())
        assert together.count("mine 3") == 1
        assert [together.count(f"theirs {r}") for r in range(WORLD)] == [int(r != ABSENT) for r in range(WORLD)]
        assert "Mar 05 03:59:42 node0" in together
        assert "Feb 26 20:59:42" in together
        holder = next(text for text in files.values() if "mine 3" in text).splitlines()
        at = next(i for i, line in enumerate(holder) if "mine 3" in line)
        steps = [i for i, line in enumerate(holder) if "1200" in line and "mine" not in line]
        assert max(steps) < at
        assert not [line for line in holder[:at] if "Watchdog" in line or "RuntimeError" in line]


def _answering(say: dict[str, tuple[str, float]]) -> contrast.Classify:
    """A product that answers by the first key found in the log; without one it abstains at 0.2."""

    def classify(logs: Path | str) -> SimpleNamespace:
        files = [] if isinstance(logs, str) else sorted(p for p in logs.rglob("*") if p.is_file())
        text = logs if isinstance(logs, str) else "\n".join(p.read_text() for p in files)
        verdict, p = next((answer for key, answer in say.items() if key in text), ("undetermined", 0.2))
        if verdict == "no_timeout":
            return SimpleNamespace(incidents=())
        return SimpleNamespace(incidents=(SimpleNamespace(verdict=verdict, probabilities={"desync": p}),))

    return classify  # type: ignore[return-value]


def _pair(name: str) -> contrast.Pair:
    return contrast.Pair(id=name, label="desync", kind="number", shows=(f"{name} bad",), well=(f"{name} good",))


def test_figures_count_verdicts_by_trial_and_order_by_pair() -> None:
    say = {
        "a bad": ("desync", 0.9), "a good": ("undetermined", 0.1),
        "b bad": ("undetermined", 0.3), "b good": ("desync", 0.8),
        "c bad": ("straggler", 0.1), "c good": ("straggler", 0.0),
        "d bad": ("desync", 0.6), "d good": ("no_timeout", 0.0),
    }  # fmt: skip
    trials = contrast.measure(_answering(say), [_pair(n) for n in "abcd"], hosts()[1:3])
    figures = contrast.row("x", trials)
    assert len(trials) == 8
    assert (figures.right, figures.abstained, figures.wrong) == (0.5, 0.25, 0.25)
    assert (figures.well_abstained, figures.well_named, figures.well_other) == (0.5, 0.25, 0.25)
    assert (figures.ordered.hits, figures.ordered.total, figures.pairs) == (3, 4, 4)
    assert figures.gap == pytest.approx((0.8 - 0.5 + 0.1 + 0.6) / 4)
    assert figures.mention == pytest.approx((0.1 + 0.8 + 0.0 + 0.0) / 4 - 0.2)
    assert [pair.id for pair, _ in contrast.worst(trials)] == ["b", "c", "d", "a"]


def test_equal_probabilities_are_not_in_order() -> None:
    trials = contrast.measure(_answering({}), [_pair("a")], hosts()[:1])
    assert (contrast.row("x", trials).ordered.hits, contrast.row("x", trials).tied) == (0, 1)


def test_the_report_shows_each_label_kind_and_host_and_the_worst_pairs() -> None:
    trials = contrast.measure(_answering({"b good": ("desync", 0.8)}), [_pair("a"), _pair("b")], hosts()[:2])
    text = contrast.render(trials, "bundle 1")
    assert text.startswith("bundle 1: 2 pairs in 2 host logs each\n")
    assert "0.00 (0.00-0.66)" in text
    assert "-0.60  b (desync, number)" in text
    content = json.loads(contrast.as_json(trials, "bundle 1"))
    assert [r["name"] for r in content["rows"]] == ["all", "desync", "number", hosts()[0].name, hosts()[1].name]
    assert [r["name"] for r in content["cells"]] == ["desync/number"]
    assert [(r["name"], round(r["gap"], 2), r["ordered"]) for r in content["pairs"]] == [("b", -0.6, 0), ("a", 0, 0)]


def test_a_folder_holds_nothing_of_the_line_before() -> None:
    seen: list[set[str]] = []

    def classify(logs: Path | str) -> SimpleNamespace:
        assert isinstance(logs, Path)
        seen.append({p.name for p in logs.rglob("*") if p.is_file() and not p.name.startswith("trainer")})
        return SimpleNamespace(incidents=())

    node = contrast.Pair(id="n", label="desync", kind="number", shows=("bad",), well=("good",), by="node")
    (pods,) = (h for h in hosts() if h.name == "torch2.5-file-a-pod")
    contrast.measure(classify, [node, _pair("r")], [pods])  # type: ignore[arg-type]
    assert seen == [set(), {"node.log"}, {"node.log"}, set(), set()]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"kind": "colour"}, "kind"),
        ({"by": "nobody"}, "writer"),
        ({"well": ["bad"]}, "halves"),
        ({"extra": 1}, "extra"),
    ],
)
def test_a_pair_that_is_not_as_it_should_be_is_refused(change: dict[str, object], named: str, tmp_path: Path) -> None:
    item = {"id": "x", "label": "desync", "kind": "number", "shows": ["bad"], "well": ["good"]} | change
    file = tmp_path / "pairs.toml"
    file.write_text("[[pair]]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in item.items()))
    with pytest.raises(contrast.ContrastError, match=named):
        contrast.load(file)


@pytest.mark.model
def test_the_command_prints_the_tables_of_a_bundle(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(contrast, "load", lambda: PAIRS[:2])
    assert contrast.main(["--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["rows"][0]["pairs"] == 2
    assert 0 < content["rows"][0]["p_shows"] < 1
