"""Where the agent of a node is found, and how it is reached.

An agent speaks the kubelet's API. It is found as Kubernetes finds it, by the addresses and the port in the Node's
status, over HTTPS with a client certificate of the cluster; or, on this machine, on the Unix socket that an annotation
of the Node names, which may serve any number of nodes.

Agents often have certificates that they signed themselves, and kube-apiserver takes those unless it is told otherwise.
So do we, but an agent that has once shown a certificate of the cluster's authority must go on to do so.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from shoal.cluster.apiserver.access.credentials import Credentials
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.reader import Reader
from shoal.cluster.apiserver.refusals import Refused, not_found, refused
from shoal.cluster.keyring import KUBELET_CLIENT, MASTERS
from shoal.cluster.networks import is_of_cluster
from shoal.kube.connection import Connection
from shoal.kube.credentials import CredentialsError, client_certificate
from shoal.kube.errors import ApiError, ConnectionFault
from shoal.kube.http import HttpTransport
from shoal.kube.tls import ClientCertificate, Tls
from shoal.kube.transport import Request, Response, Stream, WebSocket

SOCKET_ANNOTATION = "shoal.dev/agent-socket"
"""On a Node: the path of the Unix socket on which its agent serves the kubelet's API in plain HTTP."""

NODES = "nodes"
_PREFERRED = ("InternalIP", "Hostname", "InternalDNS", "ExternalIP", "ExternalDNS")
_KUBELET_PORT = 10250
_CONNECTS_WITHIN = 10.0
_MOST_ENDPOINTS = 1024

Given = TypeVar("Given")


class Agent:
    """The agent of one node. Faults of the connection are ConnectionFaults, as from any transport."""

    def __init__(self, node: str, endpoint: Endpoint) -> None:
        self.node = node
        self._endpoint = endpoint

    @property
    def server(self) -> str:
        """Where it is: ``https://10.0.0.7:10250`` or ``unix:///run/agent.sock``."""
        return self._endpoint.server

    @property
    def is_local(self) -> bool:
        """Whether it is reached over a socket on this machine."""
        return self._endpoint.is_local

    async def send(self, request: Request) -> Response:
        """One request and its whole answer."""
        with self._endpoint:
            return await self._endpoint.reach(lambda transport: transport.send(request))

    def stream(self, request: Request, *, any_certificate: bool = False) -> AbstractAsyncContextManager[Stream]:
        """One request whose answer is read as it comes."""
        return self._opened(lambda transport: transport.stream(request), any_certificate=any_certificate)

    def websocket(self, request: Request, protocols: tuple[str, ...]) -> AbstractAsyncContextManager[WebSocket]:
        """A WebSocket; an answer other than an upgrade is raised as the ApiError that it means."""
        return self._opened(lambda transport: transport.websocket(request, protocols), any_certificate=False)

    @asynccontextmanager
    async def _opened(
        self, opening: Callable[[HttpTransport], AbstractAsyncContextManager[Given]], *, any_certificate: bool
    ) -> AsyncIterator[Given]:
        with self._endpoint:
            async with AsyncExitStack() as stack:
                yield await self._endpoint.reach(
                    lambda transport: stack.enter_async_context(opening(transport)), any_certificate=any_certificate
                )


class Endpoint:
    """An address with the connections that are kept to it; as a context it counts that it is in use."""

    def __init__(self, server: str, connection: Callable[[bool], Connection]) -> None:
        """``connection`` is told whether any certificate will do."""
        self.server = server
        self.is_local = server.startswith("unix:")
        self.uses = 0
        self._connection = connection
        self._transports: dict[bool, HttpTransport] = {}
        self._is_proven = False
        self._is_foreign = False

    def __enter__(self) -> None:
        self.uses += 1

    def __exit__(self, *_: object) -> None:
        self.uses -= 1

    async def reach(
        self, attempt: Callable[[HttpTransport], Awaitable[Given]], *, any_certificate: bool = False
    ) -> Given:
        """What the attempt gives; one that only the certificate stood against is made again without asking for it."""
        if self.is_local or any_certificate or self._is_foreign:
            return await attempt(self._transport(True))
        try:
            given = await attempt(self._transport(False))
        except ApiError:
            self._is_proven = True
            raise
        except ConnectionFault as fault:
            if self._is_proven or not fault.lasting or isinstance(fault, CredentialsError):
                raise
        else:
            self._is_proven = True
            return given
        self._is_foreign = True
        return await attempt(self._transport(True))

    async def close(self) -> None:
        """Closes all connections."""
        for transport in self._transports.values():
            await transport.close()

    def _transport(self, any_certificate: bool) -> HttpTransport:
        if any_certificate not in self._transports:
            # Nodes are in a network of our own: whatever proxy the environment names is not for them.
            self._transports[any_certificate] = HttpTransport(
                self._connection(any_certificate),
                connect_timeout=_CONNECTS_WITHIN,
                environ={},
                may_connect=lambda address: not is_of_cluster(address),
            )
        return self._transports[any_certificate]


