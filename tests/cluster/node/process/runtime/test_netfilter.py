"""Rules and tracked connections, in the kernel of this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from shoal.cluster.node.process.runtime.netfilter import Netfilter, netfilter_socket
from shoal.cluster.node.process.runtime.netlink import LOOPBACK, Netlink
from shoal.cluster.node.process.runtime.nftables import add_elements, delete_elements
from shoal.cluster.node.process.runtime.node import Node
from shoal.cluster.node.process.runtime.service_table import (
    ENDPOINTS,
    SERVICES,
    TABLE,
    Choice,
    add_choice,
    delete_choice,
    endpoint_element,
    new_table,
    service_element,
    service_key,
)
from shoal.cluster.node.process.runtime.syscalls import CLONE_NEWNET, unshare
from tests.cluster.node.process.runtime.conftest import InNode

WEB = service_key("127.0.0.9", "UDP", 53)
TO_ONE = service_element(WEB, Choice(1))


def in_empty_network(in_node: InNode, action: Callable[[Netfilter], None]) -> None:
    def act(_: Node) -> None:
        unshare(CLONE_NEWNET)
        Netlink().bring_up(LOOPBACK)
        action(Netfilter(netfilter_socket()))

    in_node(act)


def led_to(netfilter: Netfilter, port: int) -> None:
    """Leads datagrams to 127.0.0.9:53 to a port of loopback."""
    netfilter.apply(
        [
            *new_table(),
            *add_choice(Choice(1)),
            *add_elements(TABLE, ENDPOINTS, [endpoint_element(WEB, 0, "127.0.0.1", port)]),
            *add_elements(TABLE, SERVICES, [TO_ONE]),
        ]
    )


def a_server() -> tuple[socket.socket, int]:
    server = socket.socket(type=socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))
    server.settimeout(5)
    return server, server.getsockname()[1]


def test_a_transaction_is_done_as_a_whole_or_not_at_all(in_node: InNode) -> None:
    def act(netfilter: Netfilter) -> None:
        server, port = a_server()
        led_to(netfilter, port)
        gone = service_element(service_key("127.0.0.8", "UDP", 53), Choice(1))
        with pytest.raises(FileNotFoundError):
            netfilter.apply([*delete_elements(TABLE, SERVICES, [TO_ONE]), *delete_elements(TABLE, SERVICES, [gone])])
        with socket.socket(type=socket.SOCK_DGRAM) as client, server:
            client.sendto(b"still led", ("127.0.0.9", 53))
            assert server.recv(100) == b"still led"

    in_empty_network(in_node, act)


def test_a_fault_does_not_disturb_what_is_asked_next(in_node: InNode) -> None:
    def act(netfilter: Netfilter) -> None:
        led_to(netfilter, 1)
        with pytest.raises(OSError, match=r"[Bb]usy"):
            netfilter.apply([delete_choice(Choice(1))])
        netfilter.apply([*delete_elements(TABLE, SERVICES, [TO_ONE]), delete_choice(Choice(1))])

    in_empty_network(in_node, act)


def test_a_tracked_connection_is_known_and_can_be_forgotten(in_node: InNode) -> None:
    def act(netfilter: Netfilter) -> None:
        server, port = a_server()
        led_to(netfilter, port)
        with socket.socket(type=socket.SOCK_DGRAM) as client, server:
            client.bind(("127.0.0.1", 0))
            client.sendto(b"?", ("127.0.0.9", 53))
            server.recv(100)
            (found,) = netfilter.connections()
            assert (found.protocol, found.client) == (socket.IPPROTO_UDP, client.getsockname())
            assert (found.destination, found.answering) == (("127.0.0.9", 53), ("127.0.0.1", port))

            netfilter.forget(found)
            assert list(netfilter.connections()) == []
            netfilter.forget(found)  # it may have ended by itself

    in_empty_network(in_node, act)
