"""In a pod: answers requests, each with as many bytes as its path says, and sends datagrams back."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

PORT, DATAGRAMS = 8080, 8053
_SOME = memoryview(bytes(256 * 1024))


def main() -> None:
    threading.Thread(target=echo, daemon=True).start()
    with socket.create_server(("", PORT), backlog=1024) as listening:
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=serve, args=(connection,), daemon=True).start()


def serve(connection: socket.socket) -> None:
    """Answers whatever comes over a connection until the other side closes it."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with suppress(ConnectionError), connection, connection.makefile("rb") as asked:
        while first := asked.readline():
            while asked.readline().strip():
                pass
            size = int(first.split()[1].strip(b"/") or 2)
            head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size
            connection.sendall(head + bytes(size) if size < 1024 else head)
            left = size if size >= 1024 else 0
            while left:
                left -= connection.send(_SOME[:left])


def echo() -> None:
    """Sends every datagram back to where it came from."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("", DATAGRAMS))
        while True:
            datagrams.sendto(*datagrams.recvfrom(2048))


if __name__ == "__main__":
    main()
