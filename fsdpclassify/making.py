"""Constructors of frozen records for the few places that make tens of thousands of them.

A frozen dataclass sets every field through `object.__setattr__`, which makes an event of 24 fields five
times as dear as one that may be changed. A maker fills in an open twin of the record, with the same slots,
and then gives it the record's class: what comes out is the frozen record itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, field, fields, make_dataclass
from typing import Any, TypeVar, cast

T = TypeVar("T")


_makers: dict[Callable[..., Any], Callable[..., Any]] = {}


def maker(record: Callable[..., T]) -> Callable[..., T]:
    """A constructor of `record`, a frozen slotted dataclass, that takes the same keywords and no positions.

    It checks nothing that the record's own constructor would check in a `__post_init__`. Where Python does not
    let a twin take the record's class, the record itself is returned.
    """
    known: Callable[..., T] | None = _makers.get(record)
    if known is None:
        known = _makers[record] = _maker(record)
    return known


def _maker(record: Callable[..., T]) -> Callable[..., T]:
    def become(made: Any) -> None:  # noqa: ANN401 - a twin on its way to being a record
        made.__class__ = record

    described: Any = record
    parts = [_open(each) for each in fields(described)]
    twin: Any = make_dataclass("Twin", parts, namespace={"__post_init__": become}, slots=True, kw_only=True)
    try:
        become(object.__new__(twin))
    except TypeError:
        return record
    return cast("Callable[..., T]", twin)


def _open(each: Any) -> tuple[str, object, Any]:  # noqa: ANN401 - the standard library's own description of a field
    if each.default_factory is not MISSING:
        return each.name, object, field(default_factory=each.default_factory)
    return each.name, object, field() if each.default is MISSING else field(default=each.default)
