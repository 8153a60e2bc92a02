# ruff: noqa: E501
from collections.abc import Callable

import pytest

from fsdpclassify.records import Event

Events = Callable[..., list[Event]]

REPORT = """==============NVSMI LOG==============

Timestamp                                 : Wed Mar 11 06:20:41 2026
Attached GPUs                             : 2
GPU 00000000:17:00.0
    Clocks Event Reasons
        Idle                              : Not Active
        SW Power Cap                      : Active
        HW Slowdown                       : Not Active
            HW Thermal Slowdown           : Not Active
    ECC Errors
        Volatile
            DRAM Uncorrectable            : 0
        Aggregate
            DRAM Uncorrectable            : 12
GPU 00000000:4B:00.0
    Clocks Event Reasons
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
    ECC Errors
        Volatile
            SRAM Uncorrectable            : 0
            DRAM Uncorrectable            : 3
    Remapped Rows
        Remapping Failure Occurred        : No
"""


def test_the_report_of_nvidia_smi_names_the_gpu_in_trouble(events: Events) -> None:
    found = events(REPORT)
    assert [(e.name, e.local_rank, e.line.number) for e in found] == [("thermal", 1, 18), ("ecc", 1, 24)]


@pytest.mark.parametrize(
    ("text", "name", "gpu", "code"),
    [
        ("Detected XID 74 for GPU 5", "gpu", 5, 74),
        ("Detected XID 63 for GPU 5", "ecc", 5, 63),
        ("Warning: GPU 5 had uncorrectable memory errors and row remapping failed.", "ecc", 5, None),
        ("Detected clocks event due to thermal violation in GPU 5.", "thermal", 5, None),
        ("There were thermal violations totaling 41.5 seconds for GPU 5", "thermal", 5, None),
        ("GPU 5 is running at PCI link width 4X, which is below the minimum allowed link width of 16X", "pcie_width", 5, None),
        ("GPU 5's NvLink link 11 is currently down", "nvlink", 5, None),
        ("Unable to determine the device handle for GPU0000:4B:00.0: Unknown Error", "gpu", None, None),
        ('DCGM_FI_DEV_XID_ERRORS{gpu="5",UUID="GPU-1",Hostname="bay-19"} 79', "gpu", 5, 79),
        ('DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu="5",UUID="GPU-1"} 72', "thermal", 5, None),
        ('DCGM_FI_DEV_CLOCKS_EVENT_REASONS{gpu="5",UUID="GPU-1"} 32', "thermal", 5, None),
    ],
)  # fmt: skip
def test_words_and_fields_about_one_gpu(
    events: Events, text: str, name: str, gpu: int | None, code: int | None
) -> None:
    (found,) = events(text)
    assert (found.name, found.local_rank, found.code) == (name, gpu, code)
    assert found.detail


@pytest.mark.parametrize(
    "text",
    [
        'DCGM_FI_DEV_XID_ERRORS{gpu="5",UUID="GPU-1"} 0',
        'DCGM_FI_DEV_CLOCKS_EVENT_REASONS{gpu="5",UUID="GPU-1"} 4',
        "Warning: GPU 5 had memory errors and row remappings are pending",
        "Persistence mode for GPU 5 is disabled.",
        "SW Power Cap                      : Active",
    ],
)
def test_what_is_normal_is_no_event(events: Events, text: str) -> None:
    assert events(text) == []
