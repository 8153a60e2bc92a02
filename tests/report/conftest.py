"""Hand-made reports: the output stage is tested without any other stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fsdpclassify.records import (
    Alternative,
    Collective,
    Diagnosis,
    Evidence,
    GroupCounters,
    InputKind,
    InputRow,
    InputStatus,
    LedgerRow,
    ModelInfo,
    Remedy,
    Report,
    Role,
)

ONSET = 1_772_683_869.0  # 2026-03-05T04:11:09


def _diagnosis(**changes: object) -> Diagnosis:
    values: dict[str, Any] = {
        "verdict": "desync",
        "cause": "fewer_batches_on_one_rank",
        "probability": 0.93,
        "probabilities": {"desync": 0.93, "straggler": 0.05, "other": 0.02},
        "model_label": "desync",
        "abstained_because": None,
        "collective": Collective(
            op="_ALLGATHER_BASE",
            meaning="FSDP all-gather of parameters",
            group="0(default_pg)",
            seq=23413,
            timeout_s=600.0,
            onset=ONSET,
            detected=ONSET + 600.25,
            dated=True,
        ),
        "world_size": 6,
        "initiating_ranks": (1,),
        "initiating_nodes": (),
        "waiting_ranks": (0, 2, 3, 5),
        "failed_ranks": (),
        "evidence": (
            Evidence(
                path="trainer.log",
                line=12,
                rank=1,
                text="epoch finished after 1643 steps",
                supports="desync",
                weight=0.41,
                why="rank 1 left its loop while the others went on",
            ),
        ),
        "alternatives": (Alternative(label="straggler", probability=0.05, separate_by="rank 1 prints no step"),),
        "remedy": Remedy(
            summary="Give every rank the same number of batches.",
            steps=("Use a sampler that drops the last batch.",),
            longer_timeout_helps=False,
            verify=("grep -c 'step ' rank*.log",),
            ops_request=None,
        ),
        "collect_next": (),
        "ledger": (
            LedgerRow(
                rank=0,
                role=Role.WAITING,
                last_step=1643,
                step_time_s=0.5,
                step_trend=float("inf"),
                enqueued=23413,
                completed=23412,
                groups=(GroupCounters(group="0(default_pg)", enqueued=23413, completed=23412),),
                log_end=ONSET + 601,
            ),
            LedgerRow(rank=1, role=Role.MISSING),
        ),
    }
    return Diagnosis(**(values | changes))


def _report(**changes: object) -> Report:
    values: dict[str, Any] = {
        "tool_version": "0.1.0",
        "model": ModelInfo(name="default", version="1", sha256="0" * 64),
        "inputs": (InputRow(path="trainer.log", kind=InputKind.LOG, bytes=9000, lines=40, status=InputStatus.OK),),
        "incidents": (_diagnosis(),),
        "first_fatal_error": None,
        "elapsed_ms": 42,
    }
    return Report(**(values | changes))


@pytest.fixture
def make_diagnosis() -> Callable[..., Diagnosis]:
    """A verdict of desync; keyword arguments replace fields."""
    return _diagnosis


@pytest.fixture
def make_report() -> Callable[..., Report]:
    """A report with one incident; keyword arguments replace fields."""
    return _report


@pytest.fixture
def undetermined() -> Diagnosis:
    """The same incident with a low probability."""
    from fsdpclassify.records import Abstention

    return _diagnosis(
        verdict="undetermined",
        cause=None,
        probability=0.44,
        probabilities={"desync": 0.44, "straggler": 0.40, "other": 0.16},
        abstained_because=Abstention.LOW_CONFIDENCE,
        initiating_ranks=(),
        remedy=Remedy(),
        collect_next=("Set TORCH_FR_BUFFER_SIZE=2000.",),
    )
