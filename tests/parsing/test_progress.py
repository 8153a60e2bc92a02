# ruff: noqa: E501
from collections.abc import Callable

import pytest

from fsdpclassify.records import Event, EventKind, Line

Events = Callable[..., list[Event]]
Lines = Callable[..., list[Line]]


@pytest.mark.parametrize(
    ("text", "step", "total"),
    [
        ("[rank0]:[titan] 2026-03-05 04:01:08,117 - root - INFO - step: 12  loss:  7.1234  grad_norm:  0.9123  memory: 31.20GiB(39.5%)  tps: 7,412", 12, None),
        (" [2026-03-05 04:01:08.117342] iteration     4410/  100000 | consumed samples:      4515840 | elapsed time per iteration (ms): 5120.4 | lm loss: 2.104113E+00 |", 4410, 100000),
        (" iteration     4410/  100000 | consumed samples:      4515840 | elapsed time per iteration (ms): 5120.4 |", 4410, 100000),
        ("[2026-03-05 04:01:08,117] [INFO] [logging.py:96:log_dist] [Rank 0] step=43, skipped=0, lr=[0.0002742], mom=[(0.9, 0.95)]", 43, None),
        ("[2026-03-05 04:01:08,117] [INFO] [timer.py:215:stop] epoch=0/micro_step=88/global_step=44, RunningAvgSamplesPerSec=0.169671", 44, None),
        ("Training epoch 0, iteration 7/99 | lr: 1e-4 | global_batch_size: 8 | global_step: 7 | reduced_train_loss: 2.1 | train_step_timing in s: 3.2", 7, 99),
        ("step:31 - global_seqlen/min:512 - actor/loss:0.12", 31, None),
        ("{'loss': 2.31, 'grad_norm': 1.2, 'step': 20, 'epoch': 0.4}", 20, None),
    ],
)  # fmt: skip
def test_steps(events: Events, text: str, step: int | None, total: int | None) -> None:
    found = [e for e in events(text) if e.kind is EventKind.STEP]
    assert (found[0].step, found[0].total) == (step, total)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (" iteration 4410/ 100000 | elapsed time per iteration (ms): 5120.4 |", 5.1204),
        ("iteration 7/99 | train_step_timing in s: 3.2", 3.2),
        ("step 12 step_time=1.5s", 1.5),
        ("step=12 step_time: 250ms", 0.25),
    ],
)
def test_step_times(events: Events, text: str, seconds: float | None) -> None:
    (found,) = events(text)
    assert found.value == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "step", "total", "rate", "name"),
    [
        ("  1%|▏         | 24/1752 [01:08<1:22:01,  2.83s/it]", 24, 1752, 2.83, ""),
        ("Epoch 0:  6%|▌ | 320/5001 [06:28<94:39, 1.25it/s, v_num=3, train_loss=2.6]", 320, 5001, 0.8, "Epoch 0"),
        (
            "Training Progress:  12%|█▏        | 12/100 [1:01:08<7:22:01, 301.40s/it]",
            12,
            100,
            301.4,
            "Training Progress",
        ),
        (
            "Map (num_proc=8):  57%|█████▋    | 1,140/2,000 [29:55<22:34, ?examples/s]",
            1140,
            2000,
            None,
            "Map (num_proc=8)",
        ),
        ("Loading:   0%|          | 0/9 [00:00<?, ?it/s]", 0, 9, None, "Loading"),
    ],
)
def test_bars(
    events: Events, text: str, step: int | None, total: int | None, rate: float | None, name: str | None
) -> None:
    found = [e for e in events(text) if e.kind is EventKind.PROGRESS]
    assert [(e.step, e.total, e.name) for e in found] == [(step, total, name)]
    assert found[0].value == (None if rate is None else pytest.approx(rate))


def test_every_frame_of_a_rewritten_bar_counts(events: Events) -> None:
    text = " 1%|▏| 1/100 [00:02<03:18, 2.00s/it]\r 2%|▏| 2/100 [00:04<03:16, 2.00s/it]"
    assert [e.step for e in events(text) if e.kind is EventKind.PROGRESS] == [1, 2]


@pytest.mark.parametrize(
    "text", ["`Trainer.fit` stopped: `max_steps=100` reached.", "Training complete", "TRAINING FINISHED"]
)
def test_finished(events: Events, text: str) -> None:
    assert EventKind.FINISHED in {e.kind for e in events(text)}


def test_a_step_line_may_name_its_rank(events: Events) -> None:
    found = [e for e in events("train, rank: 2, epoch: 1, step: 40, loss 2.1") if e.kind is EventKind.STEP]
    assert [(e.rank, e.step) for e in found] == [(2, 40)]
