# ruff: noqa: E501
from collections.abc import Callable

import pytest

from fsdpclassify.records import Event, EventKind, Line

Events = Callable[..., list[Event]]
Lines = Callable[..., list[Line]]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ValueError: bad sample", "ValueError"),
        ("E   KeyError: 'x'", "KeyError"),
        ("my.package.errors.ShardNotFound: shard 7", "ShardNotFound"),
        ("KeyboardInterrupt", "KeyboardInterrupt"),
        ("StopIteration [repeated 6x across cluster]", "StopIteration"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has", "OutOfMemoryError"),
        ("torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.", "OutOfMemoryError"),
        ("RuntimeError: DataLoader worker (pid 40122) is killed by signal: Killed.", "RuntimeError"),
    ],
)
def test_exceptions(events: Events, text: str, name: str | None) -> None:
    found = [e for e in events(f"[rank3]: {text}") if e.kind is EventKind.ERROR]
    assert found[0].name == name
    assert {e.rank for e in found} == {3}
    assert len({e.name for e in found}) == len(found)


@pytest.mark.parametrize(
    "text",
    [
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        "subprocess.CalledProcessError: Command '[…]' returned non-zero exit status 1.",
        "UserWarning: this is no error",
        "retrying after HTTPError was raised, 3 tries left",
    ],
)
def test_what_is_no_error_of_a_rank(events: Events, text: str) -> None:
    assert [e for e in events(text) if e.kind is EventKind.ERROR] == []


@pytest.mark.parametrize(
    ("text", "code", "name"),
    [
        ("Mar 05 04:01:02 node07 kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", 79, "gpu"),
        ("[81233.104412] NVRM: Xid (PCI:0000:9b:00.0): 31, pid=8834, name=python3, Ch 00000008", 31, "gpu"),
        ("NVRM: Xid (0000:9b:00): 48, Double Bit ECC error", 48, "gpu"),
        ("AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0011 address=0x0]", None, "iommu"),
        ("DMAR: [DMA Read NO_PASID] Request device [9b:00.0] fault addr 0x0", None, "iommu"),
        ("mlx5_core 0000:9b:00.0 ens1f0: Link down", None, "link"),
        ("bond0: (slave ens1f0): link status definitely down, disabling slave", None, "link"),
        ("NETDEV WATCHDOG: ens1f0 (mlx5_core): transmit queue 3 timed out, TX timeout detected", None, "link"),
    ],
)  # fmt: skip
def test_hardware(events: Events, text: str, code: int | None, name: str | None) -> None:
    found = [e for e in events(text) if e.kind is EventKind.HARDWARE]
    assert (found[0].code, found[0].name) == (code, name)


@pytest.mark.parametrize(
    ("text", "name", "detail"),
    [
        ("Fatal Python error: Segmentation fault", None, "Segmentation fault"),
        ("*** SIGABRT received at time=1786179033 on cpu 94 ***", "SIGABRT", None),
    ],
)
def test_signals(events: Events, text: str, name: str | None, detail: str | None) -> None:
    (found,) = events(text)
    assert (found.kind, found.name, found.detail) == (EventKind.SIGNAL, name, detail)
