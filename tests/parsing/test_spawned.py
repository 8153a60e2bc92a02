"""What a parent process prints about its spawned children is theirs."""

from __future__ import annotations

import pytest

from fsdpclassify.reading import find
from fsdpclassify.records import EventKind, Incident
from fsdpclassify.sources import from_text

_GLOO = "RuntimeError: [/pytorch/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 8000ms for recv operation"
_PARENT = (
    "Traceback (most recent call last):\n"
    '  File "/opt/venv/lib/python3.11/site-packages/torch/multiprocessing/spawn.py", line 211, in join\n'
    "    raise ProcessRaisedException(msg, error_index, failed_process.pid)\n"
    "torch.multiprocessing.spawn.ProcessRaisedException: \n"
)


def incident(*lines: str) -> Incident:
    return find(from_text(["".join(lines)])).incidents[-1]


def child(rank: int, error: str) -> str:
    return (
        f"\n-- Process {rank} terminated with the following error:\n"
        'Traceback (most recent call last):\n  File "/opt/app/t.py", line 28, in batch\n    loss.backward()\n'
        f"{error}\n"
    )


def test_the_childs_wait_is_its_own_and_the_parent_has_no_error() -> None:
    found = incident("rank 0 | epoch 8\n", _PARENT, child(2, _GLOO + " to complete"))
    assert found.waiting == (2,)
    assert not [e for e in found.events if e.kind is EventKind.ERROR]


def test_an_error_of_the_child_is_its_own() -> None:
    found = incident(child(1, "ValueError: bad sample"), f"[rank0]: {_GLOO} to complete\n")
    assert [(e.rank, e.name) for e in found.events if e.kind is EventKind.ERROR] == [(1, "ValueError")]


def test_other_output_below_it_is_not() -> None:
    found = incident(child(1, "ValueError: bad sample"), f"[rank0]: {_GLOO} to complete\n", "KeyError: 'x'\n")
    assert {e.name: e.rank for e in found.events if e.kind is EventKind.ERROR}["KeyError"] is None


@pytest.mark.parametrize(("how", "code"), [("signal SIGKILL", None), ("exit code 1", 1), ("signal SIGSEGV", None)])
def test_an_exit_that_the_parent_tells(how: str, code: int | None) -> None:
    line = f"torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with {how}\n"
    found = incident(line, f"[rank0]: {_GLOO} to complete\n")
    assert [(e.rank, e.code) for e in found.events if e.kind is EventKind.EXIT] == [(3, code)]
    assert not [e for e in found.events if e.kind is EventKind.ERROR]
