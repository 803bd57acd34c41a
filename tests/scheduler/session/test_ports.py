"""Two pods on one node never have the same port of the host."""

from __future__ import annotations

import pytest

from shoal.scheduler.session.ports import HostPort, PortIndex


@pytest.mark.parametrize(
    ("taken", "wanted", "clash"),
    [
        pytest.param(("TCP", 80, ""), ("TCP", 80, ""), True, id="the same"),
        pytest.param(("TCP", 80, ""), ("UDP", 80, ""), False, id="another protocol"),
        pytest.param(("", 80, ""), ("TCP", 80, ""), True, id="TCP where none is said"),
        pytest.param(("TCP", 80, ""), ("TCP", 81, ""), False, id="another port"),
        pytest.param(("TCP", 80, "10.0.0.1"), ("TCP", 80, "10.0.0.2"), False, id="each on its own address"),
        pytest.param(("TCP", 80, "10.0.0.1"), ("TCP", 80, "10.0.0.1"), True, id="on the same address"),
        pytest.param(("TCP", 80, "0.0.0.0"), ("TCP", 80, "10.0.0.2"), True, id="taken on every address"),
        pytest.param(("TCP", 80, "10.0.0.2"), ("TCP", 80, ""), True, id="wanted on every address"),
    ],
)
def test_ports_clash_as_on_a_real_host(taken: HostPort, wanted: HostPort, clash: bool) -> None:
    ports = PortIndex(3)
    ports.add([taken], 1)
    assert ports.taken([wanted]).tolist() == [False, clash, False]


def test_a_port_is_free_again_when_the_last_pod_that_had_it_is_gone() -> None:
    ports = PortIndex(1)
    port = ("TCP", 80, "")
    ports.add([port], 0)
    ports.add([port], 0)
    ports.add([port], 0, -1)
    assert ports.taken([port]).all()
    ports.add([port], 0, -1)
    assert not ports.taken([port]).any()
