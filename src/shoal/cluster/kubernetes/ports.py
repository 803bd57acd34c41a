"""A TCP port that is ours before, between and after the processes that listen on it.

Choosing a free port and handing over its number is a race, and so is starting a killed server again on its old port.
Here a socket stays bound to the port without listening. With ``SO_REUSEPORT`` on both sides a child may listen there
too; nobody who does not set it can, nor can anyone who reserves a port this way.
"""

from __future__ import annotations

import errno
import socket
from types import TracebackType


class PortTaken(OSError):
    """The port that was asked for belongs to another process."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        self.host = host
        self.port = port
        super().__init__(
            f"port {port} of {host} cannot be used ({reason}): stop what listens there, or choose another port"
        )


class ReservedPort:
    """Holds one port until closed; ``number`` is what a child listens on with ``SO_REUSEPORT``."""

    def __init__(self, host: str, port: int = 0) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as claim:
            # Listening is what makes the claim exclusive; the address option lets it pass connections that still linger
            # from the server that had the port before.
            claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                claim.bind((host, port))
                claim.listen(1)
            except OSError as error:
                if error.errno == errno.EADDRNOTAVAIL:
                    raise OSError(f"{host} is no address of this machine: choose another one to bind to") from error
                raise PortTaken(host, port, error.strerror or str(error)) from error
            claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            self.number: int = claim.getsockname()[1]
            self._holder = socket.socket(family, socket.SOCK_STREAM)
            self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            self._holder.bind((host, self.number))

    def close(self) -> None:
        """Gives the port back."""
        self._holder.close()

    def __enter__(self) -> ReservedPort:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
