# ruff: noqa: E501
"""Kernel lines with values of our own making."""

from collections.abc import Callable

import pytest

from fsdpclassify.parsing.xid import XIDS
from fsdpclassify.records import Event, EventKind
from fsdpclassify.roles import is_fault

Events = Callable[..., list[Event]]
HEAD = "Mar 11 06:20:41 bay-19 kernel: "


def _one(events: Events, text: str) -> Event:
    (found,) = events(HEAD + text)
    return found


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("NVRM: GPU 0000:4b:00.0: GPU has fallen off the bus.", "gpu"),
        ("NVRM: RmInitAdapter failed! (0x26:0x56:1474)", "gpu"),
        ("nvidia-nvswitch2: SXid (PCI:0000:86:00.0): 19084, Fatal, Link 31 AN1 Heartbeat Timeout Error", "gpu"),
        ("amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!", "gpu"),
        ("nvidia 0000:41:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0011 address=0xd0000000 flags=0x0020]", "iommu"),
        ("DMAR: [DMA Write NO_PASID] Request device [4b:00.0] fault addr 0x7a000000", "iommu"),
        ("mlx5_core 0000:17:00.0 ens3f1np1: Link down", "link"),
        ("i40e 0000:17:00.1 ens3f1: NIC Link is Down", "link"),
        ("bond2: (slave ens3f1): link status definitely down, disabling slave", "link"),
        ("mlx5_core 0000:17:00.0: Port module event[error]: module 0, Cable error, High Temperature", "link"),
        ("mlx5_core 0000:17:00.0: poll_health:829:(pid 0): device's health compromised - reached miss count", "link"),
        ("NETDEV WATCHDOG: ens3f1 (mlx5_core): transmit queue 4 timed out 5120 ms", "link"),
        ("mlx5_core 0000:17:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)", "pcie"),
        ("pciehp 0000:40:01.0:pcie004: Slot(7): Link Down", "pcie"),
        ("Kernel panic - not syncing: Fatal machine check", "panic"),
    ],
)  # fmt: skip
def test_faults_of_devices_are_told_with_their_node_and_meaning(events: Events, text: str, name: str) -> None:
    found = _one(events, text)
    assert (found.kind, found.name, found.rank, found.line.node) == (EventKind.HARDWARE, name, None, "bay-19")
    assert is_fault(found)
    assert found.detail


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("pcieport 0000:40:01.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer", "pcie_recovered"),
        ("nvme nvme3: I/O 611 QID 9 timeout, aborting", "nvme"),
        ("nvme nvme3: I/O tag 88 (a058) opcode 0x2 (I/O Cmd) QID 4 timeout, aborting req_op:READ(0) size:131072", "nvme"),
        ("I/O error, dev nvme3n1, sector 99120 op 0x0:(READ) flags 0x80700", "storage"),
        ("nfs: server store-4 not responding, still trying", "storage"),
        ("Lustre: work-MDT0000-mdc: Connection to work-MDT0000 (at 10.9.4.2@o2ib) was lost; in progress operations using this service will wait for recovery to complete", "storage"),
        ("INFO: task pt_data_worker:7741 blocked for more than 122 seconds.", "hung_task"),
        ("watchdog: BUG: soft lockup - CPU#61 stuck for 26s! [python3:7741]", "lockup"),
        ("rcu: INFO: rcu_sched self-detected stall on CPU", "lockup"),
        ("CPU44: Package temperature is above threshold, cpu clock is throttled (total events = 913)", "thermal"),
        ("python3: page allocation failure: order:4, mode:0x40dc0(GFP_KERNEL|__GFP_COMP|__GFP_ZERO)", "host_memory"),
        ("EDAC MC1: 1 UE memory read error on CPU_SrcID#1_MC#1_Chan#0_DIMM#0", "ecc"),
    ],
)  # fmt: skip
def test_a_slow_host_is_no_failure(events: Events, text: str, name: str) -> None:
    found = _one(events, text)
    assert (found.kind, found.name, found.rank) == (EventKind.HARDWARE, name, None)
    assert not is_fault(found)
    assert found.detail


