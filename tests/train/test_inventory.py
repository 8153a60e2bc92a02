from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train import inventory, slot_values
from train.inventory import Family, Inventory, InventoryError
from train.inventory_check import number_twins, problems, spellings
from train.inventory_targets import RARELY_REPORTED, checkable_share, is_checkable, shortfalls, targets
from train.slots import DRAWS, SlotError, neutral, parse, render

#: What the brief of a user's fix must never say: NCCL reads no such variable.
_WRONG_ADVICE = ("NCCL_TIMEOUT",)


@pytest.fixture(scope="module")
def shipped() -> Inventory:
    return inventory.load()


def _family(**changes: object) -> Family:
    base = Family(
        id="loader-late", emitter="user", role="evidence", label="straggler", cause="data_loading",
        strength=2, channel="rank", template="batch {int:1-9} came after {long} s",
        provenance="own words", source="x.toml",
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def _with(shipped: Inventory, *families: Family) -> Inventory:
    return replace(shipped, families=families)


def test_the_shipped_inventory_has_no_problems(shipped: Inventory) -> None:
    assert problems(shipped) == []


def test_the_shipped_inventory_meets_its_targets(shipped: Inventory) -> None:
    assert shortfalls(shipped) == []
    assert len(list(targets(shipped))) > len(shipped.causes)


def test_a_cause_that_loses_its_lines_is_a_shortfall(shipped: Inventory) -> None:
    thin = _with(shipped, *(family for family in shipped.families if family.cause != "gc_pause"))
    assert shortfalls(thin) == ["inventory: cause gc_pause: 0 (at least 8)"]


def test_causes_without_a_public_example_are_in_the_catalogue(shipped: Inventory) -> None:
    assert [name for name in RARELY_REPORTED if shipped.cause(name) is None] == []
    renamed = replace(shipped, causes=tuple(cause for cause in shipped.causes if cause.id != "clock_skew"))
    assert "inventory: clock_skew is no cause of the catalogue" in shortfalls(renamed)


@pytest.mark.parametrize(
    ("provenance", "expected"),
    [
        ("source: torch 2.13.0 torch/utils/data/dataloader.py", True),
        ("source: nccl src/init.cc", True),
        ("documentation: NVIDIA Xid error catalogue", True),
        ("documentation", False),
        ("source:", False),
        ("public log", False),
        ("known", False),
        ("own words", False),
    ],
)
def test_a_wording_can_be_looked_up_when_program_and_place_are_named(provenance: str, expected: bool) -> None:
    assert is_checkable(_family(provenance=provenance)) is expected


def test_the_share_of_checkable_wordings_leaves_users_out(shipped: Inventory) -> None:
    mixed = _with(
        shipped,
        _family(),
        _family(id="a", emitter="nccl", provenance="source: nccl src/init.cc"),
        _family(id="b", emitter="nccl", provenance="known"),
    )
    assert checkable_share(mixed) == 0.5


def test_labels_are_the_seven_classes_in_order(shipped: Inventory) -> None:
    assert [label.id for label in shipped.labels] == [
        "straggler", "offload_latency", "fabric_congestion", "uneven_sharding",
        "desync", "rank_failure", "other",
    ]  # fmt: skip


def test_the_catalogue_holds_the_names_of_the_design(shipped: Inventory) -> None:
    named = (
        "checkpoint_on_rank_0",
        "ib_retry_exceeded",
        "fewer_batches_on_one_rank",
        "host_oom_kill",
        "teardown_of_finished_run",
    )
    assert all(shipped.cause(name) is not None for name in named)
    assert len(shipped.causes) >= 60


def test_every_cause_has_evidence_lines(shipped: Inventory) -> None:
    covered = {family.cause for family in shipped.select("evidence")}
    assert [cause.id for cause in shipped.causes if cause.id not in covered] == []


def test_no_remedy_names_a_variable_that_does_nothing(shipped: Inventory) -> None:
    for cause in shipped.causes:
        text = " ".join((cause.remedy.summary, *cause.remedy.steps, *cause.remedy.verify))
        assert not any(wrong in text for wrong in _WRONG_ADVICE), cause.id


def test_a_longer_timeout_never_helps_a_desync_or_a_failure(shipped: Inventory) -> None:
    causes = [cause for cause in shipped.causes if cause.label in ("desync", "rank_failure")]
    assert not any(cause.remedy.longer_timeout_helps for cause in causes)


def test_transport_hardware_causes_carry_a_request_for_the_operators(shipped: Inventory) -> None:
    for name in ("link_flap", "ib_retry_exceeded", "nic_firmware", "gpu_lost", "node_loss", "gpu_throttle"):
        cause = shipped.cause(name)
        assert cause is not None, name
        assert cause.remedy.ops_request, name


def test_an_alias_resolves_to_its_cause(shipped: Inventory) -> None:
    cause = shipped.cause("host_oom")
    assert cause is not None
    assert cause.id == "host_oom_kill"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cause": "nothing_known"}, "unknown cause"),
        ({"label": "desync"}, "belongs to 'straggler'"),
        ({"label": None}, "needs a label and a cause"),
        ({"strength": 4}, "strength of 1, 2 or 3"),
        ({"role": "noise"}, "only evidence has a strength"),
        ({"role": "hint"}, "role 'hint'"),
        ({"channel": "tty"}, "channel 'tty'"),
        ({"id": "Loader_Late"}, "kebab-case"),
        ({"provenance": "somewhere"}, "provenance"),
        ({"closes": "no-such-phase"}, "no phase family"),
        ({"template": "batch {unheard}"}, "unknown slot"),
        ({"template": "batch {int:9-1}"}, "downwards"),
        ({"template": "batch { late"}, "stray"),
        ({"follow": ("first\nsecond",)}, "one line"),
    ],
)
def test_a_faulty_family_is_named(shipped: Inventory, changes: dict[str, object], said: str) -> None:
    found = problems(_with(shipped, _family(**changes)))
    assert any(said in text and "x.toml" in text for text in found), found


