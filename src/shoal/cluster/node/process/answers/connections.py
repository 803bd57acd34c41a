"""Connections from the API server to ports of pods, which begin as an HTTP upgrade and then are the pod's own bytes.

Pods are dialled at their addresses from the node's own network, as a control plane does it that is part of a cluster's
network. Port forwarding is something else: it begins inside the pod, at its loopback.
"""

from __future__ import annotations

import asyncio
import socket

from aiohttp import web

from shoal.cluster.node.kubelet import Refused
from shoal.cluster.node.kubelet.wires import BareWire, accept_bare
from shoal.cluster.node.process.answers.forwarding import exchange
from shoal.cluster.node.process.answers.residents import Runtime
from shoal.cluster.node.process.client import RuntimeFault
from shoal.cluster.node.process.pods.reach import Unreachable, dialing
from shoal.cluster.node.process.runtime.protocol import SocketSpec

UPGRADE = "tcp"
_CONNECTS_WITHIN = 10.0


async def connect_to_pod(
    request: web.Request, runtime: Runtime, *, pod: str, address: str | None
) -> web.StreamResponse:
    """Connects the client to the port that its query names; raises Refused.

    ``pod`` is ``namespace/name``; ``address`` is None where the pod does not run, and empty where it has no address
    but the machine's.
    """
    if request.headers.get("Upgrade", "").lower() != UPGRADE:
        raise Refused(400, f"Upgrade request required: upgrade to {UPGRADE}")
    port = request.query.get("port", "")
    if not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise Refused(400, f'unable to parse "{port}" as a port')
    if address is None:
        raise Refused(503, f"pod {pod} is not running")
    if not address:
        raise Refused(
            503,
            f"pod {pod} uses the network of the machine, to which the API server does not connect: "
            "use port forwarding, or start Shoal with a network for pods",
        )
    connection = await dialled(runtime, address, int(port))
    with connection:
        wire = await accept_bare(request, {"Upgrade": UPGRADE})
        await exchange(_Client(int(port), wire), connection)
        return wire.response


async def dialled(runtime: Runtime, address: str, port: int) -> socket.socket:
    """A connection to an address in the network of the pods; raises Refused where there is none in time."""
    dial = dialing(lambda: runtime.socket(SocketSpec()))
    try:
        async with asyncio.timeout(_CONNECTS_WITHIN):
            connection = await dial(address, port)
    except TimeoutError:
        raise Refused(503, f"dial tcp {address}:{port}: i/o timeout") from None
    except (Unreachable, RuntimeFault) as problem:
        raise Refused(503, str(problem)) from None
    # The bytes were collected on their way here: to wait for more would add a delay to every small request.
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class _Client:
    """The API server's end, as ``exchange`` takes it."""

    can_half_close = False

    def __init__(self, port: int, wire: BareWire) -> None:
        self.port = port
        self._wire = wire
        self._pieces = wire.pieces()

    async def read(self) -> bytes:
        return await anext(self._pieces, b"")

    async def write(self, data: bytes) -> None:
        await self._wire.send(data)

    async def close(self) -> None:
        """The connection is closed as soon as the request is over."""

    async def fail(self, message: str) -> None:
        """As with ``close``: a connection that broke ends."""
