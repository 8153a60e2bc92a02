"""What an input is, judged from the first bytes of its content and never from its name."""

from __future__ import annotations

import re

from fsdpclassify.records import InputKind

SAMPLE_BYTES = 64 * 1024
_ODD = bytes(code for code in range(32) if code not in (0, 8, 9, 10, 12, 13, 27))
_ODD_SHARE = 0.05
_MAX_LINES = 400

_DUMP_KEYS = (b"pg_config", b"pg_status", b"comm_lib_version", b"nccl_version", b"collective_seq_id")
_JSON_KEYS = (b'"pg_config"', b'"pg_status"', b'"collective_seq_id"')

# What a training process prints, and a system log, a table of devices or a process list does not.
_TRAINING = re.compile(
    rb"\[rank\d+\]|Watchdog caught|Traceback \(most recent call last\)|NCCL (?:INFO|WARN)|ProcessGroup"
    rb"|torch[./]distributed|\btorchrun\b|WorkNCCL|py-spy|\b(?:epoch|loss|step|iteration)[ =:]+\[?\d"
)
_KERNEL_LINE = re.compile(
    rb"\[ *\d+\.\d{6}\]|\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\] "
    rb"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}[+-]\d\d:\d\d "
    rb"|(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) \S+ "
    rb"(?:kernel|systemd|sshd|cron|CRON|sudo|dockerd|containerd|kubelet|slurmd|slurmstepd|rasdaemon|chronyd|dbus"
    rb"|slurmctld|earlyoom|nhc|nvidia-\w+|NetworkManager|rsyslogd|irqbalance|snapd|opensm|nv-hostengine|audit|auditd)"
    rb"\b[^:]{0,40}: "
    rb"|(?:<\d{1,3}>|kern\.\w+:|kern +:\w+ *:)"
)
_TABLE = re.compile(
    rb"(?m)^(?:"
    rb"\s*GPU0\s+(?:GPU1|X|CPU Affinity)"
    rb"|=+NVSMI LOG=+|\|? *NVIDIA-SMI \d|\+-{20,}\+|index, ?(?:utilization|power|temp|clocks|memory|name)\S*"
    rb"|(?:power\.draw|utilization\.gpu|clocks\.\S+|temperature\.gpu|memory\.used)\b[^\n]*,"
    rb"|=+ ?ROCm System Management Interface|Device +Node +IDs|GPU\[\d+\]\s*:"
    rb"|(?:timestamp|host(?:name)?|node|gpu|rank|name|uuid|pci\.bus_id),[^\n]{0,300}"
    rb"(?:utilization[._]gpu|gpu_util|memory\.used|clocks[._])"
    rb"|(?:# HELP )?DCGM_FI_DEV_\w+[ {]|#\s?Entity "
    rb"|(?:[\da-f]{4}:)?[\da-f]{2}:[\da-f]{2}\.[0-7] (?:3D controller|VGA compatible|PCI bridge|Infiniband|Ethernet)"
    rb"|CA '\w+'|hca_id:|# Port counters: |\w+Counter:\.+\d|NIC statistics:|/sys/class/infiniband/\S+/hw_counters/"
    rb"|(?:USER +PID|UID +PID +PPID|PID +(?:TTY|STAT|USER|PPID)|F +S +UID +PID| +PID (?:TTY|STAT|USER|PPID)) "
    rb"|\d+: \w+: <[A-Z_,]+> mtu \d+|procs -+memory-+|Filesystem +(?:Size|1K-blocks)"
    rb")"
)


def is_flight_recorder(sample: bytes) -> bool:
    """Whether `sample` begins a flight-recorder dump, as pickle or as JSON."""
    if sample[:1] == b"\x80" and sample[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return b"entries" in sample or any(key in sample for key in _DUMP_KEYS)
    return sample.lstrip()[:1] == b"{" and any(key in sample for key in _JSON_KEYS)


def is_binary(sample: bytes) -> bool:
    """Whether `sample` is no text: too many control bytes, NUL bytes aside.

    A log that was truncated while it was written begins with a run of NUL bytes, and is text.
    """
    if sample[:4] in (b"\x7fELF", b"PK\x03\x04", b"\x89PNG") or sample[:6] == b"\x93NUMPY":
        return True
    text = sample.replace(b"\x00", b"")
    odd = len(text) - len(text.translate(None, _ODD))
    return odd > _ODD_SHARE * len(text)


def recognise(sample: bytes) -> InputKind:
    """`system` for kernel and system logs, device tables and process lists, else `log`."""
    if _TRAINING.search(sample):
        return InputKind.LOG
    lines = [line for line in sample.split(b"\n")[:_MAX_LINES] if line.strip()]
    if lines and 2 * sum(_KERNEL_LINE.match(line) is not None for line in lines) >= len(lines):
        return InputKind.SYSTEM
    return InputKind.SYSTEM if _TABLE.search(sample[:4096]) else InputKind.LOG
