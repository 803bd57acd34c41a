"""This machine as a pod must not see it: what listens on it, and under which addresses."""

from __future__ import annotations

import secrets
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

HOSTS = ("", "127.0.0.1")


class Listening:
    """Servers of this machine, by TCP, by UDP and on a Unix socket without a file; they answer nobody."""

    def __init__(self, stack: ExitStack) -> None:
        self.abstract = f"shoal-{secrets.token_hex(8)}"
        """The name of the Unix socket."""
        self._servers = [stack.enter_context(socket.create_server((host, 0))) for host in HOSTS]
        unnamed = stack.enter_context(socket.socket(socket.AF_UNIX))
        unnamed.bind("\0" + self.abstract)
        unnamed.listen()
        self._datagrams = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in HOSTS]
        for host, port, one in zip(HOSTS, self.ports, self._datagrams, strict=True):
            one.bind((host, port))

    @property
    def ports(self) -> list[int]:
        """On the first it listens at all addresses, on the second at the loopback alone; both for TCP and UDP."""
        return [server.getsockname()[1] for server in self._servers]

    def were_reached(self) -> bool:
        """Whether anybody came to one of the ports."""
        return bool(select.select([*self._servers, *self._datagrams], [], [], 0)[0])


@contextmanager
def listening() -> Iterator[Listening]:
    with ExitStack() as stack:
        yield Listening(stack)


def own_addresses() -> list[str]:
    """Under which this machine could be reached, if it could; the last one is the best known."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))  # an address that is nobody's; a datagram socket sends nothing for this
        except OSError:
            return ["127.0.0.1", "10.88.0.1"]
        return ["127.0.0.1", "10.88.0.1", asking.getsockname()[0]]
