"""How simulated runs end: by a check that throws a rank out, at set-up, by the watchdog, with dumps beside the log."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from fsdpclassify.reading import find
from fsdpclassify.sources import collect
from tests.train.making import body_of, runs, scenes, truth_of
from train.simulate.build import Incident, inventory

_UNREDUCED = "Expected to have finished reduction in the prior iteration"
_REPORT = re.compile(r"exitcode: (-?\d+)\) local_rank")


def dumps_of(made: Incident) -> dict[int, dict[str, Any]]:
    """The flight-recorder dumps beside a run, by rank."""
    found = {name: text for name, text in made.files.items() if '"pg_status"' in text}
    return {int(re.findall(r"rank_(\d+)", name)[-1]): json.loads(text) for name, text in found.items()}


def enqueued(dump: dict[str, Any]) -> int:
    return int(dump["pg_status"]["0"]["last_enqueued_collective"])


def cited(made: Incident) -> str:
    """The text of the decisive lines."""
    places = [place.rsplit(":", 1) for place in truth_of(made)["decisive_lines"]]
    return "\n".join(made.files[name].split("\n")[int(number) - 1] for name, number in places)


def test_a_rank_that_a_check_throws_out_stays_a_desync() -> None:
    thrown = [one for one in runs("desync", "unused_params", 60) if _UNREDUCED in body_of(one)]
    assert len(thrown) > 5
    for made in thrown:
        truth = truth_of(made)
        assert truth["label"] == "desync"
        assert truth["determinable_from_log"] != "no"
        assert "exitcode: 1" in body_of(made)
    assert sum(truth_of(made)["determinable_from_log"] == "yes" for made in thrown) > len(thrown) / 2
    assert any(_UNREDUCED in cited(made) for made in thrown)


def test_reports_too_show_ranks_that_die_of_a_mismatch() -> None:
    made = scenes("desync", "unused_params", 150, "long")
    dead = [one for one in made if re.search(r"Error: [^\n]*(?:reduc|parameter)", cited(one))]
    assert any(_REPORT.search(body_of(one)) for one in dead)
    assert {truth_of(one)["label"] for one in dead} == {"desync"}


def test_at_set_up_no_rank_stands_in_front_of_an_exception() -> None:
    made = [one for one in runs("fabric_congestion", "wrong_interface", 80) if "connectFullMesh failed" in body_of(one)]
    assert len(made) > 5
    for one in made:
        assert not re.search(r"\[rank\d+\]: RuntimeError: Gloo connectFullMesh", body_of(one))
        assert "connect" in cited(one).lower()


def test_a_node_without_a_way_gives_up_before_the_other() -> None:
    seen = 0
    for made in runs("fabric_congestion", "node_unreachable", 120):
        ends = {
            name: re.search(r"[EW](\d{4} [\d:.]+) \d+ .*Sending process", made.files.get(name, ""))
            for name in ("node0.log", "node1.log")
        }
        first, second = ends["node1.log"], ends["node0.log"]
        if first and second and "enforce fail" in body_of(made) and "Connect timeout" in body_of(made):
            assert first[1] < second[1]
            seen += 1
    assert seen


def test_the_watchdog_ends_some_runs_and_gloo_none_of_these() -> None:
    seen = 0
    for made in runs("straggler", "data_loading", 60):
        text = body_of(made)
        if "Watchdog caught" in text:
            assert "unbound_buffer" not in text
            assert "gloo" not in text
            assert {code for code in _REPORT.findall(text)} <= {"-6"}
            seen += 1
    assert 5 < seen < 35


def test_survivors_of_a_death_under_the_watchdog_sit_on_the_other_node() -> None:
    seen = 0
    for made in runs("rank_failure", "node_loss", 60):
        truth = truth_of(made)
        if "Watchdog caught" in body_of(made) and truth["world_size"] and truth["waiting_ranks"]:
            assert max(truth["waiting_ranks"]) < truth["world_size"] // 2
            seen += 1
    assert seen


def test_dumps_say_who_is_behind() -> None:
    seen = 0
    for made in runs("straggler", "evaluation", 60):
        dumps, truth = dumps_of(made), truth_of(made)
        late = truth["initiating_ranks"] or []
        if len(dumps) == truth["world_size"] and late:
            front = max(enqueued(dump) for dump in dumps.values())
            assert {rank for rank, dump in dumps.items() if enqueued(dump) < front} == set(late)
            assert all(dumps[rank]["entries"][-1]["retired"] == (rank in late) for rank in dumps)
            seen += 1
    assert seen > 5


def test_the_package_reads_the_dumps_of_a_run_as_its_truth_says(tmp_path: Path) -> None:
    right = total = 0
    for made in [one for one in runs("straggler", "gc_pause", 40) if dumps_of(one)]:
        folder = tmp_path / truth_of(made)["id"]
        for name, text in made.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        incident = find(collect([folder])).incidents[-1]
        total += 1
        right += list(incident.waiting) == truth_of(made)["waiting_ranks"]
    assert total > 8
    assert right >= 0.9 * total


def test_all_stand_at_most_one_call_apart_where_bytes_do_not_move() -> None:
    apart = []
    for made in runs("fabric_congestion", "congestion", 60):
        if dumps := dumps_of(made):
            numbers = [enqueued(dump) for dump in dumps.values()]
            assert all(not dump["entries"][-1]["retired"] for dump in dumps.values())
            apart.append(max(numbers) - min(numbers))
    assert set(apart) == {0, 1}


def test_a_card_keeps_its_place_on_the_bus() -> None:
    place = re.compile(r"cudaDev (\d+) nvmlDev \d+ busId ([0-9a-f]+)000")
    seen = 0
    for made in scenes("fabric_congestion", "gid", 60, "long"):
        found = set(place.findall(body_of(made)))
        if len(found) > 1 and truth_of(made)["world_size"]:
            assert len({local for local, _ in found}) == len(found) == len({bus for _, bus in found})
            seen += 1
    assert seen


def test_that_a_process_ended_with_one_speaks_for_nothing_by_itself() -> None:
    bare = re.compile(r"^(?:failed \(exitcode: 1\)|  exitcode  : 1 |srun: error: .* Exited with exit code 1$)")
    found = [family for family in inventory().families if bare.match(family.template)]
    assert found
    assert {family.role for family in found} == {"collateral"}
