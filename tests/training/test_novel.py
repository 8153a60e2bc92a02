from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fsdpclassify.facts import LINE_FACTS
from fsdpclassify.training.examples import Example
from fsdpclassify.training.novel import daily, with_presumed_evidence

Make = Callable[..., Example]


def _facts(nearness: float = 0.5, **held: float) -> tuple[float, ...]:
    return tuple({"nearness": nearness, **held}.get(name, 0.0) for name in LINE_FACTS)


def _marked(example: Example, *rows: tuple[float, ...], known: frozenset[str] = frozenset()) -> list[str]:
    found = with_presumed_evidence(replace(example, facts=rows), known)
    return [t for t, d in zip(found.texts, found.decisive, strict=True) if d]


def test_wordings_that_no_earlier_incident_holds_carry_the_label(make_example: Make) -> None:
    example = make_example("a", "desync", ("old", "new"), (False, False))
    assert _marked(example, _facts(), _facts(), known=frozenset({"old"})) == ["new"]


def test_decisive_lines_that_the_user_gave_are_kept(make_example: Make) -> None:
    example = make_example("a", "desync", ("old", "new"), (True, False))
    assert _marked(example, _facts(), _facts(), known=frozenset({"old"})) == ["old"]


def test_lines_of_waiting_ranks_detections_and_what_came_after_carry_nothing(make_example: Make) -> None:
    example = make_example("a", "desync", ("w", "d", "l", "x"), (False,) * 4)
    rows = _facts(rank_waiting=1.0), _facts(is_detection=1.0), _facts(after=1.0), _facts()
    assert _marked(example, *rows) == ["x"]


def test_at_most_six_the_nearest_before_the_detection(make_example: Make) -> None:
    texts = tuple("abcdefgh")
    example = make_example("a", "desync", texts, (False,) * 8)
    rows = [_facts(nearness=n) for n in (0.1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.2)]
    assert _marked(example, *rows) == list("bcdefg")


def test_an_incident_without_new_wordings_stays_as_it_is(make_example: Make) -> None:
    example = make_example("a", "desync", ("old",), (False,))
    assert with_presumed_evidence(example, {"old"}) == example
    empty = make_example("b", "desync", (), ())
    assert with_presumed_evidence(empty, set()) == empty


def _printed(example: Example, *rows: tuple[float, ...]) -> Example:
    return replace(example, facts=rows)


def test_what_a_waiting_rank_or_most_ranks_print_is_noise_wherever_it_stands(make_example: Make) -> None:
    shown = _printed(
        make_example("a", "desync", ("waits", "most", "half", "own")),
        _facts(rank_waiting=1.0), _facts(printed_by_share=0.75), _facts(printed_by_share=0.5), _facts(),
    )  # fmt: skip
    bare = _printed(make_example("b", "desync", ("waits", "most", "half", "own")), *[_facts()] * 4)
    assert daily([shown, bare]) == daily([bare, shown]) == {"waits", "most"}


def test_a_wording_of_several_labels_is_noise_unless_three_in_four_agree(make_example: Make) -> None:
    own = [
        _printed(make_example(f"{label}-{i}", label, texts), *[_facts()] * len(texts))
        for label, count, texts in (("desync", 3, ("both", "mostly")), ("straggler", 2, ("both",)))
        for i in range(count)
    ]
    own.append(_printed(make_example("x", "straggler", ("mostly",)), _facts()))
    assert daily(own) == {"both"}


def test_an_undetermined_incident_shows_what_is_daily(make_example: Make) -> None:
    told = _printed(make_example("a", "desync", ("hum", "told")), _facts(), _facts())
    silent = _printed(make_example("b", "undetermined", ("hum",)), _facts())
    assert daily([told, silent]) == {"hum"}
