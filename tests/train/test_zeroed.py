"""Lines that show a cause, said again with amounts of zero."""

from __future__ import annotations

import pytest

from train.zeroed import zeroed


@pytest.mark.parametrize(
    ("line", "nothing"),
    [
        ("swap used 31.2 GB, paging for 12 s", "swap used 0 GB, paging for 0 s"),
        ("rank 3: dataloader wait 148.9 s", "rank 3: dataloader wait 0 s"),
        ("imbalance 41.5 % at step 1200", "imbalance 0 % at step 1200"),
    ],
)
def test_every_amount_becomes_zero_and_names_stay(line: str, nothing: str) -> None:
    assert zeroed(line) == nothing


@pytest.mark.parametrize(
    "line",
    [
        "free memory 12 GB",
        "bandwidth 3.1 GB/s on rank 4",
        "waiting for rank 2 for 300 s",
        "checkpoint failed after 12 s",
        "compiling the graph",
        "saw 12 batches",
    ],
)
def test_where_zero_would_be_bad_news_or_there_is_no_amount_nothing_is_made(line: str) -> None:
    assert zeroed(line) is None
