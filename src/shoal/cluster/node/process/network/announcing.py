"""Says in the API where Services answer on this machine: load balancers in their status, ports in use by an event."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import msgspec
import structlog

from shoal.cluster.node.process.network.balance import Front, balancer_address
from shoal.cluster.node.process.network.catalogue import Catalogue
from shoal.cluster.node.process.network.views import PROXIED_SERVICES, BalancerIngress, BalancerPort, ProxiedService
from shoal.kube import About, ApiError, Client, ConnectionFault, Key, NotFound, Recorder

log = structlog.get_logger("shoal.cluster.node.process.network")

UNAVAILABLE = "PortUnavailable"
"""The reason of the event, and the error of a load balancer's port."""
_AGAIN_AFTER = 5.0


def wanted_ingress(service: ProxiedService, problems: Mapping[Front, str]) -> list[BalancerIngress] | None:
    """Where a load balancer answers, with the ports where it cannot; None for a Service that is not one of ours."""
    address = balancer_address(service)
    if address is None:
        return None
    taken = {(front.port, front.is_datagram) for front in problems if front.address == address}
    ports = [
        BalancerPort(
            port=port.port,
            protocol=port.protocol,
            error=UNAVAILABLE if (port.port, port.protocol == "UDP") in taken else None,
        )
        for port in service.spec.ports
    ]
    return [BalancerIngress(ip=address, ip_mode="Proxy", ports=ports)]


class Announcer:
    """Keeps the status of load balancers, and tells once of each port that cannot be listened on."""

    def __init__(self, catalogue: Catalogue, client: Client, events: Recorder) -> None:
        self._catalogue = catalogue
        self._client = client
        self._events = events
        self._told: dict[Key, set[Front]] = {}
        self._changed: set[Key] = set()
        self._wake = asyncio.Event()
        catalogue.on_change(self.mark)

    def mark(self, key: Key) -> None:
        """A Service has changed, or its problems have."""
        self._changed.add(key)
        self._wake.set()

    async def run(self, problems: Callable[[Key], Mapping[Front, str]]) -> None:
        """Announces until cancelled; ``problems`` are where a Service cannot be listened on, and why."""
        self._changed.update(self._catalogue.service_keys())
        self._wake.set()
        while True:
            await self._wake.wait()
            self._wake.clear()
            changed, self._changed = self._changed, set()
            for key in changed:
                await self._announce(key, problems(key))

    async def _announce(self, key: Key, problems: Mapping[Front, str]) -> None:
        found = self._catalogue.service(*key)
        if found is None:
            self._told.pop(key, None)
            return
        service = found[0]
        self._tell(key, service, problems)
        wanted = wanted_ingress(service, problems)
        if wanted is None or wanted == service.status.load_balancer.ingress:
            return
        status = {"status": {"loadBalancer": {"ingress": msgspec.to_builtins(wanted)}}}
        try:
            await self._client.merge_patch(PROXIED_SERVICES, key.name, status, key.namespace, subresource="status")
        except NotFound:
            return
        except (ApiError, ConnectionFault) as error:
            log.warning("the status of a load balancer could not be written", service=str(key), problem=str(error))
            asyncio.get_running_loop().call_later(_AGAIN_AFTER, self.mark, key)

    def _tell(self, key: Key, service: ProxiedService, problems: Mapping[Front, str]) -> None:
        told = self._told.get(key, set())
        for front in sorted(problems.keys() - told):
            protocol = "UDP" if front.is_datagram else "TCP"
            message = (
                f"cannot listen on {front.address}:{front.port} ({protocol}): {problems[front]}; "
                "free the port or choose another one"
            )
            self._events.warning(About.of(PROXIED_SERVICES, service), UNAVAILABLE, message)
        if problems:
            self._told[key] = set(problems)
        else:
            self._told.pop(key, None)
