from collections.abc import Callable

import pytest

from fsdpclassify.records import Event, EventKind

Events = Callable[..., list[Event]]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("2026-03-05 04:00:00,123 ERROR ValueError: bad sample", "ValueError"),
        ("2026-03-05 04:00:00,123 ERROR trainer: ValueError: bad sample", "ValueError"),
        ("[2026-03-05 04:00:00,123] [ERROR] [train.py:88:main] KeyError: 'labels'", "KeyError"),
        ("04:00:00 | CRITICAL | app.run:12 - my.pkg.DataError: no rows", "DataError"),
        ("2026-03-05 04:00:00 - root - ERROR - AssertionError: sizes differ", "AssertionError"),
    ],
)
def test_an_exception_on_one_line_is_an_error(events: Events, text: str, name: str) -> None:
    assert [(e.kind, e.name) for e in events(text)] == [(EventKind.ERROR, name)]


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-05 04:00:00,123 ERROR io: OSError: bad block, retrying",
        "2026-03-05 04:00:00,123 ERROR wandb: CommError: no answer",
        "2026-03-05 04:00:00,123 ERROR hub: HTTPError: 503",
        "2026-03-05 04:00:00,123 ERROR data: ValueError: bad sample, skipped",
        "2026-03-05 04:00:00,123 WARNING data: ValueError: bad sample",
        "2026-03-05 04:00:00,123 INFO errors so far: ValueError: 3",
    ],
)
def test_what_a_program_survives_is_none(events: Events, text: str) -> None:
    assert events(text) == []
