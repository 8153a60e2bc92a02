import pytest

from fsdpclassify.records import InputKind
from fsdpclassify.sources.kinds import is_binary, is_flight_recorder, recognise

DMESG = b"""\
[81233.104412] Memory cgroup out of memory: Killed process 8834 (pt_data_worker) total-vm:91200412kB
[81240.000001] mlx5_core 0000:3b:00.0 ens3f0: Link down
"""
SYSLOG = b"""\
Mar 05 04:01:02 node07 kernel: NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.
Mar 05 04:01:03 node07 systemd[1]: Started user manager for root.
2026-03-05T04:01:04.000001+00:00 node07 sshd[991]: Accepted publickey
"""
SYSTEM = {
    "dmesg": DMESG,
    "syslog": SYSLOG,
    "nvidia-smi": b"Thu Mar  5 04:01:02 2026\n+--------------------------+\n| NVIDIA-SMI 580.1 |\n",
    "nvidia-smi -q": b"==============NVSMI LOG==============\n\n    Clocks Event Reasons\n",
    "csv": b"index, utilization.gpu [%]\n0, 0 %\n",
    "ibstat": b"CA 'mlx5_0'\n\tCA type: MT4129\n",
    "topology": b"\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tSYS\t0-31\n",
    "ps": b"  PID STAT     TIME WCHAN                 CMD\n 4410 Rl   02:04:51 - python train.py (rank 0)\n",
    "ps aux": b"USER         PID %CPU %MEM    VSZ   RSS TTY STAT START TIME COMMAND\n",
    "dmesg -T": b"[Thu Mar  5 04:01:02 2026] mlx5_core 0000:3b:00.0 ens3f0: Link down\n",
    "dmesg iso": b"2026-03-05T04:01:02,123456+00:00 mlx5_core 0000:3b:00.0 ens3f0: Link down\n",
    "csv with times": b"timestamp, name, index, utilization.gpu [%]\n2026/03/05 04:01:02.1, X, 0, 0 %\n",
    "exporter": b'# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\nDCGM_FI_DEV_GPU_UTIL{gpu="0"} 4\n',
    "ethtool": b"NIC statistics:\n     rx_packets: 1\n",
    "lspci": b"3b:00.0 Infiniband controller: Mellanox Technologies MT2910\n\tLnkSta: Speed 32GT/s, Width x16\n",
    "perfquery": b"# Port counters: Lid 4 port 1\nLinkDownedCounter:...............3\n",
}
LOGS = {
    "plain": b"hello\nworld\n",
    "c10d": b"[rank3]:[E305 04:11:09.7 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught\n",
    "journal": b"Mar 05 04:01:02 node07 python[812]: [rank3]: RuntimeError: no\n" * 3,
    "dmesg pasted into a log": DMESG + b"Traceback (most recent call last):\n",
    "table in a log": b"+-----------------------------------------------+\nepoch 3 loss 2.1\n",
    "json lines": b'{"step": 1, "entries": 3}\n',
}
PICKLE = b"\x80\x02}q\x00(X\x07\x00\x00\x00entriesq\x01]q\x02X\x09\x00\x00\x00pg_configq\x03"


@pytest.mark.parametrize("name", SYSTEM)
def test_system(name: str) -> None:
    assert recognise(SYSTEM[name]) is InputKind.SYSTEM


@pytest.mark.parametrize("name", LOGS)
def test_log(name: str) -> None:
    assert recognise(LOGS[name]) is InputKind.LOG


@pytest.mark.parametrize("sample", [PICKLE, b' {"version": "2.10", "pg_config": {}}', b'{"pg_status":{"0":1}}'])
def test_flight_recorder(sample: bytes) -> None:
    assert is_flight_recorder(sample)


@pytest.mark.parametrize("sample", [*LOGS.values(), b"", b"\x80\x02", b"\x80abc", b'{"a": 1}'])
def test_no_flight_recorder(sample: bytes) -> None:
    assert not is_flight_recorder(sample)


@pytest.mark.parametrize(
    "sample", [bytes(range(256)) * 4, b"\x7fELF\x02\x01\x01", b"PK\x03\x04abc", b"\x00\x01\x00\x02\x03"]
)
def test_binary(sample: bytes) -> None:
    assert is_binary(sample)


@pytest.mark.parametrize(
    "sample",
    [
        *LOGS.values(),
        *SYSTEM.values(),
        b"",
        b"\x00" * 500 + b"text",
        "ünïcödé".encode("latin-1"),
        b"\x1b[31mred\x1b[0m",
    ],
)
def test_text(sample: bytes) -> None:
    assert not is_binary(sample)
