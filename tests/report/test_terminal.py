from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsdpclassify.records import (
    Abstention,
    Alternative,
    Collective,
    Diagnosis,
    Evidence,
    FatalError,
    InputRow,
    InputStatus,
    LedgerRow,
    Remedy,
    Report,
    Role,
)
from fsdpclassify.report import render_report
from fsdpclassify.report.terminal import headline
from fsdpclassify.report.wording import cut, duration, fold, percent, printable, rank_ranges, wrap

EVIL = "\x1b]8;;http://x\x07click\x1b[31m\r\x08\x9b2J \u202e\u2028 [bold]x[/bold] \x00 \ud800"


def test_the_whole_answer_reads_as_intended(make_report: Callable[..., Report]) -> None:
    assert render_report(make_report(), width=100) == (
        "desync (93 %): rank 1 left the common sequence of collectives\n"
        "  waited in  FSDP all-gather of parameters (_ALLGATHER_BASE), group 0(default_pg), seq 23413,\n"
        "             timeout 600 s (10 min), since 2026-03-05T04:11:09\n"
        "  waiting    ranks 0,2-3,5 of 6\n"
        "  cause      fewer_batches_on_one_rank\n"
        "\n"
        "Evidence\n"
        "  trainer.log:12, rank 1: for desync (+0.41)\n"
        "      epoch finished after 1643 steps\n"
        "      rank 1 left its loop while the others went on\n"
        "\n"
        "Rivals\n"
        "  straggler 5 %: rank 1 prints no step\n"
        "\n"
        "Fix: Give every rank the same number of batches.\n"
        "  1. Use a sampler that drops the last batch.\n"
        "  A longer timeout will not help.\n"
        "\n"
        "Check the change\n"
        "  grep -c 'step ' rank*.log\n"
        "\n"
        "fsdpclassify 0.1.0, model default 1, 42 ms\n"
    )


def test_undetermined_says_so_and_shows_the_first_guess(
    make_report: Callable[..., Report], undetermined: Diagnosis
) -> None:
    text = render_report(make_report(incidents=(undetermined,)))
    first = text.splitlines()[0]
    assert first.startswith("undetermined: the log does not show why")
    assert "desync, 44 %" in text.replace("\n   ", "")
    assert "Record next time\n  - Set TORCH_FR_BUFFER_SIZE=2000." in text
    assert "Fix:" not in text


@pytest.mark.parametrize("reason", list(Abstention))
def test_every_reason_to_abstain_has_words(
    make_report: Callable[..., Report], make_diagnosis: Callable[..., Diagnosis], reason: Abstention
) -> None:
    found = make_diagnosis(verdict="undetermined", abstained_because=reason, remedy=Remedy())
    assert "  because " in render_report(make_report(incidents=(found,)))


def test_the_last_incident_comes_first(
    make_report: Callable[..., Report], make_diagnosis: Callable[..., Diagnosis]
) -> None:
    earlier = make_diagnosis(verdict="straggler", initiating_ranks=(7,))
    text = render_report(make_report(incidents=(earlier, make_diagnosis())))
    lines = text.splitlines()
    assert lines[0] == "desync (93 %): rank 1 left the common sequence of collectives [incident 2 of 2]"
    assert "straggler (93 %): rank 7 came too late [incident 1 of 2]" in lines


def test_no_incident_shows_the_first_fatal_error(make_report: Callable[..., Report]) -> None:
    fatal = FatalError(path="a.log", line=7, rank=3, text="torch.OutOfMemoryError")
    text = render_report(make_report(incidents=(), first_fatal_error=fatal))
    assert text.startswith("no_timeout: ")
    assert "  first fatal error: a.log:7, rank 3\n      torch.OutOfMemoryError\n" in text
    assert "No fatal error" in render_report(make_report(incidents=()))


