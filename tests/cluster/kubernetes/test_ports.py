from __future__ import annotations

import socket
from contextlib import closing

import pytest

from shoal.cluster.kubernetes.ports import PortTaken, ReservedPort


def listener(port: int, *, shared: bool) -> socket.socket:
    return socket.create_server(("127.0.0.1", port), reuse_port=shared)


def test_a_reserved_port_is_free_for_the_child_that_shares_it() -> None:
    with (
        ReservedPort("127.0.0.1") as port,
        closing(listener(port.number, shared=True)) as server,
        socket.create_connection(("127.0.0.1", port.number)) as client,
    ):
        accepted, _ = server.accept()
        with accepted:
            accepted.sendall(b"here")
            assert client.recv(4) == b"here"


def test_nobody_else_can_listen_on_a_reserved_port() -> None:
    with ReservedPort("127.0.0.1") as port, pytest.raises(OSError, match="in use"):
        listener(port.number, shared=False).close()


def test_two_cannot_reserve_the_same_port() -> None:
    with ReservedPort("127.0.0.1") as port, pytest.raises(PortTaken, match=f"port {port.number} of 127.0.0.1"):
        ReservedPort("127.0.0.1", port.number)


def test_a_port_with_a_listener_that_would_share_it_is_refused() -> None:
    with ReservedPort("127.0.0.1") as port:
        number = port.number
    with closing(listener(number, shared=True)), pytest.raises(PortTaken):
        ReservedPort("127.0.0.1", number)


def test_a_reserved_port_without_a_listener_refuses_connections() -> None:
    with ReservedPort("127.0.0.1") as port, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port.number))


def test_a_port_can_be_reserved_again_while_old_connections_linger() -> None:
    with ReservedPort("127.0.0.1") as port:
        server = listener(port.number, shared=True)
        with socket.create_connection(("127.0.0.1", port.number)):
            accepted, _ = server.accept()
            accepted.close()  # the side that closes first is the one whose port lingers
        server.close()
        number = port.number
    with ReservedPort("127.0.0.1", number) as again:
        assert again.number == number


def test_an_address_that_is_not_ours_is_refused() -> None:
    with pytest.raises(OSError, match=r"192\.0\.2\.1 is no address of this machine"):
        ReservedPort("192.0.2.1")
