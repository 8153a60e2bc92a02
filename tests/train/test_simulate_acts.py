"""What the causes leave in a report: the guilty say more, phases end, crashes convict, decoys do not."""

from __future__ import annotations

import re
from random import Random

import pytest

from tests.train.making import body_of, scenes, truth_of
from train.simulate.build import build_world, inventory
from train.simulate.fitting import at_home
from train.simulate.plan import Job, jobs


@pytest.fixture(scope="module")
def work() -> list[Job]:
    return jobs(inventory(), 7, 0.04)


def test_the_ranks_that_hold_more_print_more() -> None:
    line = re.compile(r"\[rank (\d+)\].*? (\d+) tokens|sum of lengths (\d+) on rank (\d+)")
    seen = 0
    for made in scenes("uneven_sharding", "sequence_imbalance", 400):
        guilty = truth_of(made)["initiating_ranks"]
        rows = [match for match in line.finditer(body_of(made)) if match[4]]
        loads = {int(match[4]): int(match[3]) for match in rows}
        if guilty and len(loads) > 1 and set(guilty) & set(loads):
            assert max(loads, key=lambda rank: loads[rank]) in guilty
            seen += 1
    assert seen


def test_a_phase_of_a_healthy_run_ends_after_it_begins() -> None:
    inventory_ = inventory()
    begins = {family.id: family for family in inventory_.families if family.role == "phase" and not family.closes}
    ends = [family for family in inventory_.families if family.closes in begins and "{" not in family.template]
    pairs = [(begins[str(end.closes)], end) for end in ends if "{" not in begins[str(end.closes)].template]
    found = 0
    for made in scenes("undetermined", None, 120, "long"):
        for text in made.files.values():
            for begin, end in pairs:
                if begin.template in text and end.template in text:
                    assert text.index(begin.template) < text.index(end.template)
                    found += 1
    assert found


def test_without_a_cause_only_waiting_ranks_raise_after_the_timeout() -> None:
    crash = re.compile(
        r"\[rank(\d+)\]: (?:RuntimeError: (?:DataLoader|CUDA error)|EOFError|BrokenPipe|torch\.\S*OutOf)"
    )
    seen = 0
    for made in scenes("undetermined", None, 250):
        waiting = truth_of(made)["waiting_ranks"] or []
        text = body_of(made)
        for match in crash.finditer(text, max(0, text.find("Watchdog caught"))):
            assert int(match[1]) in waiting, made.files
            seen += 1
    assert seen


def test_a_late_traceback_convicts_only_a_rank_that_does_not_wait() -> None:
    late = re.compile(r"Watchdog caught.*?\[rank(\d+)\]: (?:FloatingPointError|ValueError|KeyError|IndexError)", re.S)
    seen = 0
    for made in scenes("rank_failure", "training_diverged", 150):
        truth = truth_of(made)
        match = late.search(body_of(made))
        if match and truth["initiating_ranks"]:
            assert int(match[1]) in truth["initiating_ranks"]
            seen += 1
    assert seen


def test_an_interrupted_node_says_so_and_the_others_wait() -> None:
    told = [made for made in scenes("rank_failure", "signal", 80) if "death signal" in body_of(made)]
    assert told
    assert all(truth_of(made)["determinable_from_log"] == "yes" for made in told)


def test_a_dead_server_has_a_file_of_its_own() -> None:
    # A trainer may repeat the server's last words in its own log; this is what the server itself prints.
    words = "EngineCore encountered a fatal error"
    made = [one for one in scenes("rank_failure", "remote_peer_died", 80) if words in body_of(one)]
    assert made
    assert all(len(one.files) > 1 for one in made)


def test_frames_of_a_phase_are_evidence_and_undetermined_logs_show_none() -> None:
    told = re.compile(r"\b(?:main_process_first|tokenize_dataset|_prepare_dataset)\b")
    shown = [made for made in scenes("straggler", "tokenising", 120) if told.search(body_of(made))]
    assert shown
    assert all(truth_of(made)["determinable_from_log"] != "no" for made in shown)
    assert not [made for made in scenes("undetermined", None, 120) if told.search(body_of(made))]


def test_a_fault_of_cards_can_show_their_topology() -> None:
    assert any("CPU Affinity" in body_of(made) for made in scenes("fabric_congestion", "p2p_acs_iommu", 60))


def test_training_code_of_two_houses_never_meets(work: list[Job]) -> None:
    houses = {family.emitter for family in inventory().families} & {
        "mmengine",
        "detectron2",
        "composer",
        "torchtune",
    }
    for job in work[:60]:
        world = build_world(Random(job.seed), job)
        homes = {
            family.emitter for family in inventory().families if family.emitter in houses and at_home(family, world)
        }
        assert len(homes) <= 1


def test_ray_counts_what_its_workers_share() -> None:
    pattern = re.compile(r"\[repeated \d+x across cluster\]")
    texts = [body_of(made) for made in scenes("undetermined", None, 400) if truth_of(made)["launcher"] == "ray"]
    assert any(pattern.search(text) for text in texts)


def test_few_labelled_incidents_say_nothing(work: list[Job]) -> None:
    labelled = [
        job
        for job in jobs(inventory(), 3, 0.3)
        if job.split == "train" and job.label not in {"undetermined", "no_timeout"}
    ]
    silent = sum(job.blind for job in labelled)
    assert 0 < silent < 0.06 * len(labelled)