def test_inputs_that_were_not_read_are_named(make_report: Callable[..., Report]) -> None:
    row = InputRow(path="b.log", kind=None, bytes=0, lines=0, status=InputStatus.UNREADABLE, message="denied")
    assert "Inputs not read in full\n  b.log: unreadable: denied\n" in render_report(make_report(inputs=(row,)))


def test_transport_faults_accuse_a_node_only_where_one_is_named(
    make_report: Callable[..., Report], make_diagnosis: Callable[..., Diagnosis]
) -> None:
    nobody = make_diagnosis(verdict="fabric_congestion", initiating_ranks=())
    somebody = make_diagnosis(verdict="fabric_congestion", initiating_ranks=(), initiating_nodes=("n7",))
    assert render_report(make_report(incidents=(nobody,))).startswith(
        "fabric_congestion (93 %): the transport between ranks was slow or broken\n"
    )
    assert "broken, at n7" in render_report(make_report(incidents=(somebody,)))


def test_a_label_that_a_user_added_gets_a_sentence(
    make_report: Callable[..., Report], make_diagnosis: Callable[..., Diagnosis]
) -> None:
    found = make_diagnosis(verdict="cosmic_rays", initiating_ranks=(2, 3))
    assert render_report(make_report(incidents=(found,))).startswith("cosmic_rays (93 %): ranks 2-3 started it\n")


def test_evidence_against_is_marked(
    make_report: Callable[..., Report], make_diagnosis: Callable[..., Diagnosis]
) -> None:
    item = Evidence(path="a", line=1, rank=None, text="t", supports="straggler", weight=-0.12, why="")
    text = render_report(make_report(incidents=(make_diagnosis(evidence=(item,)),)))
    assert "  a:1: for straggler (-0.12; against the verdict)\n" in text


def test_colour_comes_only_when_asked_for(make_report: Callable[..., Report], undetermined: Diagnosis) -> None:
    report = make_report(incidents=(undetermined,))
    assert "\x1b" not in render_report(report)
    assert "\x1b[1;33m" in render_report(report, colour=True)


def _hostile(make_report: Callable[..., Report], make_diagnosis: Callable[..., Diagnosis]) -> Report:
    item = Evidence(path=EVIL, line=1, rank=1, text=EVIL, supports=EVIL, weight=0.2, why=EVIL)
    found = make_diagnosis(
        verdict=EVIL, cause=EVIL, model_label=EVIL, evidence=(item,), initiating_nodes=(EVIL,),
        alternatives=(Alternative(label=EVIL, probability=0.1, separate_by=EVIL),), collect_next=(EVIL,),
        collective=Collective(op=EVIL, meaning=EVIL, group=EVIL),
        remedy=Remedy(summary=EVIL, steps=(EVIL,), verify=(EVIL,), ops_request=EVIL),
    )  # fmt: skip
    row = InputRow(path=EVIL, kind=None, bytes=0, lines=0, status=InputStatus.BINARY, message=EVIL)
    return make_report(incidents=(found,), inputs=(row,), extra={"note": EVIL})


def test_hostile_text_never_reaches_the_terminal_raw(
    make_report: Callable[..., Report], make_diagnosis: Callable[..., Diagnosis], undetermined: Diagnosis
) -> None:
    fatal = FatalError(path=EVIL, line=1, rank=None, text=EVIL)
    for report in (
        _hostile(make_report, make_diagnosis),
        make_report(incidents=(), first_fatal_error=fatal),
    ):
        text = render_report(report)
        assert all(char == "\n" or char.isprintable() for char in text)
        assert "[bold]x[/bold]" in text


@given(st.text(), st.integers(1, 60))
def test_cut_is_harmless_and_fits(text: str, width: int) -> None:
    shown = cut(text, width)
    assert shown.isprintable()
    assert len(shown) <= 2 * width + 1
    if text.isascii():
        assert len(shown) <= max(width, 1)


