from __future__ import annotations

import json
from dataclasses import dataclass

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
    assert "  a.log:3 step rank 1 (step 3)\n      step\n" in text
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


def test_of_many_events_the_middle_is_left_out_and_said() -> None:
    events = [_event(number) for number in range(1, 1001)]
    text = render_inspection(inspection_as_dict(_found(*events), None, _same), width=80)
    assert "  … 600 events left out; --json has them all\n" in text
    assert "a.log:100 " in text
    assert "a.log:101 " not in text
    assert "a.log:1000 " in text


def test_the_text_of_a_line_is_shown_once() -> None:
    found = _found(_event(1, EventKind.STEP, "both"), _event(1, EventKind.TRAINER, "both"))
    assert render_inspection(inspection_as_dict(found, None, _same), width=80).count("      both\n") == 1


def test_lines_are_masked_before_they_are_cut_and_escaped() -> None:
    found = _found(_event(1, text="x" * 490 + "SECRETSECRET\x1b[31m"))
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
