"""Whole gloo runs: who raises, who tells last, whose numbers are great, and what the package finds in them."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

from fsdpclassify.reading import find
from fsdpclassify.sources import collect
from tests.train.making import body_of, runs, truth_of
from train.simulate.build import Incident
from train.simulate.gloo.phrases import OFFLOAD, STRAGGLER, usable

_RAISED = re.compile(r"\[rank(\d+)\]: RuntimeError: \[\S+unbound_buffer")


def streams(made: Incident, rank: int) -> str:
    """What a rank of a one-node tree printed."""
    return "".join(text for name, text in made.files.items() if f"attempt_0/{rank}/" in name)


def trees(made: list[Incident]) -> list[Incident]:
    """Those of one node whose ranks have folders of their own."""
    return [one for one in made if any(re.match(r"(?!node\d)(?:\w+/)?attempt_0/0/", name) for name in one.files)]


def test_the_late_rank_of_a_run_never_raises() -> None:
    seen = 0
    for made in runs("straggler", "data_loading", 60) + runs("offload_latency", "nvme_swap", 60):
        late = truth_of(made)["initiating_ranks"]
        raised = {int(match[1]) for match in _RAISED.finditer(body_of(made))}
        assert not raised & set(late or [])
        seen += bool(late and raised)
    assert seen > 30


def test_a_late_rank_that_tells_says_so_last() -> None:
    seen = 0
    for made in trees(runs("straggler", "checkpoint_on_rank_0", 60)):
        truth = truth_of(made)
        if truth["determinable_from_log"] == "yes" and all("/0/" in line for line in truth["decisive_lines"]):
            name, number = truth["decisive_lines"][-1].rsplit(":", 1)
            assert int(number) == made.files[name].count("\n")
            seen += 1
    assert seen > 5


def test_peers_of_a_dead_rank_lose_it_and_do_not_time_out() -> None:
    for made in runs("rank_failure", "exception", 40) + runs("rank_failure", "segfault", 40):
        assert "Timed out waiting" not in body_of(made)


def test_a_signal_shows_in_the_report_of_the_agent() -> None:
    for made in runs("rank_failure", "segfault", 40):
        assert "exitcode  : -11" in body_of(made)
        assert truth_of(made)["determinable_from_log"] == "yes"


def test_the_heavy_rank_prints_the_greatest_numbers() -> None:
    column = re.compile(r"\b(?:rows|tokens|seq_len|mem_mb) (\d+)$", re.M)
    seen = 0
    for made in trees(runs("uneven_sharding", "sequence_imbalance", 80)):
        guilty = truth_of(made)["initiating_ranks"]
        means = {
            rank: statistics.mean(map(int, found))
            for rank in range(8)
            if (found := column.findall(streams(made, rank)))
        }
        if guilty and len(means) > 1:
            assert max(means, key=lambda rank: means[rank]) in guilty
            seen += 1
    assert seen


def test_the_sides_of_a_desync_stand_in_different_frames() -> None:
    told = [one for one in runs("desync", "order_mismatch", 60) if truth_of(one)["determinable_from_log"] == "partly"]
    assert told
    for made in told:
        for place in truth_of(made)["decisive_lines"]:
            name, number = place.rsplit(":", 1)
            assert "File " in made.files[name].split("\n")[int(number) - 1] or "rank" in made.files[name]


def test_a_failing_link_leaves_nobody_late() -> None:
    for made in runs("fabric_congestion", "low_bandwidth", 60):
        truth = truth_of(made)
        assert truth["initiating_ranks"] is None
        every = any("/1/" in name for name in made.files) or "[default1]" in body_of(made)
        if truth["waiting_ranks"] and truth["world_size"] and every:
            assert len(truth["waiting_ranks"]) >= truth["world_size"] // 2


def test_quiet_runs_show_no_wait() -> None:
    for made in runs("no_timeout", None, 60):
        assert "Timed out waiting" not in body_of(made)
        assert "closed by peer" not in body_of(made)


def test_validation_has_wordings_that_training_never_prints() -> None:
    texts = tuple(text for phrases in (*STRAGGLER.values(), *OFFLOAD.values()) for text in phrases.begins)
    assert 0 < len(set(texts) - set(usable(texts, True))) < len(texts) / 2
    assert usable(texts, False) == list(texts)


def test_the_package_finds_who_waits_in_a_run(tmp_path: Path) -> None:
    right = total = 0
    for made in runs("straggler", "data_loading", 12) + runs("desync", "data_dependent_branch", 12):
        for name, text in made.files.items():
            path = tmp_path / truth_of(made)["id"] / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        found = find(collect([tmp_path / truth_of(made)["id"]])).incidents
        total += 1
        right += len(found) == 1 and list(found[0].waiting) == (truth_of(made)["waiting_ranks"] or [])
    assert right >= 0.85 * total