@given(st.text())
def test_printable_shows_every_character_and_is_idempotent(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown


def test_wide_characters_count_twice() -> None:
    assert cut("漢字漢字", 5) == "漢字…"
    assert cut("漢字", 4) == "漢字"


@given(st.sets(st.integers(0, 70)))
def test_rank_ranges_hold_exactly_the_ranks(ranks: set[int]) -> None:
    back = set()
    for part in filter(None, rank_ranges(ranks).split(",")):
        first, _, last = part.partition("-")
        back |= set(range(int(first), int(last or first) + 1))
    assert back == ranks


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.5, "50 %"), (0.996, "above 99 %"), (1.0, "100 %"), (0.001, "below 1 %"), (0.0, "0 %")],
)
def test_percent_is_never_surer_than_the_number(value: float, words: str) -> None:
    assert percent(value) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (600.0, "600 s (10 min)"),
        (10, "10 s"),
        (0.25, "0.25 s"),
        (5400, "5400 s (90 min)"),
        (10_800, "10800 s (3 h)"),
        (899_940, "899940 s (10.4 days)"),
    ],
)
def test_durations_read_as_people_set_them(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_fold_shows_a_long_line_in_few_rows() -> None:
    assert fold("abcdefghij", 6, indent="  ", rows=3) == ["  abcd", "  efgh", "  ij"]
    assert fold("abcdefghij", 6, indent="  ", rows=2) == ["  abcd", "  efg…"]
    assert fold("", 6, indent="  ", rows=2) == ["  "]


def test_wrap_keeps_long_words_whole() -> None:
    assert wrap("a bb " + "c" * 12, 8, indent="  ") == ["  a bb", "  " + "c" * 12]


def test_a_rank_of_which_nothing_is_heard_may_only_lack_its_log(
    make_report: Callable[..., Report], make_diagnosis: Callable[..., Diagnosis], undetermined: Diagnosis
) -> None:
    unheard = (LedgerRow(rank=1, role=Role.MISSING, unheard=True), LedgerRow(rank=2, role=Role.WAITING))
    found = make_diagnosis(ledger=unheard, initiating_ranks=(1,))
    assert headline(found).endswith("rank 1 left the common sequence of collectives (or its log is not here)")
    assert "did not come in time (or its log is not here)" in headline(
        replace(undetermined, ledger=unheard, initiating_ranks=(1,))
    )
    heard = (LedgerRow(rank=1, role=Role.MISSING),)
    for other in (make_diagnosis(ledger=heard), make_diagnosis(ledger=unheard, initiating_ranks=(1, 2))):
        assert "not here" not in headline(other)


def test_a_report_of_a_million_ranks_and_thousands_of_inputs_stays_short(
    make_report: Callable[..., Report], make_diagnosis: Callable[..., Diagnosis]
) -> None:
    many = make_diagnosis(
        waiting_ranks=tuple(range(0, 1_000_000, 2)),
        initiating_ranks=tuple(range(1, 1_000_000, 2)),
        initiating_nodes=tuple(f"n{n}" for n in range(5000)),
        verdict="rank_failure",
    )
    refused = InputRow(path="b.log", kind=None, bytes=0, lines=0, status=InputStatus.UNREADABLE, message="denied")
    text = render_report(make_report(incidents=(many,) * 500, inputs=(refused,) * 5000))
    assert len(text) < 60_000
    assert "(500,000 in all)" in text
    assert "490 earlier incidents are not shown; --json has every one" in text
    assert "… and 4,980 more; --json has every one" in text
    assert text.startswith("rank_failure (93 %): ranks 1,3,5,")


def test_inputs_that_were_set_aside_say_why(make_report: Callable[..., Report]) -> None:
    row = InputRow(path="run.sh", kind=None, bytes=9, lines=0, status=InputStatus.OK, message="it is a script")
    assert "Inputs set aside\n  run.sh: it is a script\n" in render_report(make_report(inputs=(row,)))