@pytest.mark.parametrize(
    ("code", "fault", "word"),
    [
        (13, True, "program"), (31, True, "program"), (43, True, "program"), (45, False, "consequence"),
        (48, True, "hardware"), (63, False, "goes on"), (74, True, "NVLink"), (79, True, "fallen off the bus"),
        (92, False, "corrected"), (94, True, "contained"), (119, True, "firmware"), (145, True, "NVLink"),
        (154, False, "recover"), (977, True, "number alone"),
    ],
)  # fmt: skip
def test_an_xid_says_what_it_means_and_whose_fault_it_is(events: Events, code: int, fault: bool, word: str) -> None:
    found = _one(
        events, f"NVRM: Xid (PCI:0000:4b:00): {code}, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    )
    assert (found.code, is_fault(found)) == (code, fault)
    assert found.detail is not None
    assert found.detail.startswith(f"Xid {code}: ")
    assert word in found.detail


def test_every_xid_of_the_table_has_a_meaning_of_its_own_kind() -> None:
    assert all(x.meaning and x.name for x in XIDS.values())
    assert {c for c, x in XIDS.items() if "program's fault" in x.meaning} == {13, 31, 43, 45, 69, 137}


@pytest.mark.parametrize(
    "text",
    [
        "audit: type=1400 audit(1772692861.118:611): apparmor=\"ALLOWED\" operation=\"open\" profile=\"snap\" pid=7741",
        "pcieport 0000:40:01.0: AER: Corrected error received: 0000:41:00.0",
        "nvidia 0000:41:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
        "mlx5_core 0000:17:00.0 ens3f1np1: Link up",
        "mlx5_core 0000:17:00.0: Port module event: module 0, Cable plugged",
        "mlx5_core 0000:17:00.0: PCIe slot advertised sufficient power (75W).",
        "IPv6: ADDRCONF(NETDEV_CHANGE): ens3f1: link becomes ready",
        "NVRM: GPU at PCI:0000:4b:00: GPU-00000000-1111-2222-3333-444444444444",
        "nvidia-nvswitch2: SXid (PCI:0000:86:00.0): 20034, Non-fatal, Link 31 LTSSM Fault Up",
        "hrtimer: interrupt took 31992 ns",
        "perf: interrupt took too long (2611 > 2500), lowering kernel.perf_event_max_sample_rate to 76500",
        "nfs: server store-4 OK",
        "EDAC MC1: 1 CE memory read error on CPU_SrcID#1_MC#1_Chan#0_DIMM#0",
        "Adding 8388604k swap on /dev/nvme3n1p2.  Priority:-2 extents:1 across:8388604k",
    ],
)  # fmt: skip
def test_what_is_corrected_or_came_up_or_keeps_books_is_no_event(events: Events, text: str) -> None:
    assert events(HEAD + text) == []


def test_ports_that_are_set_up_while_the_machine_starts(events: Events) -> None:
    (found,) = events("[   14.204471] mlx5_core 0000:17:00.0 ens3f1np1: Link down")
    assert (found.name, is_fault(found)) == ("link_setup", False)
    (found,) = events("[ 9914.204471] mlx5_core 0000:17:00.0 ens3f1np1: Link down")
    assert found.name == "link"


def test_one_message_is_one_event(events: Events) -> None:
    assert len(events(HEAD + "NVRM: Xid (PCI:0000:4b:00): 79, GPU has fallen off the bus.")) == 1
    assert (
        len(
            events(
                HEAD
                + "bond2: (slave a): link status definitely down; bond2: (slave b): link status down again after 80 ms"
            )
        )
        == 1
    )


@pytest.mark.parametrize(
    "head",
    [
        "2026-03-11T06:20:41+00:00 bay-19 kernel: ",
        "[Wed Mar 11 06:20:41 2026] ",
        "[ 9911.204471] ",
        "2026-03-11T06:20:41,204471+00:00 ",
    ],
)
def test_every_prefix_of_the_kernel_is_read_over(events: Events, head: str) -> None:
    (found,) = events(head + "mlx5_core 0000:17:00.0 ens3f1np1: Link down")
    assert found.name == "link"