class Agents:
    """Finds agents by the names of their nodes, and keeps connections to them.

    ``sockets`` is the one folder in which agents' sockets are believed in; None believes in none. Whoever may change
    Nodes could otherwise have the server talk to any socket of this machine, its own among them.
    """

    def __init__(self, state: Reader, credentials: Credentials, *, sockets: Path | None, now: datetime) -> None:
        self._state = state
        self._sockets = sockets
        self._authority = credentials.authority
        pair = credentials.client(KUBELET_CLIENT, [MASTERS], now=now)
        self._signing = client_certificate(ClientCertificate(pair.certificate, pair.key))
        self._endpoints: dict[str, Endpoint] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def agent(self, node: str, *, named_as: str = NODES) -> Agent:
        """A node's agent; raises Refused where the node is missing (as a resource of this name) or tells no address."""
        found = self._state.get(NODES, "", node)
        if found is None:
            raise not_found(named_as, "", node)
        return Agent(node, self._endpoint(self._server(found)))

    async def close(self) -> None:
        """Closes all connections."""
        for endpoint in self._endpoints.values():
            await endpoint.close()
        self._endpoints.clear()
        if self._closing:
            await asyncio.wait(self._closing)

    def _server(self, node: Object) -> str:
        path = (node["metadata"].get("annotations") or {}).get(SOCKET_ANNOTATION)
        if path:
            return f"unix://{self._believed(path, node['metadata']['name'])}"
        status = node.get("status") or {}
        host = preferred_address(status.get("addresses") or ())
        port = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint", {}).get("Port") or _KUBELET_PORT
        return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"

    def _believed(self, path: str, node: str) -> str:
        real = Path(os.path.realpath(path))
        if self._sockets is None or real.parent != Path(os.path.realpath(self._sockets)):
            where = f"must be in {self._sockets}" if self._sockets else "is not taken here"
            raise failed(f'the socket "{path}" of node "{node}" {where}: correct the annotation {SOCKET_ANNOTATION}')
        return str(real)

    def _endpoint(self, server: str) -> Endpoint:
        endpoint = self._endpoints.pop(server, None)
        if endpoint is None:
            self._make_room()
            endpoint = Endpoint(server, lambda any_certificate: self._connection(server, any_certificate))
        # The last one asked for is the last one to go.
        self._endpoints[server] = endpoint
        return endpoint

    def _make_room(self) -> None:
        if len(self._endpoints) < _MOST_ENDPOINTS:
            return
        idle = next((server for server, endpoint in self._endpoints.items() if endpoint.uses == 0), None)
        if idle is not None:
            task = asyncio.create_task(self._endpoints.pop(idle).close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _connection(self, server: str, any_certificate: bool) -> Connection:
        if server.startswith("unix:"):
            return Connection(server=server, compression=False)
        tls = Tls(insecure=True) if any_certificate else Tls(authorities=self._authority)
        return Connection(server=server, tls=tls, credentials=self._signing, compression=False)


def preferred_address(addresses: list[Object] | tuple[Object, ...]) -> str:
    """The address by which a node's agent is called: the first of the best type; raises Refused where there is none."""
    for wanted in _PREFERRED:
        for address in addresses:
            if address.get("type") == wanted:
                return str(address["address"])
    known = " ".join(f"{{{address.get('type', '')} {address.get('address', '')}}}" for address in addresses)
    raise failed(f"no preferred addresses found; known addresses: [{known}]")


def failed(message: str) -> Refused:
    """500 without a reason, as Kubernetes says what it has no words of its own for."""
    return refused(500, "", message)


def unreachable(fault: ConnectionFault) -> Refused:
    """500: the agent cannot be talked to."""
    return failed(f"error dialing backend: {fault}")
