from collections.abc import Callable

import pytest

from fsdpclassify.records import Event, EventKind, Line

Events = Callable[..., list[Event]]
Lines = Callable[..., list[Line]]

SERVERS = [
    "INFO 03-10 00:58:36 [loggers.py:2249] Engine 000: Avg prompt throughput: 1779.9 tokens/s, Running: 49 reqs",
    "(EngineCore_0 pid=4188) INFO 03-10 00:58:36 [core.py:212] init engine took 41 s",
    "(VllmWorker rank=1 pid=4188) INFO 03-10 00:58:36 worker ready",
    'INFO:     10.0.4.9:30107 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    "[2025-01-12 08:28:27 TP0] Prefill batch. #new-seq: 1, #new-token: 1804, #cached-token: 2, token usage: 0.80",
    "2026-03-05T04:11:20.123456Z  INFO text_generation_launcher: Starting shard rank=0",
    "I0310 00:58:36.123456 1 http_server.cc:4725] Started HTTPService at 0.0.0.0:8000",
    "INFO:     Uvicorn running on http://0.0.0.0:8000",
]
TRAINERS = [
    "step 12 loss: 2.31 lr: 1e-4",
    "{'loss': 2.31, 'grad_norm': 1.2, 'learning_rate': 2e-05, 'epoch': 0.4}",
    " iteration 4410/ 100000 | consumed samples: 4515840 | lm loss: 2.104113E+00 |",
    "(WorkerDict pid=7731, ip=10.1.0.12) update of the policy done",
    '  File "/opt/app/train.py", line 318, in main',
    "[titan] 2026-03-05 04:01:08,117 - root - INFO - step: 12",
]
NEITHER = [
    "loading weights took 41.62 seconds",
    "The actor died unexpectedly before finishing this task.",
    "the model's training data cutoff is 2025",
    "NCCL version 2.21.5+cuda12.4",
]


def kinds(found: list[Event]) -> set[EventKind]:
    return {e.kind for e in found} & {EventKind.SERVER, EventKind.TRAINER}


@pytest.mark.parametrize("text", SERVERS)
def test_servers(events: Events, text: str) -> None:
    assert kinds(events(text, every=True)) == {EventKind.SERVER}


@pytest.mark.parametrize("text", TRAINERS)
def test_trainers(events: Events, text: str) -> None:
    assert kinds(events(text, every=True)) == {EventKind.TRAINER}


@pytest.mark.parametrize("text", NEITHER)
def test_words_that_decide_nothing(events: Events, text: str) -> None:
    assert kinds(events(text, every=True)) == set()


def test_once_for_each_rank_of_a_file(events: Events) -> None:
    found = events("step 1 loss: 2.0\nstep 2 loss: 1.9\n[rank1]: step 1 loss: 2.0", "step 1 loss: 2.0", every=True)
    assert [(e.line.source, e.rank) for e in found if e.kind is EventKind.TRAINER] == [(0, None), (0, 1), (1, None)]
