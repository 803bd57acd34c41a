"""TCP connections that the server makes from the machine's own network, and the addresses to which it makes none.

The check is made on the address that is about to be dialled: a name that resolved to another one a moment ago, or an
address in an unusual notation, makes no difference.
"""

from __future__ import annotations

import socket
from typing import Any

from shoal.cluster.networks import is_of_cluster, is_special


def outbound_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket for an entry of ``getaddrinfo``; raises OSError where that is the address of a pod or a Service."""
    host = str(address[4][0])
    if is_of_cluster(host):
        raise OSError(f"{host} is an address of a pod or a Service, and is not dialled from the machine's network")
    return socket.socket(*address[:3])


def proxied_socket(address: tuple[Any, ...]) -> socket.socket:
    """The same for requests of users; raises OSError for addresses of this machine and its link, too."""
    host = str(address[4][0])
    if is_special(host):
        raise OSError("address not allowed")
    return outbound_socket(address)
