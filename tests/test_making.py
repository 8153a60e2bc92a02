from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields

import pytest

from fsdpclassify.making import maker
from fsdpclassify.records import Event, EventKind, Line, RawLine

LINE = Line(source=1, number=2, text="a", body="b")


@pytest.mark.parametrize(
    ("record", "values"),
    [
        (RawLine, {"source": 0, "number": 7, "text": "x", "hint_rank": 3}),
        (Line, {"source": 0, "number": 7, "text": "x", "body": "y", "time": 1.5, "unprefixed": False}),
        (Event, {"kind": EventKind.STEP, "line": LINE, "step": 4}),
    ],
)
def test_what_is_made_is_the_frozen_record(record: type, values: dict[str, object]) -> None:
    made, plain = maker(record)(**values), record(**values)
    assert type(made) is record
    assert made == plain
    assert hash(made) == hash(plain)
    assert repr(made) == repr(plain)
    assert pickle.loads(pickle.dumps(made)) == plain
    with pytest.raises(FrozenInstanceError):
        setattr(made, fields(record)[0].name, 1)


def test_a_missing_or_unknown_field_is_refused() -> None:
    with pytest.raises(TypeError):
        maker(RawLine)(source=0, number=1)
    with pytest.raises(TypeError):
        maker(RawLine)(source=0, number=1, text="", colour="red")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bag:
    things: list[int] = field(default_factory=list)


def test_values_are_not_shared_between_records() -> None:
    assert maker(Bag)().things is not maker(Bag)().things


@dataclass(frozen=True, kw_only=True)
class Roomy:
    """A record without slots, whose class no twin can take."""

    size: int


def test_a_record_that_has_no_twin_makes_itself() -> None:
    assert maker(Roomy) is Roomy
    assert maker(Roomy)(size=3) == Roomy(size=3)
