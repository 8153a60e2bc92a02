from collections.abc import Callable

from fsdpclassify.records import Event

Events = Callable[..., list[Event]]

IBSTAT = "".join(
    f"CA 'mlx5_{n}'\n\tPort 1:\n\t\tState: {state}\n\t\tPhysical state: LinkUp\n\t\tRate: {rate}\n"
    for n, (state, rate) in enumerate([("Active", 400), ("Active", 400), ("Active", 200), ("Down", 400)])
)


def test_a_port_that_is_down_and_one_slower_than_its_siblings(events: Events) -> None:
    found = events(IBSTAT)
    assert [(e.name, e.line.number) for e in found] == [("port", 18), ("port", 15)]
    assert found[0].detail == "the port of mlx5_3 is not up (Down)"
    assert found[1].detail == "mlx5_2 runs at 200 Gb/s, most of its siblings at 400"


def test_two_ports_of_unlike_rate_are_no_news(events: Events) -> None:
    assert events("CA 'mlx5_0'\n\tState: Active\n\tRate: 400\nCA 'mlx5_1'\n\tState: Active\n\tRate: 100\n") == []


def _reading(downed: int, wait: int = 99, port: int = 1) -> str:
    return (
        f"# Port counters: Lid 31 port {port} (CapMask: 0x5300)\nPortSelect:......................{port}\n"
        f"LinkDownedCounter:...............{downed}\nPortXmitWait:....................{wait}\n"
    )


def test_growth_between_two_readings_of_one_port_counts(events: Events) -> None:
    (found,) = events(_reading(3) + _reading(9, port=2) + _reading(5) + _reading(9, port=2))
    assert (found.name, found.line.number) == ("counter", 11)
    assert found.detail == "the link went down: 2 times between two readings"


def test_a_lone_total_is_told_as_one(events: Events) -> None:
    (found,) = events(_reading(3))
    assert found.detail == "the link went down: 3 times since the boot, or before"
    assert events(_reading(0)) == []


def test_counters_of_ethtool_and_of_files(events: Events) -> None:
    (found,) = events("NIC statistics:\n     rx_packets: 11820\n     rx_discards_phy: 77\n     tx_bytes: 5\n")
    assert found.line.number == 3
    path = "/sys/class/infiniband/mlx5_{}/ports/1/hw_counters/{}:{}\n"
    files = path.format(0, "local_ack_timeout_err", 4) + path.format(1, "local_ack_timeout_err", 0)
    (found,) = events(files)
    assert (found.name, found.line.number) == ("counter", 1)
