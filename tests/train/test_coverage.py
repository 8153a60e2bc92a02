from __future__ import annotations

from pathlib import Path

import pytest

from train import coverage, inventory
from train.coverage import Reader, Seen
from train.inventory import Family, Inventory


@pytest.fixture(scope="module")
def shipped() -> Inventory:
    return inventory.load()


@pytest.fixture(scope="module")
def reference(shipped: Inventory) -> list[Seen]:
    return coverage.cover(shipped, inventory.ROOT, "reference")


def _family(text: str, *, name: str = "loader-late", emitter: str = "torch.dataloader", role: str = "noise") -> Family:
    return Family(
        id=name, emitter=emitter, role=role, channel="rank", template=text, provenance="known", source="x.toml"
    )  # fmt: skip


def _incident(root: Path, *lines: str) -> Path:
    folder = root / "inc-1"
    (folder / "logs").mkdir(parents=True)
    (folder / "logs" / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def _kinds(reader: Reader, folder: Path, own: frozenset[str] = frozenset()) -> dict[str, str]:
    return {item.text: item.kind for item in coverage.seen(reader, [folder], own)}


def test_nearly_every_line_of_a_program_in_the_reference_set_is_known(reference: list[Seen]) -> None:
    programs = [item for item in reference if item.kind not in ("user", "frame")]
    unknown = [item.text for item in programs if item.kind == "unknown"]
    assert len(programs) > 200
    assert len(unknown) <= 0.05 * len(programs), unknown


def test_a_gap_is_seen_when_a_kind_of_line_is_taken_out(shipped: Inventory, reference: list[Seen]) -> None:
    lost = [item for item in reference if item.family is not None and item.family.emitter == "nccl"]
    reader = Reader(family for family in shipped.families if family.emitter != "nccl")
    still = [item for item in lost if reader.like(item.text)[1] >= coverage.ALIKE]
    assert lost
    assert len(still) < len(lost) / 2


def test_slots_are_wildcards_and_words_are_not(tmp_path: Path) -> None:
    reader = Reader([_family("worker {int:0-9} needed {float:1.0-9.0} s for shard {file}")])
    folder = _incident(
        tmp_path, "worker 31 needed 412.77 s for shard part-000412.tar", "the moon was full when it stopped"
    )
    assert sorted(_kinds(reader, folder).values()) == ["noise", "unknown"]


def test_a_short_prefix_or_suffix_does_not_hide_a_family(tmp_path: Path) -> None:
    reader = Reader([_family("prefetch queue ran dry on this worker", role="evidence")])
    folder = _incident(tmp_path, "data.loader: prefetch queue ran dry on this worker (again)")
    assert set(_kinds(reader, folder).values()) == {"evidence"}


def test_every_alternative_of_a_choice_is_known() -> None:
    reader = Reader([_family("{choice:Loading|Saving|Merging} the adapter weights {choice:now|later}")])
    texts = ("Loading the adapter weights now", "Saving the adapter weights later", "Merging the adapter weights now")
    assert all(reader.like(text)[1] == 1.0 for text in texts)


def test_tracebacks_and_stacks_are_frames(tmp_path: Path) -> None:
    folder = _incident(
        tmp_path,
        "Traceback (most recent call last):",
        '  File "/opt/app/train.py", line 3, in main',
        "    something_nobody_knows(batch)",
        "node:1:2 [0] NCCL INFO transport/net.cc:870 -> 2",
        "    barrier (torch/distributed/distributed_c10d.py:2784)",
    )
    assert set(_kinds(Reader([_family("an unrelated text of some length")]), folder).values()) == {"frame"}


def test_own_words_are_counted_apart(tmp_path: Path) -> None:
    folder = _incident(tmp_path, "zz my little marker 7")
    reader = Reader([_family("an unrelated text of some length")])
    assert _kinds(reader, folder) == {"zz my little marker <num>": "unknown"}
    own = frozenset({"zz my little marker <num>"})
    assert _kinds(reader, folder, own) == {"zz my little marker <num>": "user"}
    assert "scripts and persons, in their own words: user 1" in list(
        coverage.report(coverage.seen(reader, [folder], own))
    )


def test_nearly_every_judged_line_still_stands_in_an_incident(shipped: Inventory) -> None:
    found = {item.text for item in coverage.cover(shipped, inventory.ROOT, "all")}
    judged = coverage.own_words(inventory.ROOT / "lines" / "own_words.txt")
    # A few may fall away when prefixes are read better; a list that no longer fits must be judged anew.
    assert len(judged) > 10
    assert len(judged - found) <= 0.2 * len(judged), judged - found


def test_what_the_simulator_writes_itself_is_read_from_its_code(tmp_path: Path) -> None:
    code = 'def line(rank: int) -> str:\n    return f"the watchdog of rank {rank} gives up now"\n'
    (tmp_path / "made.py").write_text(code, encoding="utf-8")
    assert list(coverage.rendered_texts(tmp_path)) == ["the watchdog of rank   gives up now"]


def test_the_command_prints_the_shares_and_the_unknown_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert inventory.main(["--coverage"]) == 0
    printed = capsys.readouterr().out
    assert "programs' lines that are known: " in printed
    assert "unknown: inc-" in printed
