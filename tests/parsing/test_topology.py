from collections.abc import Callable

import pytest

from fsdpclassify.records import Event
from fsdpclassify.roles import is_fault

Events = Callable[..., list[Event]]

MIXED = (
    "\tGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tPIX\tSYS\tSYS\t0-23\t0\n"
    "GPU1\tPIX\t X \tNODE\tSYS\t0-23\t0\n"
    "GPU2\tSYS\tNODE\t X \tPIX\t24-47\t1\n"
    "NIC0\tSYS\tSYS\tPIX\t X \n"
)


def test_the_longest_way_of_each_gpu_is_told_once(events: Events) -> None:
    (found,) = events(MIXED)
    assert (found.name, found.line.number, found.rank) == ("topology", 4, None)
    assert found.detail is not None
    assert found.detail.startswith("GPU 0 and GPU 2 are joined only across the link between processors (SYS)")
    assert not is_fault(found)


def test_gpus_behind_nvlink_or_one_switch_are_no_news(events: Events) -> None:
    assert events("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-23\nGPU1\tNV18\t X \t0-23\n") == []
    assert events("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPIX\t0-23\nGPU1\tPIX\t X \t0-23\n") == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-", "topology"),
        ("\t\tLnkSta:\tSpeed 16GT/s, Width x8 (downgraded)", "pcie_width"),
        ('NCCL WARN Missing "iommu=pt" from kernel command line which can lead to hang!', "topology"),
    ],
)
def test_settings_of_the_bus(events: Events, text: str, name: str) -> None:
    (found,) = events(text)
    assert found.name == name


@pytest.mark.parametrize(
    "text",
    [
        "\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd-",
        "\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x16",
    ],
)
def test_settings_as_they_should_be(events: Events, text: str) -> None:
    assert events(text) == []
