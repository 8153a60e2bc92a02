from collections.abc import Callable

from fsdpclassify.records import Event, EventKind

Events = Callable[..., list[Event]]


def _facts(found: list[Event]) -> list[tuple[EventKind, str | None, int | None, int]]:
    return [(e.kind, e.name, e.local_rank, e.line.number) for e in found]


PLAIN = """+-----------------------------------------------------------------------------+
| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2     |
|   0  NVIDIA A100-SXM4    On   | 00000000:17:00.0 Off |                    0 |
| N/A   41C    P0    95W / 400W |  70112MiB / 81920MiB |     99%      Default |
|   1  NVIDIA A100-SXM4    On   | 00000000:4B:00.0 Off |                    0 |
| N/A   34C    P0    61W / 400W |  70112MiB / 81920MiB |      0%      Default |
+-----------------------------------------------------------------------------+
"""


def test_the_plain_table_of_nvidia_smi(events: Events) -> None:
    assert _facts(events(PLAIN)) == [(EventKind.MEMORY, "idle", 1, 6)]


ROCM = """Device  Node  IDs              Temp    Power   SCLK    MCLK    Fan  Perf  PwrCap  VRAM%  GPU%
              (DID,     GUID)  (Edge)  (Avg)
0       4     0x74a1,   11     44.0C   140.0W  132Mhz  900Mhz  0%   auto  750.0W  71%    100%
1       5     0x74a1,   12     41.0C   139.0W  132Mhz  900Mhz  0%   auto  750.0W  0%     0%
2       6     0x74a1,   13     43.0C   141.0W  132Mhz  900Mhz  0%   auto  750.0W  72%    98%
"""


def test_the_table_of_rocm_smi(events: Events) -> None:
    assert _facts(events(ROCM)) == [(EventKind.MEMORY, "idle", 1, 4), (EventKind.MEMORY, "gpu_empty", 1, 4)]


def test_an_idle_machine_is_neither_empty_nor_full(events: Events) -> None:
    quiet = ROCM.replace("71%    100%", "1%     0%").replace("72%    98%", "0%     0%")
    assert events(quiet) == []
