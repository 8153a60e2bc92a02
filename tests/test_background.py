from __future__ import annotations

import threading

import pytest

from fsdpclassify.background import Background


def test_it_begins_at_once_and_gives_the_value_every_time() -> None:
    begun = threading.Event()
    calls: list[int] = []

    def make() -> int:
        begun.set()
        calls.append(1)
        return 42

    value = Background(make)
    assert begun.wait(10)
    assert [value(), value()] == [42, 42]
    assert calls == [1]


def test_a_fault_is_raised_where_the_value_is_wanted() -> None:
    def make() -> int:
        raise ValueError("no value")

    value = Background(make)
    for _ in range(2):
        with pytest.raises(ValueError, match="no value"):
            value()
