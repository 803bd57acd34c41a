from __future__ import annotations

import socket
from pathlib import Path

import pytest

from shoal.cluster.node.process.runtime.networks import NodeNetwork
from shoal.cluster.node.process.runtime.node import Node
from shoal.cluster.node.process.runtime.refusals import Refused
from tests.cluster.node.process.runtime.conftest import InNode
from tests.support.waiting import wait_until


def network_of(node: Node) -> NodeNetwork:
    assert node.network is not None, node.facts.shortfalls
    return node.network


def own_namespace() -> int:
    return Path("/proc/self/ns/net").stat().st_ino


def listen(address: str, port: int) -> socket.socket:
    made = socket.socket()
    made.bind((address, port))
    made.listen()
    return made


def call(address: str, port: int, *, within: float = 5.0) -> socket.socket:
    made = socket.socket()
    made.settimeout(within)
    try:
        made.connect((address, port))
    except BaseException:
        made.close()
        raise
    return made


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def links() -> set[str]:
    return {line.split(":")[0].strip() for line in Path("/proc/self/net/dev").read_text().splitlines() if ":" in line}


def test_pods_reach_each_other_and_the_node_by_address(in_node: InNode) -> None:
    def act(node: Node) -> None:
        network = network_of(node)
        pods = {address: network.make(address, {}) for address in ("10.88.0.2", "10.88.3.4")}
        with pods["10.88.0.2"].inside():
            server = listen("0.0.0.0", 80)
        with (
            pods["10.88.3.4"].inside(),
            call("10.88.0.2", 80) as connected,
        ):
            assert connected.getsockname()[0] == "10.88.3.4"
        with call("10.88.0.2", 80) as connected:
            assert connected.getsockname()[0] == "10.88.0.1"
        server.close()
        dns = listen("10.88.0.1", 53)
        with pods["10.88.3.4"].inside():
            call("10.88.0.1", 53).close()
        dns.close()

    in_node(act)


def test_a_pod_reaches_services_that_the_node_listens_for(in_node: InNode) -> None:
    def act(node: Node) -> None:
        network = network_of(node)
        pod = network.make("10.88.0.2", {})
        service = listen("10.96.44.55", 443)
        with (
            pod.inside(),
            call("10.96.44.55", 443) as connected,
        ):
            assert connected.getpeername() == ("10.96.44.55", 443)
        service.close()

    in_node(act)


def test_a_pod_reaches_neither_the_machine_nor_the_world(in_node: InNode) -> None:
    outside = listen("127.0.0.1", 0)
    port = outside.getsockname()[1]

    def act(node: Node) -> None:
        network = network_of(node)
        pod = network.make("10.88.0.2", {})
        with pod.inside():
            assert "eth0" in links()
            assert "shoal0" not in links()
            with pytest.raises(ConnectionRefusedError):
                call("127.0.0.1", port)
            with pytest.raises(OSError, match="Network is unreachable"):  # at once: nobody has to wait for it
                call("203.0.113.1", 80)

    with outside:
        in_node(act)


def test_everybody_in_a_pod_may_listen_on_low_ports(in_node: InNode) -> None:
    def act(node: Node) -> None:
        with network_of(node).make("10.88.0.2", {}).inside():
            assert Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text() == "0\n"
        assert Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text() == "0\n"

    in_node(act)


def test_an_address_is_free_as_soon_as_its_pod_is_gone(in_node: InNode) -> None:
    def act(node: Node) -> None:
        network = network_of(node)
        kept: list[socket.socket] = []
        for _ in range(5):
            pod = network.make("10.88.0.2", {})
            with pod.inside():
                kept.append(listen("10.88.0.2", 80))
            call("10.88.0.2", 80, within=0.8).close()  # less than it takes until a lost packet is sent again
            pod.close()  # while somebody keeps a socket of it, and so its network

    in_node(act)


def test_nothing_stays_of_a_network_that_nobody_uses(in_node: InNode) -> None:
    def act(node: Node) -> None:
        network = network_of(node)
        before = links()
        files = open_files()
        pods = [network.make(f"10.88.0.{number}", {}) for number in range(2, 12)]
        assert len(links()) == len(before) + 10
        for pod in pods:
            pod.close()
        wait_until(lambda: links() == before, "the pods' links to go")
        assert open_files() == files

    in_node(act)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        pytest.param("10.88.0.1", "not one of the addresses for pods", id="the node's own"),
        pytest.param("10.88.0.0", "not one of the addresses for pods", id="the network's"),
        pytest.param("10.88.255.255", "not one of the addresses for pods", id="everybody's"),
        pytest.param("192.168.0.7", "not one of the addresses for pods", id="of another network"),
        pytest.param("pod", "not an IPv4 address", id="no address"),
    ],
)
def test_an_address_that_is_none_for_pods_is_refused(in_node: InNode, address: str, why: str) -> None:
    def act(node: Node) -> None:
        with pytest.raises(Refused, match=why):
            network_of(node).make(address, {})

    in_node(act)


def test_a_refused_setting_leaves_the_node_where_it_was(in_node: InNode) -> None:
    def act(node: Node) -> None:
        here = own_namespace()
        before = open_files()
        for sysctl in ("net.ipv4.no_such_thing", "net..x", "net.ipv4/../../kernel.hostname", "net.ipv4.tcp_rmem"):
            with pytest.raises(Refused, match=r"sysctl"):
                network_of(node).make("10.88.0.2", {sysctl: "no number"})
        assert own_namespace() == here
        assert open_files() == before
        network_of(node).make("10.88.0.2", {"net.ipv4.conf.eth0.forwarding": "1", "net/ipv4/tcp_fin_timeout": "7"})

    in_node(act)
