"""Where the ports of a service are listened on, what they lead to, and who is led where: as kube-proxy has it.

Only two kinds of backend are ever dialled: what is in the network of the pods, and what the cluster itself runs on this
machine, where we know it to be: the API server above all. What listens on this machine alone could not say so, and
whatever says so in its name need not be true. An endpoint at any other address would be a way out of that network, and
is left out.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from shoal.api.core import ServicePort
from shoal.cluster.node.process.layout import NODE_ADDRESS, POD_NETWORK
from shoal.cluster.node.process.network.views import (
    ProxiedService,
    ServingEndpoint,
    ServingSlice,
    cluster_addresses,
    is_ready,
)

_PODS = ipaddress.ip_network(POD_NETWORK)
_MASK, _PREFIX = int(_PODS.netmask), int(_PODS.network_address)
LOOPBACK = "127.0.0.1"
API_SERVER = ("default", "kubernetes")
"""The namespace and name of the API server's service."""


class Front(NamedTuple):
    """An address and port of a Service."""

    address: str
    port: int
    is_datagram: bool = False
    is_on_machine: bool = False
    """In the machine's own network, on its loopback; else in the network of the node."""


class Backend(NamedTuple):
    """Where a connection may be led to."""

    address: str
    port: int
    is_on_machine: bool = False
    """In the machine's own network, not in that of the pods."""


Machine: TypeAlias = Mapping[tuple[str, str], Backend]
"""What stands behind services of the cluster's own, by namespace and name."""


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """What stands behind a front; there is always something."""

    backends: tuple[Backend, ...]
    affinity_seconds: int | None = None
    """How long a client stays with its backend; None where each connection is led anew."""


def wanted_fronts(
    service: ProxiedService, slices: Iterable[ServingSlice], *, node: str, machine: Machine
) -> dict[Front, Balance]:
    """What is to be listened on for a service. A port behind which nothing is has no front: the kernel refuses then."""
    slices = list(slices)
    addresses = [address for address in cluster_addresses(service) if ":" not in address]
    seconds = None
    if service.spec.session_affinity == "ClientIP":
        seconds = service.spec.session_affinity_config.client_ip.timeout_seconds
    own = machine.get(_name(service))
    balancer = balancer_address(service)
    found: dict[Front, Balance] = {}
    for port in service.spec.ports if addresses else ():
        backends = (own,) if own is not None else _backends(service, slices, port, node=node)
        if not backends or port.protocol not in ("TCP", "UDP"):
            continue
        is_datagram = port.protocol == "UDP"
        fronts = [Front(address, port.port, is_datagram) for address in addresses]
        if port.node_port:
            fronts.append(Front(NODE_ADDRESS, port.node_port, is_datagram))
            fronts.append(Front(LOOPBACK, port.node_port, is_datagram, is_on_machine=True))
        if balancer is not None:
            fronts.append(Front(balancer, port.port, is_datagram, is_on_machine=True))
        found |= dict.fromkeys(fronts, Balance(backends=backends, affinity_seconds=seconds))
    return found


def balancer_address(service: ProxiedService) -> str | None:
    """The address on the machine's loopback that a load balancer has: one of its own, so that no two share a port."""
    if service.spec.type != "LoadBalancer" or service.spec.load_balancer_class is not None:
        return None
    own = next((address for address in cluster_addresses(service) if ":" not in address), None)
    return f"127.{own.partition('.')[2]}" if own is not None else None


def is_translated(front: Front, balance: Balance) -> bool:
    """Whether the kernel can lead there: from the network of the pods, to that network alone."""
    return not front.is_on_machine and not any(backend.is_on_machine for backend in balance.backends)


def unreachable_address(service: ProxiedService, slices: Iterable[ServingSlice], *, machine: Machine) -> str | None:
    """An address behind a service that is never dialled, if there is one."""
    every = (
        address
        for one in slices
        if cluster_addresses(service) and _name(service) not in machine
        for endpoint in one.endpoints or ()
        for address in endpoint.addresses
    )
    return next((address for address in every if not _is_pod_address(address)), None)


def _backends(
    service: ProxiedService, slices: Iterable[ServingSlice], port: ServicePort, *, node: str
) -> tuple[Backend, ...]:
    """The ready ones; where there are none, those that still serve while they end."""
    ready: dict[Backend, None] = {}
    ending: dict[Backend, None] = {}
    is_local = service.spec.internal_traffic_policy == "Local"
    for one in slices:
        number = _number(one, port)
        if number is None:
            continue
        for endpoint in one.endpoints or ():
            if (is_local and endpoint.node_name != node) or not endpoint.addresses:
                continue
            address = endpoint.addresses[0]  # the others of a slice's endpoint, if any, are the same thing again
            if not _is_pod_address(address):
                continue
            if is_ready(endpoint):
                ready[Backend(address, number)] = None
            elif _serves_while_ending(endpoint):
                ending[Backend(address, number)] = None
    return tuple(sorted(ready or ending))


def _number(one: ServingSlice, port: ServicePort) -> int | None:
    """The number that a service's port has at the endpoints of a slice."""
    for candidate in one.ports or ():
        if (candidate.name or "") == port.name and (candidate.protocol or "TCP") == port.protocol:
            return candidate.port
    return None


def _serves_while_ending(endpoint: ServingEndpoint) -> bool:
    return endpoint.conditions.serving is True and endpoint.conditions.terminating is True


def _name(service: ProxiedService) -> tuple[str, str]:
    return service.metadata.namespace, service.metadata.name


def _is_pod_address(address: str) -> bool:
    try:
        return int.from_bytes(socket.inet_pton(socket.AF_INET, address), "big") & _MASK == _PREFIX
    except OSError:
        return False


class Chooser:
    """Leads clients to the backends of one front, each in turn, or each client to its own."""

    def __init__(self, balance: Balance, *, turn: int = 0) -> None:
        self._balance = balance
        self._turn = turn
        self._kept: dict[str, tuple[Backend, float]] = {}
        """Of each client: its backend, and until when. Clients are pods, so there are not endlessly many."""

    @property
    def balance(self) -> Balance:
        """What stands behind the front now."""
        return self._balance

    def update(self, balance: Balance) -> None:
        """What stands behind the front has changed; clients whose backend is still there keep it."""
        self._balance = balance
        known = set(balance.backends) if balance.affinity_seconds is not None else set()
        self._kept = {client: kept for client, kept in self._kept.items() if kept[0] in known}

    def candidates(self, client: str, now: float) -> list[Backend]:
        """All backends, in the order in which they should be tried for this client."""
        backends = self._balance.backends
        first = self._turn % len(backends)
        kept = self._kept.get(client)
        if kept is not None and kept[1] > now:
            first = backends.index(kept[0])
        else:
            self._turn += 1
        return [*backends[first:], *backends[:first]]

    def keep(self, client: str, backend: Backend, now: float) -> None:
        """A client was led to a backend, and stays with it if that is how this service is."""
        seconds = self._balance.affinity_seconds
        if seconds is not None and backend in self._balance.backends:
            self._kept[client] = backend, now + seconds
