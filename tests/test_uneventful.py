"""Rows of host tables that say that all is well, and their sick twins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsdpclassify.reading import find
from fsdpclassify.sources import from_text
from fsdpclassify.uneventful import is_uneventful
from fsdpclassify.window import cut_window

HEALTHY = (
    "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----",
    " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st",
    " 1  0      0 1881002 12012 4410    0    0    12    9 900 1200 3 1 96 0 0",
    "               total        used        free      shared  buff/cache   available",
    "Mem:            2015         112        1500           2         402        1890",
    "Mem:           2.0Ti       112Gi       1.5Ti       2.0Gi       402Gi       1.8Ti",
    "Swap:              0           0           0",
    "Swap:          8.0Gi          0B       8.0Gi",
    "\t\tState: Active",
    "\t\tPhysical state: LinkUp",
    "\tphys state:\t 5: LinkUp",
    "SymbolErrorCounter:...............0",
    "     rx_discards_phy: 0",
    "some avg10=0.00 avg60=0.00 avg300=0.00 total=1200",
    "[    9.212] mlx5_core 0000:3b:00.0 ens3f0np0: Link up",
    "[ 8812.1] pcieport 0000:80:01.0: AER: Corrected error received: 0000:81:00.0",
    "\t Link 3: 26.562 GB/s",
    "GPU0\t X \tNV18\tNV18\tNV18\tSYS\t0-47",
)
SICK = (
    " 4 12 61002144 10021 1212 44100 9120 88410  12    9 900 1200 3 1 16 80 0",
    "Mem:            2015        1990           3           2          22          11",
    "Swap:          64Gi        61Gi       3.0Gi",
    "\t\tState: Down",
    "\t\tPhysical state: Polling",
    "\tphys state:\t 2: Polling",
    "SymbolErrorCounter:...............4183",
    "     rx_discards_phy: 552248",
    "some avg10=83.20 avg60=71.00 avg300=12.00 total=99121200",
    "[ 8812.1] mlx5_core 0000:3b:00.0 ens3f0np0: Link down",
    "[ 8812.1] pcieport 0000:80:01.0: AER: Uncorrected (Fatal) error received: 0000:81:00.0",
    "received: 0",
    "GPU0\t X \tSYS\tSYS\tSYS\tNODE\t0-47",
    "step 12 | loss 2.13",
)


@pytest.mark.parametrize("line", HEALTHY)
def test_a_healthy_row_reports_nothing(line: str) -> None:
    assert is_uneventful(line)


@pytest.mark.parametrize("line", SICK)
def test_a_sick_row_stays(line: str) -> None:
    assert not is_uneventful(line)


@given(st.text(max_size=400))
def test_any_text_gets_an_answer(text: str) -> None:
    assert is_uneventful(text) in (True, False)


def test_healthy_rows_are_no_lines_of_the_window_whatever_their_numbers() -> None:
    wait = "[rank1]: RuntimeError: Timed out waiting 60000ms for recv operation to complete\n"
    table = "\n".join([*HEALTHY, *SICK]) + "\n"
    found = find(from_text([table + wait]))
    bodies = {row.line.body.strip() for row in cut_window(found.incidents[-1], found.kinds)}
    assert not bodies & {line.strip() for line in HEALTHY}
    assert SICK[0].strip() in bodies
    assert "Swap:          64Gi        61Gi       3.0Gi" in bodies