def test_families_that_read_alike_are_a_problem(shipped: Inventory) -> None:
    twins = _with(shipped, _family(), _family(id="loader-late-too"))
    assert any("reads like loader-late" in text for text in problems(twins))


def test_families_that_differ_in_numbers_only_are_a_note(shipped: Inventory) -> None:
    twins = _with(
        shipped,
        _family(),
        _family(id="loader-ok", role="noise", strength=0, template="batch {int:1-9} came after {short} s"),
    )
    assert problems(twins) == []
    assert len(number_twins(twins)) == 1


def test_an_id_used_twice_is_a_problem(shipped: Inventory) -> None:
    twice = _with(shipped, _family(), _family(template="another text altogether"))
    assert "family id 'loader-late' is used 2 times" in problems(twice)


def test_an_unknown_key_is_refused_with_file_and_family(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text('[[family]]\nid = "a"\nemitter = "user"\ncolour = "red"\n')
    with pytest.raises(InventoryError, match=r"bad\.toml: a: .*colour"):
        list(inventory.load_file(path, {}))


def test_a_file_that_is_not_toml_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[[family")
    with pytest.raises(InventoryError, match=r"bad\.toml"):
        list(inventory.load_file(tmp_path / "bad.toml", {}))


def test_the_command_prints_counts_and_fails_on_a_missing_catalogue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert inventory.main(["--data", str(tmp_path)]) == 1
    assert "problem: taxonomy.toml" in capsys.readouterr().out
    inventory.main([])
    printed = capsys.readouterr().out
    assert "by label:" in printed
    assert "target: checkable wordings of programs: " in printed


def test_frameworks_match_by_any_tag() -> None:
    assert _family().fits(("ddp",))
    assert _family(frameworks=("fsdp", "hf")).fits(("hf", "ddp"))
    assert not _family(frameworks=("megatron",)).fits(("hf", "ddp"))


def test_the_context_gives_the_values_it_has() -> None:
    text = render(
        "{rank} {host} {step} {date} {clock}",
        Random(0),
        {"rank": 3, "host": "node07", "step": 812, "time": 0.0},
    )
    assert text == "3 node07 812 1970-01-01 00:00:00"


def test_literal_braces_are_doubled() -> None:
    assert render("{{'loss': {int:7}}}", Random(0)) == "{'loss': 7}"
    assert neutral("{{{int}}}", "#") == "{#}"


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{limit}", "600"),
        ("{limit:ms}", "600000"),
        ("{limit:min}", "10"),
        ("{limit:hms}", "0:10:00"),
        ("{int:-5--5}", "-5"),
    ],
)
def test_units_and_ranges(template: str, text: str) -> None:
    assert render(template, Random(0), {"timeout_s": 600}) == text


@given(st.integers(0, 10**9), st.floats(10, 7200))
def test_durations_keep_their_size_against_the_timeout(seed: int, timeout_s: float) -> None:
    context = {"timeout_s": timeout_s}
    long = float(render("{long}", Random(seed), context))
    medium = float(render("{medium}", Random(seed), context))
    assert 0.29 * timeout_s <= long <= 2.01 * timeout_s
    assert 9.9 <= medium <= 90.1
    assert float(render("{short}", Random(seed), context)) < 5.1


@given(st.integers(0, 10**9), st.integers(1, 10**6))
def test_more_is_at_least_twice_fewer(seed: int, base: int) -> None:
    context = {"base": base}
    assert int(render("{more}", Random(seed), context)) >= 2 * int(render("{fewer}", Random(seed + 1), context))


@given(st.sampled_from(sorted(DRAWS)), st.integers(0, 10**9))
def test_every_slot_renders_the_same_twice(name: str, seed: int) -> None:
    template = "{choice:a|b}" if name == "choice" else f"{{{name}}}"
    first = render(template, Random(seed))
    assert first == render(template, Random(seed))
    assert first
    assert "\n" not in first


@given(st.text(max_size=60))
def test_any_text_parses_or_is_refused(text: str) -> None:
    with suppress(SlotError):
        assert all(parse(text))
    with suppress(SlotError):
        render(text, Random(0))


def test_spellings_write_alternatives_out() -> None:
    assert spellings("{choice:read|write} of {file}") >= {
        f"{verb} of {render('{file}', Random(0))}" for verb in ("read", "write")
    }


def test_hosts_and_addresses_are_neutral() -> None:
    rng = Random(1)
    assert all(slot_values.PLAIN["ip"](rng).startswith("10.") for _ in range(50))
    assert all("example" in slot_values.PLAIN["url"](rng) for _ in range(10))
