"""nodes/proxy, pods/proxy and services/proxy: HTTP passed on to an agent, a pod, or a pod behind a Service.

Pods are reached by the agents of their nodes alone. What the server dials itself is another port of a node that is a
machine of its own, where its address is neither one of this machine nor of the cluster.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import AsyncExitStack
from urllib.parse import quote

import aiohttp
from yarl import URL

from shoal.cluster.apiserver.calls import Reply
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.nodes.agents import NODES, Agents, preferred_address, unreachable
from shoal.cluster.apiserver.nodes.forwarder import (
    KEPT,
    Body,
    Forwarder,
    Target,
    check_no_upgrade,
    redirect,
    rest_of_path,
    streaming,
)
from shoal.cluster.apiserver.nodes.pod_connections import PodConnector, PodDialer, PodHost
from shoal.cluster.apiserver.nodes.service_backends import ServiceBackends
from shoal.cluster.apiserver.outbound import proxied_socket
from shoal.cluster.apiserver.reader import Reader
from shoal.cluster.apiserver.refusals import bad_request, not_found, unavailable
from shoal.cluster.apiserver.verbs.asked import Asked
from shoal.cluster.networks import is_of_cluster, is_special
from shoal.kube.errors import ConnectionFault
from shoal.kube.tls import Tls, client_context
from shoal.kube.transport import Request

_DEFAULT_PORTS = {"https": 443}


class Proxies:
    """Answers requests on the three subresources."""

    def __init__(self, state: Reader, agents: Agents, dialer: PodDialer, backends: ServiceBackends) -> None:
        self._state = state
        self._agents = agents
        self._backends = backends
        self._to_pods = Forwarder(lambda: PodConnector(dialer), _any_certificate)
        self._to_nodes = Forwarder(
            lambda: aiohttp.TCPConnector(limit=0, socket_factory=proxied_socket), _any_certificate
        )

    async def node(self, asked: Asked) -> Reply:
        """A request to a node's agent, or to another port of the node."""
        scheme, name, port = _parts(asked.name, "node")
        node = self._state.get(NODES, "", name)
        if node is None:
            raise not_found(NODES, "", name)
        agent = self._agents.agent(name)
        if port and not agent.server.endswith(f":{port}"):
            if agent.is_local:
                raise unavailable(f'node "{name}" has no ports but that of its agent: leave the port out')
            host = preferred_address((node.get("status") or {}).get("addresses") or ())
            await _check_address(host)
            return await self._to_nodes.forward(asked, _target(scheme, host, port))
        if not agent.is_local:
            await _check_address(URL(agent.server).host or "")
        path = rest_of_path(asked)
        if not path:
            return redirect(asked.call)
        check_no_upgrade(asked.call)
        call = asked.call
        query = tuple((key, value) for key, values in call.query.items() for value in values)
        request = Request(
            method=call.method,
            path=quote(path, safe=KEPT),
            # A socket may serve any number of nodes: it is told which one is meant.
            query=(*query, ("node", name)) if agent.is_local and "node" not in call.query else query,
            body=call.body or None,
            content_type=call.headers.get("content-type", ""),
            accept=call.headers.get("accept", "*/*"),
        )
        async with AsyncExitStack() as stack:
            try:
                stream = await stack.enter_async_context(agent.stream(request))
            except ConnectionFault as fault:
                raise unreachable(fault) from fault
            headers = dict(stream.headers)
            return streaming(stream.status, headers, Body(stream.chunks().__anext__, stack.pop_all()))

    async def pod(self, asked: Asked) -> Reply:
        """A request to a port of a pod: the one named, or the first that it declares."""
        scheme, name, port = _parts(asked.name, "pod")
        pod = self._state.get("pods", asked.namespace, name)
        if pod is None:
            raise not_found("pods", "", name)
        if not port:
            declared = [one for container in pod["spec"]["containers"] for one in container.get("ports") or ()]
            port = str(declared[0]["containerPort"]) if declared else ""
        return await self._to_pods.forward(asked, _pod_target(scheme, pod, port))

    async def service(self, asked: Asked) -> Reply:
        """A request to one of a Service's pods."""
        scheme, name, port = _parts(asked.name, "service")
        service = self._state.get("services", asked.namespace, name)
        if service is None:
            raise not_found("services", "", name)
        if port.isdecimal():
            port = _port_name(service, int(port))
        chosen = self._backends.chosen(asked.namespace, name, port)
        if chosen is None:
            raise unavailable(f'no endpoints available for service "{asked.name}"')
        pod, number = chosen
        return await self._to_pods.forward(asked, _pod_target(scheme, pod, str(number)))

    async def close(self) -> None:
        """Closes all connections."""
        await self._to_pods.close()
        await self._to_nodes.close()


def _parts(name: str, what: str) -> tuple[str, str, str]:
    """Scheme, name and port of ``name``, ``name:port`` or ``scheme:name:port``."""
    match name.split(":"):
        case [only] if only:
            return "", only, ""
        case [only, port] if only:
            return "", only, port
        case [("" | "http" | "https") as scheme, only, port] if only:
            return scheme, only, port
    raise bad_request(f'invalid {what} request "{name}"')


def _pod_target(scheme: str, pod: Object, port: str) -> Target:
    """A port of a pod, which is called by its address; raises Refused where that is none that a pod can have."""
    addresses = (pod.get("status") or {}).get("podIPs") or ()
    address = str(addresses[0]["ip"]) if addresses else ""
    if address and _is_refused(address):
        raise bad_request("address not allowed")
    shown = _target(scheme, address or pod["metadata"]["name"], port)
    url = URL.build(scheme=shown.url.scheme, host=str(PodHost.of(pod)), port=shown.url.port, encoded=True)
    return Target(url=url, host=shown.host, server_name=shown.server_name)


def _target(scheme: str, host: str, port: str) -> Target:
    scheme = scheme or "http"
    if port and not (port.isdecimal() and 0 < int(port) < 1 << 16):
        raise bad_request(f'invalid port "{port}"')
    number = int(port) if port else _DEFAULT_PORTS.get(scheme, 80)
    shown = f"[{host}]" if ":" in host else host
    return Target(url=URL(f"{scheme}://{shown}:{number}"), host=f"{shown}:{port}" if port else shown, server_name=host)


async def _check_address(host: str) -> None:
    """Refuses what leads back to this machine or no further than its link, by whatever name.

    The connection is checked again when it is made: this is for the words.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM) if host else []
    except OSError as error:
        raise bad_request(f"lookup {host}: {error.strerror}") from None
    addresses = [str(entry[4][0]) for entry in found]
    if not addresses or any(is_special(address) or is_of_cluster(address) for address in addresses):
        raise bad_request("address not allowed")


def _is_refused(address: str) -> bool:
    try:
        return is_special(address)
    except ValueError:
        return True


def _port_name(service: Object, number: int) -> str:
    for port in service["spec"].get("ports") or ():
        if port["port"] == number:
            return str(port.get("name", ""))
    raise unavailable(f'no service port {number} found for service "{service["metadata"]["name"]}"')


def _any_certificate() -> ssl.SSLContext:
    return client_context(Tls(insecure=True))
