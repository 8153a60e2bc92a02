from __future__ import annotations

import json
from dataclasses import dataclass, replace

from fsdpclassify.records import (
    Event,
    EventKind,
    FatalError,
    Incident,
    InputKind,
    InputRow,
    InputStatus,
    LedgerRow,
    Line,
    Role,
)
from fsdpclassify.report import to_json
from fsdpclassify.report.inspection import inspection_as_dict, render_inspection


@dataclass
class Found:
    inputs: tuple[InputRow, ...]
    incidents: tuple[Incident, ...]


def _event(number: int, kind: EventKind = EventKind.STEP, text: str = "step", source: int = 0) -> Event:
    line = Line(source=source, number=number, text=text, body=text)
    return Event(kind=kind, line=line, rank=1, step=number)


def _found(*events: Event, ledger: tuple[LedgerRow, ...] = ()) -> Found:
    row = InputRow(path="a.log", kind=InputKind.LOG, bytes=1, lines=1, status=InputStatus.OK)
    incident = Incident(
        detection=events[-1],
        events=events,
        lines=(),
        collective=None,
        onset=None,
        world_size=4,
        waiting=(0, 2),
        failed=(),
        missing=(1,),
        ledger=ledger,
    )
    return Found(inputs=(row,), incidents=(incident,))


def _same(text: str) -> str:
    return text


def test_events_name_path_line_and_facts() -> None:
    value = inspection_as_dict(_found(_event(3)), None, _same)
    assert json.loads(to_json(value)) == value
    assert value["incidents"][0]["events"][0] == {
        "kind": "step", "path": "a.log", "line": 3, "rank": 1, "text": "step", "facts": {"step": 3}
    }  # fmt: skip
    text = render_inspection(value, width=80)
    assert "  a.log:3 step rank 1: step 3\n" in text
    assert "  missing    rank 1\n" in text


def test_a_stated_hang_stands_on_no_line() -> None:
    value = inspection_as_dict(_found(_event(0, EventKind.STATED_HANG, source=-1)), None, _same)
    assert value["incidents"][0]["detection"]["path"] == ""


def test_ranks_about_which_the_same_is_known_share_a_row() -> None:
    ledger = tuple(LedgerRow(rank=rank, role=Role.WAITING, enqueued=9) for rank in (0, 1, 2, 7))
    ledger += (LedgerRow(rank=3, role=Role.MISSING),)
    text = render_inspection(inspection_as_dict(_found(_event(1), ledger=ledger), None, _same), width=80)
    assert "  0-2,7  waiting" in text
    assert "  3      missing" in text


def test_many_events_become_few_lines_and_json_has_them_all() -> None:
    value = inspection_as_dict(_found(*(_event(number) for number in range(1, 1001))), None, _same)
    text = render_inspection(value, width=80)
    assert "step rank 1: steps 1 to 1000 (1000 lines)\n" in text
    assert len(text.splitlines()) < 20
    assert len(value["incidents"][0]["events"]) == 1000


def test_columns_about_which_nothing_is_known_are_left_out() -> None:
    ledger = (LedgerRow(rank=0, role=Role.WAITING, first_error="ValueError: " + "x" * 90), LedgerRow(rank=1))
    text = render_inspection(inspection_as_dict(_found(_event(1), ledger=ledger), None, _same), width=80)
    (head,) = [line for line in text.splitlines() if line.startswith("  ranks")]
    assert head.split() == ["ranks", "role", "first_error"]
    assert "x" * 60 not in text


def test_clocks_of_several_hosts_are_told() -> None:
    ledger = (
        LedgerRow(rank=0, node="a", clock_offset_s=0.0),
        LedgerRow(rank=1, node="b", clock_offset_s=-90.5),
    )
    found = _found(_event(1), ledger=ledger)
    found.incidents = (replace(found.incidents[0], nodes=("a", "b")),)
    value = inspection_as_dict(found, None, _same)
    assert value["incidents"][0]["clocks"] == {"a": 0.0, "b": -90.5}
    assert "b 90.5 s behind" in render_inspection(value, width=80)
    found.incidents = (replace(found.incidents[0], ledger=()),)
    assert "agree within 5 s" in render_inspection(inspection_as_dict(found, None, _same), width=80)


def test_lines_are_masked_before_they_are_cut_and_escaped() -> None:
    found = _found(_event(1, EventKind.ERROR, text="x" * 490 + "SECRETSECRET\x1b[31m"))
    value = inspection_as_dict(found, None, lambda text: text.replace("SECRETSECRET", "*"))
    assert "SECRET" not in to_json(value)
    assert "\x1b" not in render_inspection(value, width=2000)


def test_no_incident_shows_the_first_fatal_error() -> None:
    row = InputRow(path="b", kind=None, bytes=0, lines=0, status=InputStatus.EMPTY)
    fatal = FatalError(path="a.log", line=2, rank=None, text="boom")
    value = inspection_as_dict(Found(inputs=(row,), incidents=()), fatal, _same)
    assert render_inspection(value, width=80) == (
        "no_timeout: no rank is shown waiting for another in this input\n"
        "  first fatal error: a.log:2\n"
        "      boom\n"
        "b: empty\n"
    )


def _incident(**changes: object) -> Incident:
    values = {
        "detection": _event(1), "events": (), "lines": (), "collective": None, "onset": None, "world_size": None,
        "waiting": (), "failed": (), "missing": (), "ledger": (),
    }  # fmt: skip
    return Incident(**values | changes)  # type: ignore[arg-type]


def test_text_stays_short_where_json_has_every_rank() -> None:
    ledger = tuple(LedgerRow(rank=n, last_step=n, role=Role.WAITING) for n in range(3000))
    many = _incident(ledger=ledger, waiting=tuple(range(0, 3000, 2)), missing=(7,))
    found = inspection_as_dict(Found(inputs=(), incidents=(many,) * 40), None, str)
    assert len(found["incidents"][-1]["ledger"]) == 3000
    text = render_inspection(found, width=120)
    assert "of 40 incidents the last 10; --json has every one" in text
    assert "incident 40 of 40" in text
    assert "… and 2,872 rows more; --json has every rank" in text
    assert len(text) < 200_000


def test_a_missing_rank_of_which_nothing_is_heard_is_said_to_be_so() -> None:
    x = _incident(ledger=(LedgerRow(rank=7, role=Role.MISSING, unheard=True),), missing=(7,))
    found = inspection_as_dict(Found(inputs=(), incidents=(x,)), None, str)
    assert found["incidents"][0]["unheard_ranks"] == [7]
    assert "rank 7: nothing here is by or about it; its log may not be here" in render_inspection(found, width=120)
