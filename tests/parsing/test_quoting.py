"""Words of a timeout that are only quoted tell of no incident; what reports quote of a real one still does."""

from __future__ import annotations

import pytest

from fsdpclassify.reading import find
from fsdpclassify.sources import from_text

TEXT = (
    "[rank3]:[E305 04:11:09.778120334 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600041 milliseconds "
    "before timing out."
)


def incidents(line: str) -> int:
    return len(find(from_text([f"step 3 loss: 2.1\n{line}\n"])).incidents)


@pytest.mark.parametrize(
    "line",
    [
        f'sample completion: "{TEXT}"',
        f"{{'prompt': 'what is it?', 'response': '{TEXT}', 'reward': 0.1}}",
        f'[rank0]: generated_text="{TEXT}"',
        f"eval | prediction -> `{TEXT}`",
        f'  LOG(ERROR) << "{TEXT}";',
        f'    raise RuntimeError("{TEXT}")',
        f'    logger.error(f"{TEXT}")',
        f'    pattern = re.compile(r"{TEXT}")',
    ],
)
def test_a_quotation_is_no_incident(line: str) -> None:
    assert incidents(line) == 0


@pytest.mark.parametrize(
    "line",
    [
        TEXT,
        f"  what():  {TEXT[TEXT.index('[Rank') :]}",
        f'2026-03-05 04:11:09 ERROR trainer: "{TEXT}"',
        'DistBackendError("NCCL error in: /a.cpp:12, remote process exited, NCCL version 2.2")',
        '{"message": {"message": "RuntimeError: Timed out waiting 1800000ms for recv operation to complete"}}',
        f"{{'response': 'fine', 'reward': 0.1}}{TEXT}",
        f'prompt: "why?" response: "because" {TEXT}',
        "wait timeout after 1800000ms, keys: /default_pg/0//cuda//0",
    ],
)
def test_a_report_is_one(line: str) -> None:
    assert incidents(line) == 1
