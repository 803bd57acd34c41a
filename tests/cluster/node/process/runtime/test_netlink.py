from __future__ import annotations

import os
import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network

import pytest

from shoal.cluster.node.process.runtime.netlink import LOOPBACK, Netlink
from shoal.cluster.node.process.runtime.node import Node
from shoal.cluster.node.process.runtime.syscalls import CLONE_NEWNET, setns, unshare
from tests.cluster.node.process.runtime.conftest import InNode

NETWORK = IPv4Network("192.168.7.0/24")
HARDWARE = bytes.fromhex("0a5801020304")


def in_empty_network(in_node: InNode, action: Callable[[Netlink], None]) -> None:
    def act(_: Node) -> None:
        unshare(CLONE_NEWNET)
        action(Netlink())

    in_node(act)


def listens(address: str) -> bool:
    with socket.socket() as one:
        try:
            one.bind((address, 0))
        except OSError:
            return False
    return True


def reaches_itself(address: str) -> bool:
    with socket.socket() as server, socket.socket() as client:
        server.bind((address, 0))
        server.listen()
        client.settimeout(5)
        return client.connect_ex(server.getsockname()) == 0


def test_a_link_is_known_by_its_name_and_number(in_node: InNode) -> None:
    def act(netlink: Netlink) -> None:
        assert netlink.index_of("lo") == LOOPBACK
        netlink.add_bridge("b0", HARDWARE)
        assert netlink.index_of("b0") == socket.if_nametoindex("b0")

    in_empty_network(in_node, act)


def test_the_loopback_can_be_used_once_it_is_up(in_node: InNode) -> None:
    def act(netlink: Netlink) -> None:
        assert not reaches_itself("127.0.0.1")
        netlink.bring_up(LOOPBACK)
        assert reaches_itself("127.0.0.1")

    in_empty_network(in_node, act)


def test_a_link_has_the_address_that_it_is_given(in_node: InNode) -> None:
    def act(netlink: Netlink) -> None:
        netlink.add_bridge("b0", HARDWARE)
        index = netlink.index_of("b0")
        own = IPv4Address("192.168.7.9")
        netlink.add_address(index, own, NETWORK)
        assert listens("192.168.7.9")

    in_empty_network(in_node, act)


def test_every_address_of_a_network_can_be_ones_own(in_node: InNode) -> None:
    def act(netlink: Netlink) -> None:
        netlink.bring_up(LOOPBACK)
        assert not listens("10.96.3.4")
        netlink.add_local_route(IPv4Network("10.96.0.0/12"))
        assert listens("10.96.0.1")
        assert listens("10.111.255.254")
        assert not listens("10.112.0.1")

    in_empty_network(in_node, act)


def test_a_cable_leads_into_another_namespace(in_node: InNode) -> None:
    def act(netlink: Netlink) -> None:
        netlink.add_bridge("b0", HARDWARE)
        netlink.add_address(netlink.index_of("b0"), IPv4Address("192.168.7.1"), NETWORK)
        here = os.open("/proc/self/ns/net", os.O_RDONLY)
        unshare(CLONE_NEWNET)
        there = os.open("/proc/self/ns/net", os.O_RDONLY)
        other = Netlink()
        hardware = bytes.fromhex("0a58c0a80702")
        netlink.add_pair("c1", bridge=netlink.index_of("b0"), peer="eth0", hardware=hardware, namespace=there)
        index = other.index_of("eth0")
        other.bring_up(index)
        other.add_address(index, IPv4Address("192.168.7.2"), NETWORK)
        other.add_default_route(IPv4Address("192.168.7.1"))
        setns(here, CLONE_NEWNET)
        with socket.socket() as server:
            server.bind(("192.168.7.1", 0))
            server.listen()
            setns(there, CLONE_NEWNET)
            with socket.socket() as client:
                client.settimeout(5)
                client.connect(server.getsockname())
                assert client.getsockname()[0] == "192.168.7.2"
            with socket.socket() as client:
                netlink.bring_down("c1")
                client.settimeout(0.2)
                with pytest.raises(TimeoutError):
                    client.connect(server.getsockname())

    in_empty_network(in_node, act)


def test_a_cable_goes_with_one_of_its_ends(in_node: InNode) -> None:
    def act(netlink: Netlink) -> None:
        netlink.add_bridge("b0", HARDWARE)
        own = os.open("/proc/self/ns/net", os.O_RDONLY)
        netlink.add_pair("c1", bridge=netlink.index_of("b0"), peer="c2", hardware=HARDWARE, namespace=own)
        assert netlink.index_of("c2") == socket.if_nametoindex("c2")
        netlink.delete("c1")
        with pytest.raises(OSError, match="No such device"):
            netlink.index_of("c2")

    in_empty_network(in_node, act)


def test_a_fault_has_its_number_and_words(in_node: InNode) -> None:
    def act(netlink: Netlink) -> None:
        netlink.add_bridge("b0", HARDWARE)
        with pytest.raises(FileExistsError):
            netlink.add_bridge("b0", HARDWARE)
        with pytest.raises(OSError, match=r"[Nn]exthop has invalid gateway|unreachable|down"):
            netlink.add_default_route(IPv4Address("203.0.113.1"))
        assert netlink.index_of("b0") > 0, "a fault does not disturb what is asked next"

    in_empty_network(in_node, act)
