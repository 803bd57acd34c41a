"""Connections to pods from their node, and what keeps them from being made, in the words in which users know it."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Awaitable, Callable

Dial = Callable[[str, int], Awaitable[socket.socket]]
"""A connected socket to a host and port, as seen from the node. Raises Unreachable."""
NewSocket = Callable[[], Awaitable[socket.socket]]
"""A socket in the node's network that is not connected yet, and does not block."""

_WORDS = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETUNREACH: "network is unreachable",
    errno.ETIMEDOUT: "connection timed out",
    errno.ECONNRESET: "connection reset by peer",
}


class Unreachable(Exception):
    """No connection came about."""


def dialing(new_socket: NewSocket) -> Dial:
    """Connects sockets that are made where pods can be reached from."""

    async def dial(host: str, port: int) -> socket.socket:
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, family=socket.AF_INET, type=socket.SOCK_STREAM)
        except OSError:
            raise Unreachable(f"dial tcp: lookup {host}: no such host") from None
        connection = await new_socket()
        try:
            await loop.sock_connect(connection, found[0][4])
        except OSError as error:
            connection.close()
            raise Unreachable(f"dial tcp {where}: connect: {words_of(error)}") from None
        except BaseException:
            connection.close()
            raise
        return connection

    return dial


async def machine_socket() -> socket.socket:
    """A socket in the machine's own network."""
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.setblocking(False)
    return connection


def words_of(error: OSError) -> str:
    """What the system says, as it is said elsewhere in the cluster."""
    number = error.errno or 0
    return _WORDS.get(number) or (os.strerror(number).lower() if number else str(error))
